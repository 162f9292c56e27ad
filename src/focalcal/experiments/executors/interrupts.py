"""Ctrl-C as something to wait for, so that it is seen at one place of a loop and nowhere else."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from multiprocessing import Pipe
from multiprocessing.connection import Connection
from types import FrameType


@contextmanager
def interrupts() -> Iterator[Connection]:
    """A connection that becomes readable on Ctrl-C; within the block no KeyboardInterrupt is raised.

    Only the main thread ever gets one, and a process that ignores SIGINT goes on ignoring it: then the connection
    never becomes readable.
    """
    receiver, sender = Pipe(duplex=False)

    def on_interrupt(signum: int, frame: FrameType | None) -> None:
        sender.send_bytes(b"!")

    with receiver, sender:
        main = threading.current_thread() is threading.main_thread()
        if not main or not callable(signal.getsignal(signal.SIGINT)):
            yield receiver
            return
        before = signal.signal(signal.SIGINT, on_interrupt)
        try:
            yield receiver
        finally:
            signal.signal(signal.SIGINT, before)


@contextmanager
def blocked_for_children() -> Iterator[None]:
    """Processes started in the block have SIGINT blocked from their first instruction; here it only comes later."""
    if not hasattr(signal, "pthread_sigmask"):  # Windows
        yield
        return
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
