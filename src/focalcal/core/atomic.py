"""Files that are whole or not there: written under another name, forced to the disk, then renamed."""

from __future__ import annotations

import os
import re
import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

_TEMPORARY = re.compile(r"\.[0-9a-f]{32}\.tmp")


@contextmanager
def atomic_file(path: str | os.PathLike[str]) -> Iterator[BinaryIO]:
    """A file to write bytes to; it takes the name `path` when the block ends, and vanishes if the block fails.

    The temporary name, in the same folder, is random and opened exclusively: nobody can put a link there
    beforehand, and any number of threads and processes may write one path, the last one prevailing.
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
        except BaseException:
            handle.close()
            temporary.unlink(missing_ok=True)
            raise


def remove_unfinished(folder: str | os.PathLike[str]) -> None:
    """Remove what killed processes have left of `atomic_file`s in this folder; nobody may be writing there."""
    for left in Path(folder).glob(".*.tmp"):
        if _TEMPORARY.fullmatch(left.name):
            left.unlink(missing_ok=True)


def write_atomically(path: str | os.PathLike[str], content: bytes) -> None:
    """`content` as the file `path`, whole or not at all."""
    with atomic_file(path) as handle:
        handle.write(content)
