"""Locks that the kernel releases when their holder dies: `flock` on a file."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def held(path: Path, *, wait: bool = True, keep: Callable[[], bool] = lambda: True) -> Iterator[bool]:
    """Hold the lock while the block runs; yields whether it was got, which is certain with `wait`.

    One holder at a time among processes and threads, on one machine or, over NFS or Lustre, on many. The lock file is
    removed at the end unless `keep()`. A thread that asks for a lock that it holds waits for ever.
    """
    handle = _locked(path, wait=wait)
    if handle is None:
        yield False
        return
    try:
        yield True
    finally:
        try:
            if not keep():
                path.unlink(missing_ok=True)  # while it is locked: see _locked
        finally:
            os.close(handle)


def _locked(path: Path, *, wait: bool) -> int | None:
    try:
        import fcntl
    except ModuleNotFoundError as error:
        raise OSError(
            "locking runs needs flock, which this operating system does not have; use Linux or macOS"
        ) from error
    while True:
        handle = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o666)
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))
            if _is_at(handle, path):
                return handle
        except BlockingIOError:
            os.close(handle)
            return None
        except BaseException:
            os.close(handle)
            raise
        os.close(handle)  # its last holder removed the file: there is a new one, or none


def _is_at(handle: int, path: Path) -> bool:
    try:
        return os.path.samestat(os.fstat(handle), os.lstat(path))
    except FileNotFoundError:
        return False
