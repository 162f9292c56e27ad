"""The wheel as most people install it, without torch: its size, its commands, every metric, calibrator and theorem.

python .ci/without_torch.py

What the golden files pin is computed in an environment that has the wheel, what it depends on, and pytest.
"""

import os
import re
import subprocess
import sys
import tempfile
import venv
from pathlib import Path

ROOT = Path(__file__).parents[1]
MOST_MEGABYTES = 500
_TOOLS = re.compile(r"^(pip|setuptools|pkg_resources|_distutils_hack|pytest|_pytest|pluggy|iniconfig)")


def megabytes(folder: Path) -> float:
    """Of all files below, tools apart."""
    files = (path for top in folder.iterdir() if not _TOOLS.match(top.name) for path in (top, *top.rglob("*")))
    return sum(path.stat().st_size for path in files if path.is_file() and not path.is_symlink()) / 1e6


def main() -> int:
    """1 if anything of it does not hold."""
    with tempfile.TemporaryDirectory(prefix="focalcal-light-") as name:
        folder = Path(name)
        clean = {"PATH": "/usr/bin:/bin", "HOME": name, "OMP_NUM_THREADS": "1"}

        def run(*command: str | Path, code: int = 0, **options: object) -> subprocess.CompletedProcess[str]:
            done = subprocess.run(command, cwd=folder, env=clean, capture_output=True, text=True, **options)
            if done.returncode != code:
                sys.exit(f"{' '.join(map(str, command))} ended with {done.returncode}, not {code}:\n"
                         f"{done.stdout[-3000:]}{done.stderr[-3000:]}")  # fmt: skip
            return done

        build = [sys.executable, "-m", "pip", "wheel", "-q", "--no-deps", "--no-build-isolation", "-w", name, str(ROOT)]
        subprocess.run(build, check=True)
        (wheel,) = folder.glob("*.whl")
        venv.create(folder / "light", with_pip=True)
        python, focalcal = (folder / "light" / "bin" / tool for tool in ("python", "focalcal"))
        subprocess.run([python, "-m", "pip", "install", "-q", wheel, "pytest"], check=True, stderr=subprocess.DEVNULL)
        (site,) = (folder / "light").glob("lib/python*/site-packages")
        if (site / "torch").exists() or (size := megabytes(site)) > MOST_MEGABYTES:
            sys.exit(f"without torch: {sorted(path.name for path in site.iterdir())}")
        print(f"{wheel.name} and its dependencies: {size:.0f} MB")

        loss = run(python, "-c", "from focalcal import FocalCalibrationLoss", code=1).stderr.strip().splitlines()[-1]
        study = run(focalcal, "study", "digits", code=2).stderr.strip()
        if not all("pip install" in said for said in (loss, study)) or len(study.splitlines()) != 1:
            sys.exit(f"what is missing must be said in one sentence with the command, got {loss!r} and {study!r}")
        run(focalcal, "--help")
        tests = run(
            python, "-m", "pytest", "-q", "--noconftest", "-p", "no:cacheprovider", "--import-mode=importlib",
            f"--rootdir={ROOT / 'tests'}", "-o", "pythonpath=.", ROOT / "tests" / "golden",
        )  # fmt: skip
        print(tests.stdout.strip().splitlines()[-1])
    return 0


if __name__ == "__main__":
    os.environ.pop("PYTHONPATH", None)
    sys.exit(main())
