"""Where tables are: files and folders of this machine, addresses of object stores and web servers, standard input."""

from __future__ import annotations

import gzip
import os
import re
import shutil
import weakref
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from tempfile import mkdtemp
from typing import IO, Any
from urllib.parse import unquote, urlsplit

from focalcal.core.extras import required
from focalcal.predictions.foreign_formats import suffix_of_content
from focalcal.predictions.header import PredictionsFileError

_ADDRESS = re.compile(r"([a-z][a-z0-9+.-]+)://.+", re.S)
_STORES = ("s3", "gs", "gcs")  # that Arrow reads itself, only the bytes that are needed
_NO_VALUE = "__HIVE_DEFAULT_PARTITION__"
COMPRESSIONS = {".gz": "gzip", ".bz2": "bz2", ".zst": "zstd"}  # of text tables


@dataclass(frozen=True)
class Location:
    """Something to read that has no path of its own here: in an object store, or a copy of what was sent or exported.

    address     what messages call it
    filesystem  one of pyarrow, with `path` in it
    copy        the temporary folder of the copy, which goes with this object
    """

    address: str
    filesystem: Any
    path: str
    copy: str | None = None

    def __post_init__(self) -> None:
        """Remove the copy when nobody reads it any more."""
        if self.copy is not None:
            weakref.finalize(self, shutil.rmtree, self.copy, ignore_errors=True)

    def __str__(self) -> str:
        """What the caller called it."""
        return self.address

    @property
    def name(self) -> str:
        """The last part of the path."""
        return PurePosixPath(self.path).name

    @property
    def suffix(self) -> str:
        """What the name ends in."""
        return PurePosixPath(self.path).suffix

    @property
    def local(self) -> Path | None:
        """The copy, if there is one."""
        return None if self.copy is None else Path(self.path)

    def __reduce__(self) -> Any:
        """To another process of this machine, which reads the same copy while this one keeps it."""
        return Location, (self.address, self.filesystem, self.path)


Source = Path | Location


def location(place: str | os.PathLike[str] | Location) -> Source:
    """A path of this machine, or what an address such as s3://bucket/rows.parquet or https://... names."""
    if isinstance(place, Location):
        return place
    match = _ADDRESS.fullmatch(place) if isinstance(place, str) else None
    if match is None:
        return Path(place)
    if match[1] not in _STORES:
        return _fetched(str(place))
    filesystems = required("pyarrow.fs", purpose=f"Reading {match[1]}:// addresses")
    try:
        filesystem, path = filesystems.FileSystem.from_uri(re.sub("^gcs:", "gs:", str(place)))
        stored = Location(str(place), filesystem, path)
        if suffix_of(stored) in (".npz", ".npy"):
            return copied(str(place), stored.name, filesystem.open_input_stream(path))
    except (OSError, ValueError) as error:
        raise _unreachable(str(place), error) from error
    return stored


def _fetched(address: str) -> Location:
    """A copy of what a server sends, by fsspec, which knows http, https, az, hf, sftp and more."""
    fsspec = required("fsspec", purpose="Reading addresses")
    try:
        filesystem, path = fsspec.core.url_to_fs(address)
        name = PurePosixPath(unquote(urlsplit(address).path)).name or "rows"
        with filesystem.open(path, "rb") as stream:
            return copied(address, name, stream)
    except ImportError as error:  # of fsspec for its protocols: "Please install aiohttp", and the like
        raise ModuleNotFoundError(f"{address} needs another package: {error}", name=error.name) from error
    except PredictionsFileError:
        raise
    except Exception as error:  # each protocol has errors of its own
        raise _unreachable(address, error) from error


def _unreachable(address: str, error: Exception) -> PredictionsFileError:
    reason = " ".join(f"{type(error).__name__}: {error}".split())[:300]
    return PredictionsFileError(f"{address}: cannot be read ({reason}); check the address, the region and your rights")


def copied(address: str, name: str, stream: IO[bytes]) -> Location:
    """A copy of a stream in a folder that goes with the result."""
    place = local_copy(address, name)
    with open(place.path, "wb") as file:
        shutil.copyfileobj(stream, file, 1 << 20)
    return place


def local_copy(address: str, name: str) -> Location:
    """A file to be written in a temporary folder, under the address that the user knows."""
    filesystems = required("pyarrow.fs", purpose="Reading predictions as a table")
    folder = mkdtemp(prefix="focalcal-")
    return Location(address, filesystems.LocalFileSystem(), str(Path(folder, name)), folder)


def standard_input(stream: IO[bytes]) -> Location:
    """The rows that are sent to standard input: .parquet, JSON lines or text, as the first bytes say."""
    start = stream.read(16)
    if start.startswith(b"\x1f\x8b"):
        stream = gzip.GzipFile(fileobj=_Joined(start, stream))  # type: ignore[call-overload]
        start = stream.read(16)
    if not start:
        raise PredictionsFileError("standard input: there must be rows, got nothing; check the command before |")
    name = f"rows{suffix_of_content(start) or ('.jsonl' if start.lstrip().startswith(b'{') else '.csv')}"
    return copied("standard input", name, _Joined(start, stream))  # type: ignore[arg-type]


class _Joined:
    """Bytes that were read, then the rest of the stream."""

    def __init__(self, start: bytes, rest: IO[bytes]) -> None:
        self._start, self._rest = start, rest

    def read(self, size: int = -1) -> bytes:
        """At most so many bytes."""
        first = self._start if size < 0 else self._start[:size]
        self._start = self._start[len(first) :]
        return first + (self._rest.read(size if size < 0 else size - len(first)) if size != len(first) else b"")


def opened(source: Source) -> Any:
    """Arrow's own file: its threads may hold it while Python ends, which aborts if it is one of Python's."""
    arrow = required("pyarrow", purpose="Reading or writing predictions as .csv or .parquet")
    return arrow.OSFile(str(source)) if isinstance(source, Path) else source.filesystem.open_input_file(source.path)


def exists(source: Source) -> bool:
    """Whether there is a file or folder."""
    return source.exists() if isinstance(source, Path) else _kind(source) != "NotFound"


def is_folder(source: Source) -> bool:
    """Whether it is one."""
    return source.is_dir() if isinstance(source, Path) else _kind(source) == "Directory"


def _kind(source: Location) -> str:
    try:
        return str(source.filesystem.get_file_info(source.path).type.name)
    except OSError as error:
        raise _unreachable(source.address, error) from error


def suffix_of(source: Source) -> str:
    """What the name ends in, in lower case, without that of a compression: .csv of rows.csv.gz."""
    name = PurePosixPath(source.name.lower())
    return PurePosixPath(name.stem).suffix if name.suffix in COMPRESSIONS and len(name.suffixes) > 1 else name.suffix


def compression_of(source: Source) -> str | None:
    """How the bytes of a text table are compressed."""
    return COMPRESSIONS.get(source.suffix.lower())


def files_below(folder: Source) -> Iterator[tuple[Source, tuple[str, ...]]]:
    """The files of a folder however deep, in the order of their names, with their path in it; no hidden ones."""
    if isinstance(folder, Path):
        found: Iterable[tuple[Source, tuple[str, ...]]] = (
            (path, path.relative_to(folder).parts) for path in folder.rglob("*") if path.is_file()
        )
    else:
        selector = required("pyarrow.fs", purpose="Reading a folder").FileSelector(folder.path, recursive=True)
        head = folder.address.split("?")[0].rstrip("/")
        inside = {
            info.path: PurePosixPath(info.path).relative_to(folder.path).parts
            for info in folder.filesystem.get_file_info(selector)
            if info.is_file
        }
        found = ((Location("/".join([head, *parts]), folder.filesystem, path), parts) for path, parts in inside.items())
    for path, parts in sorted(found, key=lambda each: each[1]):
        if not any(name.startswith((".", "_")) for name in parts):
            yield path, parts


def folder_values(source: Source) -> dict[str, str | None]:
    """What the names of the folders say of every row: month=2026-01/part.parquet; all is text."""
    path = source.parent.parts if isinstance(source, Path) else PurePosixPath(source.path).parent.parts
    pairs = [part.partition("=") for part in path]
    return {
        unquote(name): None if value == _NO_VALUE else unquote(value)
        for name, equals, value in pairs
        if name and equals
    }
