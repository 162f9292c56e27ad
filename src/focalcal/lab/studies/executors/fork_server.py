"""What a fork server imports first, so that it ends with the process that started it, and at once.

It would notice when it has imported what cells need, which takes seconds, and then take Python down with all of that,
which takes another. So a thread looks after the process while it imports; the thread is ended before the first fork,
after which the server itself waits for the end of a pipe, and nothing is left to be taken down.
"""

from __future__ import annotations

import atexit
import os
import sys
import threading

STARTED_BY = "FOCALCAL_FORK_SERVER_OF"  # the variable with the id of the process whose end it is to notice
_SECONDS_BETWEEN_LOOKS = 0.1


def _end_with(parent: int, stop: threading.Event) -> None:
    while not stop.wait(_SECONDS_BETWEEN_LOOKS):
        if os.getppid() != parent:
            os._exit(1)


def _watch(parent: int) -> None:
    own, stop = os.getpid(), threading.Event()
    thread = threading.Thread(target=_end_with, args=(parent, stop), daemon=True)

    def end_thread() -> None:
        stop.set()
        thread.join()

    def end_at_once() -> None:
        if os.getpid() == own:  # not in a cell, whose exit code would be lost
            os._exit(0)

    thread.start()
    os.register_at_fork(before=end_thread)
    atexit.register(end_at_once)


if STARTED_BY in os.environ and "forkserver" in sys.orig_argv[-1]:  # others can inherit the variable
    _watch(int(os.environ.pop(STARTED_BY)))
