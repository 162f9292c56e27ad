"""Archives unpacked safely: every member inside the target folder, files and folders only, all of it or nothing."""

from __future__ import annotations

import gzip
import os
import secrets
import shutil
import tarfile
import zipfile
from pathlib import Path

from focalcal.lab.data.errors import problem, reading

MAX_BYTES = 200 << 30  # what an archive may unpack to
_PIECE = 1 << 20


def unpack(archive: Path, destination: Path, *, max_bytes: int = MAX_BYTES) -> list[Path]:
    """Put the members of a .tar, .tar.gz or .zip into `destination`; the top-level entries it made, in order of name.

    They are unpacked under a temporary name beside that folder and moved when the archive has been read to its end,
    its checksums compared. A folder that is not there yet appears whole; in one that is, each entry does, and one
    that is there already is refused, not overwritten.
    """
    destination.parent.mkdir(parents=True, exist_ok=True)
    temporary = destination.parent / f".{secrets.token_hex(16)}.tmp"
    temporary.mkdir()
    try:
        with reading(archive, "a whole .tar, .tar.gz or .zip archive"):
            extract = _extract_zip if zipfile.is_zipfile(archive) else _extract_tar
            extract(archive, temporary, max_bytes)
        return _move(archive, temporary, destination)
    finally:
        shutil.rmtree(temporary, ignore_errors=True)


def _extract_tar(archive: Path, folder: Path, max_bytes: int) -> None:
    unpacked = 0

    def check(member: tarfile.TarInfo, path: str) -> tarfile.TarInfo | None:
        nonlocal unpacked
        unpacked += member.size
        _check_size(unpacked, max_bytes)
        if not (member.isreg() or member.isdir()):
            raise ValueError(f"{member.name!r} is a link or device, which no data set needs")
        return tarfile.data_filter(member, path)  # refuses what would lie outside the folder

    with archive.open("rb") as start:
        compressed = start.read(2) == b"\x1f\x8b"
    with gzip.open(archive) if compressed else archive.open("rb") as plain:
        with tarfile.open(fileobj=plain, mode="r|") as tar:
            tar.extractall(folder, filter=check)
        while plain.read(_PIECE):  # to the end, where gzip compares its checksum
            pass


def _extract_zip(archive: Path, folder: Path, max_bytes: int) -> None:
    with zipfile.ZipFile(archive) as whole:
        _check_size(sum(member.file_size for member in whole.infolist()), max_bytes)
        whole.extractall(folder)  # names that lead outside are cut to what lies inside, and links become files


def _check_size(size: int, max_bytes: int) -> None:
    if size > max_bytes:
        raise ValueError(f"it unpacks to more than {max_bytes} bytes")


def _move(archive: Path, temporary: Path, destination: Path) -> list[Path]:
    made = [destination / name for name in sorted(os.listdir(temporary))]
    if not made:
        raise problem(archive, "must hold files", "an empty archive", "delete it and fetch it again")
    if there := [path for path in made if path.exists()]:
        raise problem(archive, f"{there[0]} must not exist yet", "it", "delete one of them")
    if destination.exists():
        for path in made:
            os.rename(temporary / path.name, path)
    else:
        os.rename(temporary, destination)
    return made
