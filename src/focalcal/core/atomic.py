"""Files that are whole or not there: written under another name, forced to the disk, then renamed."""

from __future__ import annotations

import errno
import os
import re
import secrets
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO

_TEMPORARY = re.compile(r"\.[0-9a-f]{32}\.tmp")
_FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)  # no space, no more of the quota, no larger files


@contextmanager
def atomic_file(path: str | os.PathLike[str]) -> Iterator[BinaryIO]:
    """A file to write bytes to; it takes the name `path` when the block ends, and vanishes if the block fails.

    The temporary name, in the same folder, is random and opened exclusively: nobody can put a link there
    beforehand, and any number of threads and processes may write one path, the last one prevailing. On a full disk
    nothing is left, and the OSError names the file, whatever the block made of it.
    """
    target = Path(path)
    temporary = target.parent / f".{secrets.token_hex(16)}.tmp"
    with open(temporary, "xb") as handle:  # fails here, removing nothing, if something has the name
        try:
            yield handle
            handle.flush()
            os.fsync(handle.fileno())
            handle.close()  # before the renaming, which Windows refuses for open files
            temporary.replace(target)
        except BaseException as error:
            with suppress(OSError):  # of what is still in its buffer, for which there is no room either
                handle.close()
            temporary.unlink(missing_ok=True)
            if isinstance(error, Exception) and (full := _full_disk(error)) is not None:
                remedy = "free some space, or choose a folder on another disk"
                raise OSError(full.errno, f"{target} cannot be written: {full.strerror}; {remedy}") from error
            raise


def _full_disk(error: BaseException | None) -> OSError | None:
    """The refusal of the disk that an error is, or that it came from: torch raises its own while it closes a file."""
    while error is not None:
        if isinstance(error, OSError) and error.errno in _FULL:
            return error
        error = error.__cause__ or error.__context__
    return None


def remove_unfinished(folder: str | os.PathLike[str]) -> None:
    """Remove what killed processes have left of `atomic_file`s in this folder; nobody may be writing there."""
    for left in Path(folder).glob(".*.tmp"):
        if _TEMPORARY.fullmatch(left.name):
            left.unlink(missing_ok=True)


def write_atomically(path: str | os.PathLike[str], content: bytes) -> None:
    """`content` as the file `path`, whole or not at all."""
    with atomic_file(path) as handle:
        handle.write(content)
