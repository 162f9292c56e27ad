"""The package as a user meets it: names, laziness, versions, examples."""

import re
import runpy
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


_LOADED = """
import sys

def loaded(*names):
    print(*sorted(set(names) & set(sys.modules)), sep=",", end=";")

"""


def test_every_part_loads_only_what_it_needs():
    """One process, the least demanding part first."""
    code = """
import focalcal.lab.data
loaded("torch", "focalcal._native._kernel", "scipy", "sklearn", "PIL", "pandas")
from focalcal.theory import keeps_decision, minimise, pre_asymptotic_bias, slope_bound
for solve in (keeps_decision, minimise, pre_asymptotic_bias, slope_bound):
    solve([0.7, 0.3], gamma=2, lam=1)
loaded("torch", "scipy", "matplotlib")
from focalcal import FocalCalibrationLoss
FocalCalibrationLoss()
loaded("scipy", "sklearn", "jaxtyping", "matplotlib", "plotly", "pandas", "duckdb", "pyarrow", "ray")
import focalcal.lab.models, focalcal.theory.consistency, focalcal.theory.propriety
loaded("transformers", "scipy", "sklearn")
"""
    assert run("-c", _LOADED + code) == ";" * 4


def test_what_needs_no_network_loads_neither_torch_nor_scikit_learn():
    """Every module of the library but the losses, the integrations, and what makes modules of calibrators."""
    code = """
import pkgutil
from importlib import import_module
import focalcal.metrics
focalcal.metrics.summary([[0.7, 0.3]], [0])
loaded("torch", "sklearn", "jaxtyping", "pandas", "matplotlib", "torchmetrics", "transformers")
for package in ("_native", "auditing", "cli", "core", "metrics", "pages", "posthoc", "predictions", "stats", "theory"):
    for module in pkgutil.walk_packages(import_module(f"focalcal.{package}").__path__, f"focalcal.{package}."):
        if module.name not in ("focalcal.posthoc.module", "focalcal.cli.__main__"):
            import_module(module.name)
loaded("torch", "sklearn", "scipy.stats", "focalcal.lab", "focalcal.losses", "ray", "duckdb", "transformers")
"""
    assert run("-c", _LOADED + code) == ";" * 2


def test_every_public_name_is_there():
    for name in focalcal.__all__:
        assert getattr(focalcal, name) is not None
    assert set(focalcal.__all__) <= set(dir(focalcal))
    from focalcal import losses

    assert {n for n in focalcal.__all__ if n.endswith("Loss")} <= set(losses.__all__)
    from focalcal import theory

    assert all(callable(getattr(theory, name)) for name in theory.__all__)
    of_logits = {getattr(losses, n) for n in losses.__all__ if n.endswith("Loss") and not n.startswith("Linear")}
    assert set(losses.LOSSES.values()) == of_logits


@pytest.mark.parametrize(
    ("asked", "meant"),
    [
        (lambda: focalcal.FocalLos, "did you mean FocalLoss"),
        (lambda: focalcal.FCL, "did you mean FocalCalibrationLoss"),
        (lambda: focalcal.ece, "did you mean focalcal.metrics.ece"),
        (lambda: focalcal.FocalCalibrationLoss(lambda_=1), "did you mean 'lam'"),
        (lambda: focalcal.LinearFocalCalibrationLoss(lambd=1), "did you mean 'lam'"),
        (lambda: focalcal.LOSSES["FCL"], "did you mean 'fcl'"),
        (lambda: focalcal.METRICS["ECE"], "did you mean 'ece'"),
        (lambda: focalcal.CALIBRATORS["temprature"], "did you mean 'temperature'"),
    ],
)
def test_a_name_that_people_try_is_answered_with_the_right_one(asked, meant):
    with pytest.raises((AttributeError, KeyError, TypeError), match=meant):
        asked()
    assert not hasattr(focalcal, "no_such_thing")


def test_one_version():
    assert "version" in tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["dynamic"]
    cited = re.search(r"^version: (\S+)$", (ROOT / "CITATION.cff").read_text(), re.M).group(1)
    _, latest, *_ = re.findall(r"^## \[(.*?)\]", (ROOT / "CHANGELOG.md").read_text(), re.M)
    assert focalcal.__version__ == cited.strip("'\"") == latest


_SOURCES = ROOT / "src" / "focalcal"


@pytest.mark.parametrize(
    "module",
    [
        ".".join(path.relative_to(_SOURCES).with_suffix("").parts).removesuffix(".__init__")
        for path in sorted(_SOURCES.rglob("*.py"))
        if ">>> " in path.read_text()
    ],
)
def test_docstring_examples(module):
    import doctest
    from importlib import import_module

    results = doctest.testmod(import_module(f"focalcal.{module}"))
    assert results.attempted > 0
    assert results.failed == 0


_FRAMEWORK = pytest.mark.filterwarnings("ignore")  # frameworks warn about themselves
_MARKS = {
    "one_run": pytest.mark.slow,
    "hugging_face_trainer": _FRAMEWORK,
    "lightning_module": _FRAMEWORK,
    "accelerate_loop": _FRAMEWORK,
    "causal_model": (_FRAMEWORK, pytest.mark.slow),
}
_ON_REAL_DATA = ("causal_model.py",)


@pytest.mark.parametrize(
    "script",
    [pytest.param(path.name, marks=_MARKS.get(path.stem, ())) for path in sorted((ROOT / "examples").glob("*.py"))],
)
def test_examples_run(script, capsys, monkeypatch, request):
    monkeypatch.chdir(ROOT)
    if script in _ON_REAL_DATA:
        request.getfixturevalue("data_folder")
    runpy.run_path(f"examples/{script}", run_name="__main__")
    assert capsys.readouterr().out.strip()


_DOCUMENTS = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
_PYTHON = re.compile(r"```python\n(.*?)```", re.DOTALL)


@pytest.mark.parametrize(
    "document",
    [
        str(path.relative_to(ROOT))
        for path in _DOCUMENTS
        if _PYTHON.search(path.read_text()) and path.name not in ("quickstart.md", "deploy.md")  # see tests/docs
    ],
)
def test_python_blocks_of_the_documents_run(document, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)  # for the files that they write
    namespace: dict[str, object] = {}
    for block in _PYTHON.findall((ROOT / document).read_text()):  # in order, as a reader would type them
        if "torch.compile(" in block and not (shutil.which("g++") or shutil.which("clang++")):
            continue  # its default backend needs a C++ compiler
        exec(compile(block, document, "exec"), namespace)


def test_the_files_that_the_architecture_names_are_there():
    """A name in angle brackets stands for any file."""
    text = (ROOT / "docs" / "architecture.md").read_text()
    named = {re.sub(r"<\w+>", "*", path) for path in re.findall(r"`((?:src|tests|docs|paper)/[^`]*)`", text)}
    assert len(named) > 40
    assert [path for path in sorted(named) if not any(ROOT.glob(path))] == []
    packages = re.findall(r"^\| `([\w/]+)/` \|", text, re.M)
    library = {path.parent.name for path in (ROOT / "src" / "focalcal").glob("*/__init__.py")} - {"lab"}
    assert set(packages) == library | {
        f"lab/{p.parent.name}" for p in (ROOT / "src" / "focalcal" / "lab").glob("*/__init__.py")
    }


def test_the_recipe_for_conda_says_what_pyproject_says():
    """The recipe for conda has the version and the dependencies of the wheel."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    recipe = (ROOT / ".ci" / "conda" / "meta.yaml").read_text()
    required = recipe[recipe.index("  run:\n") : recipe.index("test:")]
    listed = {line.replace(" ", "") for line in re.findall(r"- (\S+ ?\S*)", required)}
    needed = [f"python{project['requires-python']}", *project["dependencies"]]
    assert listed == {each.replace(" ", "") for each in needed}
    assert f'version = "{focalcal.__version__}"' in recipe
