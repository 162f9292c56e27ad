"""Folders that appear whole, and disappear whole: written under `tmp/` with a lock, and moved by one renaming."""

from __future__ import annotations

import errno
import os
import re
import secrets
import shutil
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

_OURS = re.compile(r"[0-9a-f]{16}(\.lock)?")
STALE_SECONDS = 3600.0  # of a leftover before it is looked at; its writer must be dead as well
SPARE_BYTES = 16 << 20  # for checkpoints and logs, beyond what the caller asks for
_PROBE = b"\0" * (64 << 10)


@contextmanager
def hold(path: Path, *, wait: bool = True, keep: Callable[[], bool] = lambda: True) -> Iterator[bool]:
    """Hold the lock of a file while the block runs; yields whether it was got, which is certain with `wait`.

    One holder at a time among processes and threads, on one machine or, over NFS or Lustre, on many; the kernel frees
    the lock of a holder that dies. A link in the place of the file is refused. The file is removed at the end unless
    `keep()`.
    """
    from filelock import Timeout, UnixFileLock  # not FileLock: where there is no flock that takes a lesser lock

    if os.name != "posix":
        raise OSError("locking runs needs flock, which this operating system does not have; use Linux or macOS")
    lock = UnixFileLock(path, blocking=wait, fallback_to_soft=False)
    try:
        lock.acquire()
    except Timeout:
        yield False
        return
    try:
        yield True
    finally:
        try:
            if not keep():
                path.unlink(missing_ok=True)  # while it is locked: who waits for this file sees that it is gone
        finally:
            lock.release()


@contextmanager
def staging(tmp: Path) -> Iterator[Path]:
    """A new folder in `tmp`, locked as long as it is in use; what is still there at the end is removed."""
    tmp.mkdir(parents=True, exist_ok=True)
    folder = tmp / secrets.token_hex(8)
    with hold(tmp / f"{folder.name}.lock", keep=lambda: False):  # before the folder: no folder is without a lock
        folder.mkdir()
        try:
            yield folder
        finally:
            shutil.rmtree(folder, ignore_errors=True)


def discard(path: Path, tmp: Path) -> None:
    """Remove a folder: at once for every reader, then file by file."""
    with staging(tmp) as folder:
        os.rename(path, folder / path.name)


def clear_leftovers(tmp: Path) -> None:
    """Remove what writers that were killed left behind: old enough, and with nobody holding its lock."""
    with suppress(FileNotFoundError):
        for leftover in list(os.scandir(tmp)):
            with suppress(OSError):
                if not _OURS.fullmatch(leftover.name) or leftover.is_symlink():
                    continue
                if time.time() - leftover.stat(follow_symlinks=False).st_mtime < STALE_SECONDS:
                    continue
                folder = tmp / leftover.name.removesuffix(".lock")
                with hold(tmp / f"{folder.name}.lock", wait=False, keep=lambda: False) as dead:
                    if dead:
                        shutil.rmtree(folder, ignore_errors=True)


def commit(folder: Path, target: Path) -> bool:
    """Give a whole folder its name, for good; False if there is something under that name already."""
    for parent, _, names in os.walk(folder):
        for name in names:
            force(Path(parent, name))
        force(Path(parent))
    if not target.parent.is_dir():
        target.parent.mkdir(exist_ok=True)
        force(target.parent.parent)
    try:
        os.rename(folder, target)  # the moment from which on the run is there
    except OSError:
        if target.is_symlink() or target.exists():
            return False
        raise
    force(target.parent)
    return True


def force(path: Path) -> None:
    """Make sure that a file's or a folder's content is on the disk."""
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    except OSError:
        if not path.is_dir():  # some file systems cannot force folders
            raise
    finally:
        os.close(handle)


def check_disk_space(store: Path, tmp: Path, needed_bytes: int) -> None:
    """Write, force, lock and remove a small file in `tmp`, and ask for the free space: before hours of training.

    A quota that is not yet used up, and space that others use later, cannot be seen.
    """
    wanted = needed_bytes + SPARE_BYTES
    rule, more_space = f"the store {store} must take new runs", "free some space, or name a store on another disk"
    probe = tmp / f"{secrets.token_hex(8)}.lock"
    try:
        tmp.mkdir(exist_ok=True)
        with hold(probe, keep=lambda: False), open(probe, "wb") as handle:
            handle.write(_PROBE)
            handle.flush()
            os.fsync(handle.fileno())
    except OSError as error:
        remedy = "make the folder writable, or name another store"
        if error.errno in (errno.ENOSPC, errno.EDQUOT):
            remedy = more_space
        elif error.errno in (errno.ENOLCK, errno.ENOSYS):
            remedy = "mount the file system with locks, or name a store on another"
        raise OSError(error.errno, f"{rule}, got {error.strerror or error}; {remedy}") from error
    space = os.statvfs(store)
    free = space.f_bavail * space.f_frsize
    if free < wanted:
        raise OSError(errno.ENOSPC, f"{rule}, got {free:,} bytes free of {wanted:,} that are needed; {more_space}")
    if space.f_files and not space.f_favail:
        raise OSError(errno.ENOSPC, f"{rule}, got no free inodes; {more_space}")
