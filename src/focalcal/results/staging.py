"""Folders that appear whole, and disappear whole: written under `tmp/`, and moved by one renaming."""

from __future__ import annotations

import os
import re
import secrets
import shutil
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from focalcal.results.locks import held

_OURS = re.compile(r"[0-9a-f]{16}(\.lock)?")
STALE_SECONDS = 3600.0  # of a leftover before it is looked at; its writer must be dead as well


@contextmanager
def staging(tmp: Path) -> Iterator[Path]:
    """A new folder in `tmp`, locked as long as it is in use; what is still there at the end is removed."""
    tmp.mkdir(parents=True, exist_ok=True)
    folder = tmp / secrets.token_hex(8)
    with held(tmp / f"{folder.name}.lock", keep=lambda: False):  # before the folder: no folder is without a lock
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
        for found in list(os.scandir(tmp)):
            with suppress(OSError):
                if not _OURS.fullmatch(found.name) or found.is_symlink():
                    continue
                if time.time() - found.stat(follow_symlinks=False).st_mtime < STALE_SECONDS:
                    continue
                folder = tmp / found.name.removesuffix(".lock")
                with held(tmp / f"{folder.name}.lock", wait=False, keep=lambda: False) as dead:
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
