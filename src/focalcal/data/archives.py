"""Archives unpacked safely: every member inside the target folder, files and folders only, all of it or nothing.

Tar (plain or gzip) and zip. Links and devices are refused outright: no data set needs them.
"""

from __future__ import annotations

import gzip
import os
import secrets
import shutil
import tarfile
import zipfile
from collections.abc import Iterator
from pathlib import Path, PurePosixPath, PureWindowsPath
from typing import IO, Any

from focalcal.data.errors import DataSetError, problem, reading

MAX_BYTES = 200 << 30  # what an archive may unpack to
_PIECE = 1 << 20
_REMEDY = "do not trust this archive: delete it and fetch it from its official address"


def unpack(archive: Path, destination: Path, *, max_bytes: int = MAX_BYTES) -> list[Path]:
    """Put the archive's members into `destination`; the top-level entries it made, in order of name.

    They are unpacked under a temporary name beside that folder and moved when the archive has been read to its end,
    its checksums compared. A folder that is not there yet appears whole; in one that is, each entry does, and one
    that is there already is refused, not overwritten.
    """
    destination.parent.mkdir(parents=True, exist_ok=True)
    temporary = destination.parent / f".{secrets.token_hex(16)}.tmp"
    temporary.mkdir()
    try:
        with reading(archive, "a whole .tar, .tar.gz or .zip archive"):
            left = max_bytes
            for name, stream in _members(archive):
                target = temporary / _inside(archive, name)
                if stream is None:
                    target.mkdir(parents=True, exist_ok=True)
                    continue
                target.parent.mkdir(parents=True, exist_ok=True)
                left = _copy(archive, stream, target, left)
        return _moved(archive, temporary, destination)
    finally:
        shutil.rmtree(temporary, ignore_errors=True)


def _moved(archive: Path, temporary: Path, destination: Path) -> list[Path]:
    names = sorted(one.name for one in temporary.iterdir())
    if not names:
        raise problem(archive, "must hold files", "an empty archive", _REMEDY)
    there = next((destination / name for name in names if (destination / name).exists()), None)
    if there is not None:
        raise problem(archive, f"{there} must not exist yet", "it", "delete one of them")
    if destination.exists():
        for name in names:
            os.rename(temporary / name, destination / name)
    else:
        os.rename(temporary, destination)
    return [destination / name for name in names]


def _inside(archive: Path, name: str) -> Path:
    """A member's name as a relative path that stays inside the folder it is unpacked to, on every system."""
    posix, windows = PurePosixPath(name), PureWindowsPath(name)
    bad = posix.is_absolute() or windows.drive or windows.root or ".." in posix.parts or ".." in windows.parts
    if bad or "\0" in name:
        raise problem(archive, "members must stay inside the folder they are unpacked to", repr(name), _REMEDY)
    return Path(*posix.parts)


def _copy(archive: Path, stream: IO[bytes], target: Path, left: int) -> int:
    with open(target, "xb") as out:  # "x": an archive that holds a name twice is refused
        while piece := stream.read(_PIECE):
            left -= len(piece)
            if left < 0:
                raise problem(archive, "must unpack to a believable size", "more than allowed", _REMEDY)
            out.write(piece)
    return left


def _members(archive: Path) -> Iterator[tuple[str, IO[bytes] | None]]:
    """(name, content) of each file, (name, None) of each folder."""
    if zipfile.is_zipfile(archive):
        yield from _zip_members(archive)
        return
    with archive.open("rb") as raw:
        compressed = raw.read(2) == b"\x1f\x8b"
        raw.seek(0)
        if not compressed:
            _check_end(archive, raw)
            yield from _tar_members(archive, raw)
            return
        with gzip.GzipFile(fileobj=raw) as plain:
            yield from _tar_members(archive, plain)
            while plain.read(_PIECE):  # to the end, where gzip compares its checksum
                pass


def _check_end(archive: Path, raw: IO[bytes]) -> None:
    """A tar cut off between two members reads like a whole one, but for the block of zeros at its end."""
    size = raw.seek(0, os.SEEK_END)
    raw.seek(max(0, size - tarfile.BLOCKSIZE))
    if size % tarfile.BLOCKSIZE or any(raw.read()):
        raise problem(archive, "must be a whole .tar, .tar.gz or .zip archive", "one without an end", _REMEDY)
    raw.seek(0)


def _tar_members(archive: Path, plain: Any) -> Iterator[tuple[str, IO[bytes] | None]]:
    with tarfile.open(fileobj=plain, mode="r|") as tar:
        for member in tar:
            if member.isdir():
                yield member.name, None
            elif member.isreg() and not member.issparse():
                content = tar.extractfile(member)
                assert content is not None  # what a regular file always has
                yield member.name, content
            else:
                raise _no_file(archive, member.name)


def _zip_members(archive: Path) -> Iterator[tuple[str, IO[bytes] | None]]:
    with zipfile.ZipFile(archive) as whole:
        for info in whole.infolist():
            kind = (info.external_attr >> 16) & 0o170000  # of the Unix mode, 0 if there is none
            if info.is_dir():
                yield info.filename, None
            elif kind in (0, 0o100000):
                with whole.open(info) as content:
                    yield info.filename, content
            else:
                raise _no_file(archive, info.filename)


def _no_file(archive: Path, name: str) -> DataSetError:
    return problem(archive, "members must be files and folders", f"{name!r}, a link or device", _REMEDY)
