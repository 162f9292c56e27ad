"""The package as a user meets it: names, laziness, versions, examples."""

import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

import focalcal

ROOT = Path(__file__).parents[1]


def run(*arguments: str) -> str:
    done = subprocess.run([sys.executable, *arguments], capture_output=True, text=True, check=False, cwd=ROOT)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_importing_loads_neither_torch_nor_the_kernel():
    assert run("-c", "import sys, focalcal; print('torch' in sys.modules, focalcal.__version__)").split()[0] == "False"


def test_a_loss_needs_torch_and_nothing_heavy():
    code = """
import sys
from focalcal import FocalCalibrationLoss
FocalCalibrationLoss()
heavy = {"scipy", "sklearn", "jaxtyping", "matplotlib", "plotly", "pandas", "duckdb", "pyarrow", "ray"}
print(sorted(heavy & set(sys.modules)))
"""
    assert run("-c", code).strip() == "[]"


def test_a_solve_needs_neither_torch_nor_scipy():
    code = """
import sys
from focalcal.theory import keeps_decision, minimise, pre_asymptotic_bias, slope_bound
for solve in (keeps_decision, minimise, pre_asymptotic_bias, slope_bound):
    solve([0.7, 0.3], gamma=2, lam=1)
print(sorted({"torch", "scipy", "matplotlib"} & set(sys.modules)))
"""
    assert run("-c", code).strip() == "[]"


def test_every_public_name_is_there():
    for name in focalcal.__all__:
        assert getattr(focalcal, name) is not None
    assert set(focalcal.__all__) <= set(dir(focalcal))
    from focalcal import losses

    assert {n for n in losses.__all__ if n.endswith("Loss")} <= set(focalcal.__all__)
    from focalcal import theory

    assert all(callable(getattr(theory, name)) for name in theory.__all__)
    assert set(losses.LOSSES.values()) == {getattr(losses, n) for n in losses.__all__ if n.endswith("Loss")}


def test_an_unknown_name_lists_the_known_ones():
    with pytest.raises(AttributeError, match=r"no attribute 'FocalLos'; it has .*FocalLoss"):
        _ = focalcal.FocalLos


def test_one_version():
    version = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["version"]
    assert focalcal.__version__ == version
    assert re.search(r"^version: (\S+)$", (ROOT / "CITATION.cff").read_text(), re.M).group(1).strip("'\"") == version


@pytest.mark.parametrize(
    "module",
    [
        "losses.focal_calibration",
        "posthoc.temperature",
        "posthoc.recovery",
        "theory.bias",
        "theory.degenerate",
        "theory.minimiser",
        "theory.propriety",
        "theory.recovery",
        "theory.tolerance",
    ],
)
def test_docstring_examples(module):
    import doctest
    from importlib import import_module

    results = doctest.testmod(import_module(f"focalcal.{module}"))
    assert results.attempted > 0
    assert results.failed == 0


@pytest.mark.parametrize("script", sorted((ROOT / "examples").glob("*.py")), ids=lambda p: p.name)
def test_examples_run(script):
    assert run(str(script)).strip()


@pytest.mark.parametrize(
    "document", ["README.md", *sorted(f"docs/guide/{p.name}" for p in (ROOT / "docs/guide").glob("*.md"))]
)
def test_python_blocks_of_the_documents_run(document, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)  # for the files that they write
    blocks = re.findall(r"```python\n(.*?)```", (ROOT / document).read_text(), re.S)
    assert blocks
    namespace: dict[str, object] = {}
    for block in blocks:  # in order, as a reader would type them
        if "torch.compile(" in block and not (shutil.which("g++") or shutil.which("clang++")):
            continue  # its default backend needs a C++ compiler
        exec(compile(block, document, "exec"), namespace)
