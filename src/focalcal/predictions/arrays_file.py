"""Predictions as NumPy arrays: a .npz archive, or a folder of .npy files, which is the same archive unpacked.

Arrays are named `logits` or `probs`, `labels`, `ids`, `groups`, `clusters`, `weights`, `times`, `posterior`; the header
is the string `focalcal`.
"""

from __future__ import annotations

import zipfile
from collections.abc import Iterator
from contextlib import ExitStack
from math import prod
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import IO, TYPE_CHECKING, Any

import numpy as np
from numpy.lib import format as npy
from numpy.typing import NDArray

from focalcal.core.atomic import atomic_file
from focalcal.predictions.header import (
    KEY,
    KINDS,
    OPTIONAL,
    Header,
    Names,
    PredictionsFileError,
    check_unpacked_size,
    kind_of,
    listed,
)

if TYPE_CHECKING:
    from focalcal.predictions.record import Predictions

_HEADER_READERS = {(1, 0): npy.read_array_header_1_0, (2, 0): npy.read_array_header_2_0}


def stored(values: NDArray[Any]) -> NDArray[Any]:
    """Values as they are written: row by row, little-endian, half precision widened to float32, truths as 0 and 1."""
    if values.dtype == np.float16:
        values = values.astype(np.float32)
    elif values.dtype == np.bool_:
        values = values.view(np.uint8)
    return np.ascontiguousarray(values, values.dtype.newbyteorder("<"))


def write_archive(handle: IO[bytes], predictions: Predictions) -> None:
    """A .npz, uncompressed: scores hardly shrink."""
    np.savez(handle, **_arrays(predictions))  # type: ignore[arg-type]


def write_folder(folder: Path, predictions: Predictions) -> None:
    """A new folder of .npy files; it takes its name when all of them are on the disk."""
    with TemporaryDirectory(dir=folder.parent, prefix=".", suffix=".tmp") as temporary:
        inside = Path(temporary, folder.name)
        inside.mkdir()  # with the usual permissions, which the temporary folder does not have
        for name, array in _arrays(predictions).items():
            with atomic_file(inside / f"{name}.npy") as handle:
                np.save(handle, array, allow_pickle=False)
        inside.rename(folder)


def _arrays(predictions: Predictions) -> dict[str, NDArray[Any]]:
    fields = {name: getattr(predictions, name) for name in (predictions.kind, "labels", *OPTIONAL)}
    arrays = {name: stored(values) for name, values in fields.items() if values is not None}
    return {KEY: np.array(Header.of(predictions)), **arrays}


def row_batches(
    path: Path, names: Names, rows: int | None, *, mmap: bool = False
) -> Iterator[tuple[Header | None, dict[str, Any]]]:
    """(header, fields) of at most `rows` rows at a time; of all rows with None, left on the disk with `mmap`."""
    with ExitStack() as stack:
        if path.suffix.lower() == ".npz":
            sources: dict[str, Any] = _members(stack.enter_context(zipfile.ZipFile(path)), path.stat().st_size)
        else:
            sources = _files(path, names)
        header = Header.parse(str(_whole(KEY, sources[KEY]))) if KEY in sources else None
        if path.suffix.lower() == ".npy" and header and header.kind != path.stem:
            header = None  # of other arrays, which stand beside the one that is named
        keys = _keys(path, names, header, sources)
        multilabel = {"multilabel": bool(header and header.multilabel)}
        if mmap:
            mapped = {field: _mapped(key, sources[key]) for field, key in keys.items()}
            yield header, mapped | multilabel
        elif rows is None:
            yield header, {field: _whole(key, sources[key]) for field, key in keys.items()} | multilabel
        else:
            readers = {
                field: _RowReader(key, stack.enter_context(sources[key].open("rb"))) for field, key in keys.items()
            }
            lengths = {field: reader.shape[0] for field, reader in readers.items()}
            if len(set(lengths.values())) > 1:
                raise PredictionsFileError(f"all arrays must have the same number of rows, got {lengths}; fix them")
            total = lengths["labels"]
            for start in range(0, total, rows):
                count = min(rows, total - start)
                yield header, {field: reader.take(count) for field, reader in readers.items()} | multilabel
            for reader in readers.values():
                _check_end(reader.key, reader.stream)


def _members(archive: zipfile.ZipFile, size: int) -> dict[str, zipfile.Path]:
    """The arrays of an archive by name."""
    members = archive.infolist()
    if any(member.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED) for member in members):
        # zipfile unpacks bzip2 and LZMA without a limit, whatever size a member claims
        raise PredictionsFileError("arrays must be stored or deflated, got another compression; use np.savez")
    check_unpacked_size(sum(member.file_size for member in members), size)
    for member in members:
        archive.open(member).close()  # compares its name in the directory, the header's too, with that beside its data
    return {name.removesuffix(".npy"): zipfile.Path(archive, name) for name in archive.namelist()}


def _files(path: Path, names: Names) -> dict[str, Path]:
    """The arrays of a folder by name, and those whose paths the caller names."""
    folder = path if path.is_dir() else path.parent
    files = {file.stem: file for file in sorted(folder.glob("*.npy"))}
    named = [getattr(names, name) for name in (*KINDS, "labels", *OPTIONAL)]
    paths = {name: Path(name) for name in named if isinstance(name, str) and name.endswith(".npy")}
    return files | {name: file for name, file in paths.items() if file.is_file()}


def _keys(path: Path, names: Names, header: Header | None, sources: dict[str, Any]) -> dict[str, str]:
    """The name of the array that holds each field."""
    existing = [key for key in sources if key != KEY]
    present = [path.stem] if path.suffix.lower() == ".npy" else existing
    kind = kind_of(names, header, existing, [kind for kind in KINDS if kind in present])
    fields = [kind, "labels", *(name for name in OPTIONAL if names.reads(name, header, present=name in sources))]
    keys = {field: getattr(names, field) or field for field in fields}
    if isinstance(several := keys.get("groups"), list | tuple):
        keys |= {f"groups.{own}": own for own in several}
        del keys["groups"]
    for field, key in keys.items():
        if not isinstance(key, str) or key not in sources:
            raise PredictionsFileError(
                f"there must be an array {key!r} with the {field}, got {listed(existing)}; "
                f"name the array, e.g. load(path, {field}='...'), or the path of a .npy file"
            )
    return keys


def _whole(key: str, source: Path | zipfile.Path) -> NDArray[Any]:
    with source.open("rb") as stream:
        try:
            array: NDArray[Any] = np.load(stream, allow_pickle=False)
        except ValueError as error:
            raise _not_an_array(key, error) from error
        _check_end(key, stream)
        return array


def _mapped(key: str, source: Path) -> NDArray[Any]:
    array = np.load(source, mmap_mode="c", allow_pickle=False)
    with source.open("rb") as stream:
        stream.seek(array.offset + array.nbytes)
        _check_end(key, stream)
    return array  # type: ignore[no-any-return]


def _check_end(key: str, stream: IO[bytes]) -> None:
    """Refuse what is left behind an array; at the end of a member zipfile has compared its checksum."""
    if stream.read(1):
        raise PredictionsFileError(f"{key!r} must end where its shape says, got more bytes; make it again")


def _not_an_array(key: str, error: object) -> PredictionsFileError:
    return PredictionsFileError(
        f"{key!r} must be an array of numbers or text, got: {error}; make it again with np.savez or np.save, "
        "text with dtype=str: pickled objects are never opened"
    )


class _RowReader:
    """The array of a .npy stream, some rows at a time."""

    def __init__(self, key: str, stream: IO[bytes]) -> None:
        self.key, self.stream = key, stream
        try:
            self.shape, by_column, self.dtype = _HEADER_READERS[npy.read_magic(stream)](stream)
        except (KeyError, ValueError) as error:
            raise _not_an_array(key, error) from error
        if self.dtype.hasobject or not self.shape:
            raise _not_an_array(key, f"{self.dtype} of shape {self.shape}")
        if by_column and len(self.shape) > 1:
            raise PredictionsFileError(
                f"{key!r} must be stored row by row to be streamed, got column by column; load it, then save it"
            )

    def take(self, rows: int) -> NDArray[Any]:
        """The next rows."""
        shape = (rows, *self.shape[1:])
        content = self.stream.read(prod(shape) * self.dtype.itemsize)
        return np.frombuffer(content, self.dtype, prod(shape)).reshape(shape)
