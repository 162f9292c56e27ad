"""Downloads that can be interrupted: resumed where they stopped, verified, and only then given their name."""

from __future__ import annotations

import hashlib
import os
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from http.client import HTTPException
from pathlib import Path

from focalcal.lab.data.archives import unpack
from focalcal.lab.data.catalogue import Remote, by_hand, catalogue_entry, describe
from focalcal.lab.data.errors import DataSetError, problem

OnBytes = Callable[[int, int], None]
UNFINISHED = (".part", ".lock")  # what a download that is under way, or was interrupted, leaves beside its file
_PIECE = 1 << 18
_TIMEOUT = 30  # seconds without a byte
_NO_SUCH_RANGE = 416


def fetch_data_set(name: str, folder: Path, *, progress: OnBytes | None = None) -> Path | None:
    """Download and unpack what is missing of a data set. Files that are there already are verified, unless they have
    been unpacked.

    Args:
        name: of a data set of `CATALOGUE`.
        folder: that of all data sets, as FOCALCAL_DATA names it.
        progress: is told how far a download is, in bytes.

    Returns:
        The folder that its loader reads; None if it needs no file.

    >>> fetch_data_set("digits", Path("data")) is None  # these come with scikit-learn
    True
    """
    files = catalogue_entry(name)
    if files.folder is None:
        return None
    target = folder / files.folder
    if not files.remotes:
        if any(target.glob("*")):
            return target
        raise DataSetError(f"{name} cannot be downloaded by a program: {by_hand(name, folder)}")
    wanted = [remote for remote in files.remotes if remote.unpack_into is None or not target.exists()]
    missing = [remote for remote in wanted if not (folder / remote.path).exists()]
    for remote in wanted:
        if remote not in missing:
            verify(folder / remote.path, remote)
    for number, remote in enumerate(missing, 1):
        fetch(remote, folder, progress=progress, then=missing[number:])
    unpack_data_set(name, folder)
    return target


def unpack_data_set(name: str, folder: Path) -> None:
    """Unpack the archives of a data set that are in the folder, unless that has been done; verified first."""
    files = catalogue_entry(name)
    if files.folder is None or (folder / files.folder).exists():
        return
    for remote in files.remotes:
        archive = folder / remote.path
        if remote.unpack_into is not None and archive.exists():
            verify(archive, remote)
            try:
                unpack(archive, folder / remote.unpack_into)
            except (DataSetError, OSError):
                if not (folder / files.folder).exists():  # else another process was faster
                    raise


def fetch(
    remote: Remote,
    folder: Path,
    *,
    progress: OnBytes | None = None,
    attempts: int = 3,
    then: Sequence[Remote] = (),
) -> Path:
    """`remote.url` as the file `remote.path` in `folder`.

    What has arrived is kept as `NAME.part` and, if a checksum can judge the whole, continued with an HTTP range
    request. The file gets its name when its size and checksum are right. `progress(done, of)` is called as bytes
    arrive. Without a network the error says what to put where, of this file and of those that are to follow, `then`.
    """
    target = folder / remote.path
    target.parent.mkdir(parents=True, exist_ok=True)
    part = target.with_name(f"{target.name}.part")
    with _alone(part):
        for attempt in range(1, attempts + 1):
            try:
                _continue(remote, part, progress or (lambda done, of: None))
                break
            except (OSError, HTTPException) as error:
                code = error.code if isinstance(error, urllib.error.HTTPError) else 500
                if code == _NO_SUCH_RANGE:  # nothing follows what is here, which is therefore of another file
                    part.unlink()
                if attempt == attempts or (code < 500 and code != _NO_SUCH_RANGE):
                    raise _unreachable([remote, *then], folder, error) from error
                time.sleep(0.1 * 4 ** (attempt - 1))
        try:
            verify(part, remote)
        except DataSetError:
            part.unlink()  # it will never be right
            raise
        os.replace(part, target)
    return target


def verify(path: Path, remote: Remote) -> None:
    """Refuse a file that has not the size or the checksum that is known of it."""
    size = path.stat().st_size
    remedy = f"delete it and fetch {remote.url} again"
    if remote.size is not None and size != remote.size:
        raise problem(path, f"must have {remote.size} bytes", size, remedy)
    if remote.checksum is not None:
        kind, wanted = remote.checksum.split(":")
        with path.open("rb") as handle:
            digest = hashlib.file_digest(handle, lambda: hashlib.new(kind, usedforsecurity=False)).hexdigest()
        if digest != wanted:
            raise problem(path, f"must have the {kind} checksum {wanted}", digest, remedy)


@contextmanager
def _alone(part: Path) -> Iterator[None]:
    """Nobody else writes to `part` meanwhile; the lock ends with the process."""
    from filelock import FileLock, Timeout

    lock = FileLock(f"{part}.lock", blocking=False)
    try:
        lock.acquire()
    except Timeout:
        raise DataSetError(f"{part}: another process is downloading it; wait until it is done") from None
    try:
        yield
    finally:
        with suppress(OSError):  # Windows keeps a locked file until it is released
            Path(lock.lock_file).unlink()
        lock.release()


def _continue(remote: Remote, part: Path, progress: OnBytes) -> None:
    have = part.stat().st_size if part.exists() and remote.checksum else 0
    if have and have == remote.size:
        return
    headers = {"User-Agent": "focalcal", "Accept-Encoding": "identity"}
    if have:
        headers["Range"] = f"bytes={have}-"
    with urllib.request.urlopen(urllib.request.Request(remote.url, headers=headers), timeout=_TIMEOUT) as answer:
        done = have if answer.status == 206 else 0  # a server may ignore the range
        stated = str(answer.headers.get("Content-Range", ""))
        if done and not stated.startswith(f"bytes {have}-"):
            raise ConnectionError(f"asked for bytes from {have} on, the server sent {stated!r}")
        length = answer.headers.get("Content-Length")
        total = done + int(length) if length else remote.size or 0
        with part.open("ab" if done else "wb") as out:
            while piece := answer.read(_PIECE):
                out.write(piece)
                done += len(piece)
                progress(done, max(done, total))
            out.flush()
            os.fsync(out.fileno())
        if done < total:
            raise ConnectionError(f"the connection ended after {done} of {total} bytes")


def _unreachable(remotes: Sequence[Remote], folder: Path, error: Exception) -> DataSetError:
    reason = " ".join(str(getattr(error, "reason", None) or error).split()) or type(error).__name__
    files = " and ".join(describe(remote, folder) for remote in remotes)
    return DataSetError(
        f"could not download {remotes[0].url} ({reason}); where there is a network, download {files}, "
        "then run the same command again"
    )
