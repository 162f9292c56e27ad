"""Whether a store can be written to, found out before hours of training."""

from __future__ import annotations

import errno
import os
import secrets
from pathlib import Path

from focalcal.core.primitives import whole
from focalcal.results.locks import held

SPARE_BYTES = 16 << 20  # for checkpoints and logs, beyond what the caller asks for
_PROBE = b"\0" * (64 << 10)


def check_room(store: Path, tmp: Path, needed_bytes: int) -> None:
    """Write, force, lock and remove a small file in `tmp`, and ask for the free space.

    A quota that is not yet used up, and space that others use later, cannot be seen.
    """
    wanted = whole("needed_bytes", needed_bytes, 0) + SPARE_BYTES
    probe = tmp / f"{secrets.token_hex(8)}.lock"
    try:
        tmp.mkdir(exist_ok=True)
        with held(probe, keep=lambda: False), open(probe, "wb") as handle:
            handle.write(_PROBE)
            handle.flush()
            os.fsync(handle.fileno())
    except OSError as error:
        raise OSError(error.errno, f"{_rule(store)}, got {error.strerror or error}; {_remedy(error)}") from error
    space = os.statvfs(store)
    if space.f_bavail * space.f_frsize < wanted:
        got, more = f"{space.f_bavail * space.f_frsize:,} bytes free", f"{wanted:,}"
        raise OSError(errno.ENOSPC, f"{_rule(store)}, got {got} of {more} that are needed; {_FREE}")
    if space.f_files and not space.f_favail:
        raise OSError(errno.ENOSPC, f"{_rule(store)}, got no free inodes; {_FREE}")


_FREE = "free some space, or name a store on another disk"


def _rule(store: Path) -> str:
    return f"the store {store} must take new runs"


def _remedy(error: OSError) -> str:
    if error.errno in (errno.ENOSPC, errno.EDQUOT):
        return _FREE
    if error.errno == errno.ENOLCK:
        return "mount the file system with locks, or name a store on another"
    return "make the folder writable, or name another store"
