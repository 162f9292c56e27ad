"""Ctrl-C, SIGTERM and SIGHUP as something to wait for, so that they are seen at one place of a loop only."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from multiprocessing import Pipe
from multiprocessing.connection import Connection
from types import FrameType

# The terminal's Ctrl-C, what schedulers and `kill` send, and a terminal that is closed; Windows has no SIGHUP.
STOPPING = tuple(getattr(signal, name) for name in ("SIGINT", "SIGTERM", "SIGHUP") if hasattr(signal, name))


@contextmanager
def interrupts() -> Iterator[Connection]:
    """A connection that becomes readable when the process is told to stop; within the block nothing else happens then.

    Only the main thread is ever told, and a signal that the process ignores (as `nohup` lets it) stays ignored.
    """
    receiver, sender = Pipe(duplex=False)

    def on_signal(signum: int, frame: FrameType | None) -> None:
        sender.send_bytes(b"!")

    with receiver, sender:
        main = threading.current_thread() is threading.main_thread()
        handled = [number for number in STOPPING if main and signal.getsignal(number) not in (signal.SIG_IGN, None)]
        before = {number: signal.signal(number, on_signal) for number in handled}
        try:
            yield receiver
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)


@contextmanager
def blocked_for_children() -> Iterator[None]:
    """Processes started in the block have these signals blocked from their first instruction; here they come later."""
    if not hasattr(signal, "pthread_sigmask"):  # Windows
        yield
        return
    before = signal.pthread_sigmask(signal.SIG_BLOCK, STOPPING)
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
