"""What `make dist` built: the files hold what they should, and each wheel works where nothing else of focalcal is.

python .ci/distribution.py dist
"""

import re
import subprocess
import sys
import sysconfig
import tarfile
import tempfile
import venv
import zipfile
from pathlib import Path

ROOT = Path(__file__).parents[1]
PACKAGE = ROOT / "src" / "focalcal"
_DATA = ("lab/**/*.toml", "**/templates/**/*.*", "_native/*.c", "_native/*.h", "**/*.py", "py.typed")
_THEIRS = re.compile(rb"copyright|@licen[cs]e|SPDX", re.IGNORECASE)


def check_contents(names: set[str], prefix: str, archive: Path) -> None:
    """Every file of the package is there, with the licence, and no test, cache or built file of the tree is."""
    expected = {prefix + str(path.relative_to(PACKAGE)) for kind in _DATA for path in PACKAGE.glob(kind)}
    missing = sorted(expected - names)
    strange = [name for name in sorted(names) if "/tests/" in name or name.endswith((".pyc", ".o"))]
    licences = [name for name in names if name.endswith("/LICENSE")]
    if missing or strange or len(licences) != 1:
        sys.exit(f"{archive.name}: missing {missing[:5]}, out of place {strange[:5]}, licences {licences}")


def check_licences() -> None:
    """Nothing of others is in pages and C sources, so that one licence covers all of it."""
    sources = [path for kind in _DATA[1:4] for path in PACKAGE.glob(kind)]
    if theirs := [str(path) for path in sources if _THEIRS.search(path.read_bytes())]:
        sys.exit(f"code of others needs its licence in license-files of pyproject.toml: {theirs}")


def try_wheel(wheel: Path, *, native: bool) -> None:
    """The quickstart in an environment with this wheel alone; dependencies are those of the running Python."""
    with tempfile.TemporaryDirectory() as folder:
        environment = Path(folder) / "environment"
        venv.create(environment, with_pip=False)
        python = environment / "bin" / "python"
        install = [
            sys.executable,
            "-m",
            "pip",
            "--python",
            python,
            "install",
            "--quiet",
            "--no-deps",
            "--no-index",
            wheel,
        ]
        subprocess.run(install, check=True)
        (site,) = environment.glob("lib/python*/site-packages")
        (site / "dependencies.pth").write_text(sysconfig.get_path("purelib"))  # their own .pth files are not read

        def run(*command: str | Path) -> str:
            clean = {"PATH": "/usr/bin:/bin", "HOME": folder, "OMP_NUM_THREADS": "1"}
            done = subprocess.run(command, check=True, cwd=folder, env=clean, capture_output=True, text=True)
            return done.stdout

        where = run(python, "-c", "import focalcal; print(focalcal.__file__)")
        kernel = run(python, "-W", "ignore", "-c", "from focalcal import _native; print(_native.available())")
        if not where.startswith(str(environment)) or (kernel.strip() == "True") != native:
            sys.exit(f"{wheel.name}: imported from {where.strip()}, native kernel: {kernel.strip()}")
        print(run(environment / "bin" / "focalcal", "--version").strip(), "from", wheel.name)
        first, *_ = re.findall(r"```python\n(.*?)```", (ROOT / "docs" / "quickstart.md").read_text(), re.DOTALL)
        run(python, "-c", first)
        run(environment / "bin" / "focalcal", "audit", "held_out.csv", "--out", "audit")
        if not (Path(folder) / "audit" / "audit.html").exists():
            sys.exit(f"{wheel.name}: the quickstart's audit wrote no page")


def main(folder: Path) -> None:
    """Check one source archive and two wheels, of one version."""
    (source,), wheels = folder.glob("*.tar.gz"), sorted(folder.glob("*.whl"))
    with tarfile.open(source) as archive:
        names = set(archive.getnames())
        stem = source.name.removesuffix(".tar.gz")
        check_contents(names, f"{stem}/src/focalcal/", source)
    tags = {wheel.name.removeprefix(f"{stem}-").partition("-")[0]: wheel for wheel in wheels}
    if set(tags) != {"cp311", "py3"}:
        sys.exit(f"expected one abi3 and one pure wheel, got {[wheel.name for wheel in wheels]}")
    check_licences()
    for tag, wheel in tags.items():
        with zipfile.ZipFile(wheel) as archive:
            check_contents(set(archive.namelist()), "focalcal/", wheel)
        try_wheel(wheel, native=tag == "cp311")


if __name__ == "__main__":
    main(Path(sys.argv[1]).resolve())
