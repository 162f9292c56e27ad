"""Work in processes of its own, forked so that nothing is imported again, and killed if a test asks for it."""

import os
import signal
import sys
import traceback
import warnings
from collections.abc import Callable
from pathlib import Path

import pytest

# What changes the file system, or opens it to change.
_EVENTS = ("open", "os.mkdir", "os.rename", "os.remove", "os.rmdir", "shutil.rmtree", "shutil.copyfile", "fcntl.flock")

# Killed before one touch of a file in three, and before every one ahead of a release.
STRIDES = pytest.mark.parametrize("stride", [3, pytest.param(1, marks=[pytest.mark.slow, pytest.mark.release])])


def started(work: Callable[[], object]) -> int:
    """The id of a process that does the work and ends with 0, or 1 if it fails."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # newer Pythons warn where there are threads
        process = os.fork()
    if process:
        return process
    code = 1
    try:
        work()
        code = 0
    except BaseException:
        traceback.print_exc()
    finally:
        os._exit(code)


def ended(process: int) -> int:
    """Its exit code, or minus the signal that killed it."""
    return os.waitstatus_to_exitcode(os.waitpid(process, 0)[1])


def killed_at(step: int, work: Callable[[], object]) -> bool:
    """Do the work in a process that gets SIGKILL before its `step`th touch of a file; False if it ended before."""

    def doomed() -> None:
        left = step

        def watch(event: str, _: object) -> None:
            nonlocal left
            if event in _EVENTS:
                left -= 1
                if left == 0:
                    os.kill(os.getpid(), signal.SIGKILL)

        sys.addaudithook(watch)
        work()

    code = ended(started(doomed))
    assert code in (0, -signal.SIGKILL)
    return code != 0


def memory_growth(small: Callable[[], object], large: Callable[[], object]) -> float:
    """Megabytes that a process holds at most while it does the large work, beyond what it held after the small one."""

    def peak() -> int:
        status = Path("/proc/self/status").read_text()
        return int(status.partition("VmHWM:")[2].split()[0])

    def measured() -> None:
        small()  # everything is loaded and warm
        Path("/proc/self/clear_refs").write_text("5")  # the peak begins anew
        before = peak()
        large()
        os.write(to, str(peak() - before).encode())

    here, to = os.pipe()
    assert ended(started(measured)) == 0
    os.close(to)
    with open(here) as said:
        return int(said.read()) / 1024
