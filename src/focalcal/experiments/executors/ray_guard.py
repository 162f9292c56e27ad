"""A program, `python ray_guard.py PID ...`: when its standard input ends, it kills these processes, and ends.

They are held by file descriptors from the start, so that no other process that gets one of the numbers is meant.
"""

from __future__ import annotations

import os
import signal
import sys
from contextlib import suppress


def main(pids: list[str]) -> None:
    """Wait for the end of the process at the other end of the pipe, however it comes."""
    held = []
    for pid in pids:
        with suppress(ProcessLookupError):
            held.append(os.pidfd_open(int(pid)))
    sys.stdin.read()
    for process in held:
        with suppress(ProcessLookupError):
            signal.pidfd_send_signal(process, signal.SIGKILL)


if __name__ == "__main__":
    main(sys.argv[1:])
