"""The tests that torch could break, with the oldest and the newest torch that the package is meant for.

python .ci/torch_versions.py FOLDER [--only oldest|newest] [PYTEST_ARGS ...]

Each has an environment in FOLDER, outside of the repository, which is made once and brought up to date later: some
7 GB, since PyPI has builds for CUDA, which run on the CPU as well. The sources are those of this tree, with its native
kernel.
"""

import argparse
import os
import re
import subprocess
import sys
import tomllib
import venv
from pathlib import Path

ROOT = Path(__file__).parents[1]
VERSIONS = {"oldest": ["torch==2.4.1", "transformers==5.0.0"], "newest": ["torch"]}  # a later one refuses torch 2.4
TESTS = ("losses", "metrics", "posthoc", "contracts", "integrations")
# Of [dev]: torch itself, what no test of those uses, and triton, of which each torch brings its own version.
LEFT_OUT = (
    *("torch", "triton", "ray", "tensorboard", "playwright", "quickjs", "ruff", "mypy"),
    *("import-linter", "codespell", "build", "coverage", "pre-commit", "mkdocs", "mkdocs-material", "mkdocstrings"),
    "latex2mathml",
)

# What others refuse with that torch: checkpoints in transformers, all of TRL. A loss that transformers 5.0.0 counts
# otherwise, its transformers whose parts have other names, and an estimate from numbers that torch 2.4 draws otherwise.
NOT_OLDEST = (
    "not resumed_ends and not trls_trainer and not trls_grpo and not callback_shifts and not finds_the_gamma "
    "and not vit_small and not deit_small and not swin_tiny"
)
# Its graphs of constants warn of themselves.
QUIET_OLDEST = ("-W", "ignore:Node lifted_tensor")


def requirements() -> list[str]:
    """What the package needs and what its tests need, without torch."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    extras = project["optional-dependencies"]

    def expanded(lines: list[str]) -> list[str]:
        own = [re.match(r"focalcal\[(.*)\]", line) for line in lines]
        named = [name.strip() for match in own if match for name in match[1].split(",")]
        rest = [line for line, match in zip(lines, own, strict=True) if not match]
        return rest + [line for name in named for line in expanded(extras[name])]

    every = [*project["dependencies"], *expanded(extras["dev"])]
    return [line for line in every if re.match(r"[\w-]+", line)[0] not in LEFT_OUT]


def environment(folder: Path, pins: list[str]) -> Path:
    """Its Python, with everything installed."""
    python = folder / "bin" / "python"
    if not python.exists():
        print(f"making {folder}; this takes several gigabytes and some minutes", flush=True)
        venv.create(folder, with_pip=True)
    quiet = ["--quiet", "--disable-pip-version-check", "--upgrade-strategy", "only-if-needed"]
    upgrade = ["--upgrade"] if pins == ["torch"] else []
    # One call: the other packages' versions are those that go with this torch.
    subprocess.run([python, "-m", "pip", "install", *quiet, *upgrade, *pins, *requirements()], check=True)
    return python


def run(name: str, python: Path, arguments: list[str]) -> bool:
    """Whether the tests pass, on the CPU.

    Each file has a process of its own: in torch 2.4 what a test forks waits for ever once autograd has had threads.
    """
    paths = os.pathsep.join(filter(None, (str(ROOT / "src"), os.environ.get("PYTHONPATH"))))
    variables = os.environ | {"PYTHONPATH": paths, "CUDA_VISIBLE_DEVICES": ""}
    version = "import torch, numpy; print('torch', torch.__version__, 'numpy', numpy.__version__)"
    subprocess.run([python, "-W", "ignore", "-c", version], check=True)
    command = [
        python,
        "-m",
        "pytest",
        "-q",
        "-p",
        "no:cacheprovider",
        "-m",
        "not slow",
    ]
    command += [*QUIET_OLDEST, "-k", NOT_OLDEST] if name == "oldest" else []
    files = [path for folder in TESTS for path in sorted((ROOT / "tests" / folder).glob("test_*.py"))]
    calls = [[*command, *part] for part in ([arguments] if arguments else [[path] for path in files])]
    nothing_to_run = 5
    codes = [subprocess.run(call, cwd=ROOT, env=variables, check=False).returncode for call in calls]
    return all(code in (0, nothing_to_run) for code in codes)


def main() -> None:
    """Run them all, and end with an error if a test failed."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--only", choices=VERSIONS)
    options, arguments = parser.parse_known_args()
    folder = options.folder.resolve()
    if folder.is_relative_to(ROOT):
        sys.exit(f"FOLDER must be outside of the repository, got {folder}: every search in the tree would read it")
    wanted = [options.only] if options.only else [*VERSIONS]
    failed = [name for name in wanted if not run(name, environment(folder / name, VERSIONS[name]), arguments)]
    if failed:
        sys.exit(f"the tests fail with the {' and the '.join(failed)} torch")


if __name__ == "__main__":
    main()
