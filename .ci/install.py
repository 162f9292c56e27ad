"""`make install`: an environment with an extra of focalcal. Shows what pip is at, and waits for its twin.

python3 .ci/install.py VENV READY dev     # what develops and tests focalcal; lab: what `make study` needs
"""

import fcntl
import os
import re
import subprocess
import sys
import time
import venv
from pathlib import Path

ROOT = Path(__file__).parents[1]
_SHOWN = re.compile(
    r"\s*(Collecting|Downloading|Building|Preparing|Installing|Attempting uninstall:)\s+([^\s<>=!;\[(]+)"
)


def main(environment: Path, ready: Path, extra: str) -> int:
    """Install into `environment` unless it was done after this process began to wait; pip's exit code."""
    began = time.time()
    with (ROOT / ".install.lock").open("w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            print("another `make install` is at work here; waiting for it", flush=True)
            fcntl.flock(lock, fcntl.LOCK_EX)
            if ready.exists() and ready.stat().st_mtime >= began:
                return 0
        if not (environment / "bin" / "python").exists():
            venv.create(environment, with_pip=True, symlinks=True)
        code = install(environment, extra)
        if code == 0:
            ready.touch()
        return code


def install(environment: Path, extra: str) -> int:
    """Run pip; one line per package that it fetches, and all it said if it fails."""
    # The constraints keep torch on one build; pip would else choose several gigabytes of CUDA libraries.
    command = [environment / "bin" / "python", "-m", "pip", "install", "-c", "constraints.txt", "-e", f".[{extra}]"]
    print(f"installing focalcal[{extra}] into {environment.name}: a few minutes", flush=True)
    began, said = time.monotonic(), []
    with subprocess.Popen(
        command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, env=os.environ
    ) as pip:
        assert pip.stdout is not None
        for line in pip.stdout:
            said.append(line)
            if match := _SHOWN.match(line):
                seconds = int(time.monotonic() - began)
                print(f"  {seconds // 60}:{seconds % 60:02d}  {match[1].lower()} {match[2]}", flush=True)
    if pip.returncode:
        print("".join(said[-60:]), file=sys.stderr)
    return pip.returncode


if __name__ == "__main__":
    sys.exit(main(*(Path(argument).absolute() for argument in sys.argv[1:3]), sys.argv[3]))
