"""Predictions as .npz: NumPy arrays in an uncompressed zip archive, aligned so that they can be mapped into memory.

Arrays are read here and not by `np.load`, so that sizes are checked before memory is asked for, checksums always, and
nothing is ever unpickled.
"""

from __future__ import annotations

import os
import struct
import warnings
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import ExitStack
from math import prod
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

import numpy as np
from numpy.lib import format as npy
from numpy.typing import NDArray

from focalcal.predictions.chunk import rows_at_once, stored
from focalcal.predictions.errors import believable, listed, problem
from focalcal.predictions.header import KEY, Header, Names, kind_of, optional

if TYPE_CHECKING:
    from focalcal.predictions.record import Predictions

MARK = b"focalcal predictions"  # the archive's comment: its header cannot get lost unnoticed
ALIGNMENT = 64
_PADDING = 0xD935  # the extra field that zipalign pads with
_LOCAL_HEADER = struct.Struct("<4s5H3I2H")
_ZIP64_FIELD = 20
_PIECE = 1 << 20
_COMPRESSIONS = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)


def write(handle: IO[bytes], predictions: Predictions, header: str) -> None:
    """One member a field, in rows, and the header first."""
    with zipfile.ZipFile(handle, "w", zipfile.ZIP_STORED) as archive:
        archive.comment = MARK
        _write_member(archive, handle, KEY, [np.array(header)], ())
        step = rows_at_once(predictions.n_classes)
        for name in (predictions.kind, "labels", "ids", "groups", "posterior"):
            values = getattr(predictions, name)
            if values is not None:
                pieces = (stored(values[start : start + step]) for start in range(0, len(values), step))
                _write_member(archive, handle, name, pieces, tuple(values.shape))


def _write_member(archive: zipfile.ZipFile, handle: IO[bytes], name: str, pieces: Any, shape: tuple[int, ...]) -> None:
    info = zipfile.ZipInfo(f"{name}.npy")  # of 1980: the same predictions make the same bytes
    info.external_attr = 0o644 << 16
    start = handle.tell() + _LOCAL_HEADER.size + len(info.filename) + 4 + _ZIP64_FIELD
    padding = -start % ALIGNMENT
    info.extra = struct.pack("<HH", _PADDING, padding) + bytes(padding)
    with archive.open(info, "w", force_zip64=True) as out:
        for at, piece in enumerate(pieces):
            if not at:
                described = {"descr": npy.dtype_to_descr(piece.dtype), "fortran_order": False, "shape": shape}
                npy.write_array_header_1_0(out, described)
            out.write(piece.tobytes() if piece.dtype.kind == "U" else piece.data)


class _Member:
    """One array of an archive. Its header is read and checked, its data not yet."""

    def __init__(self, path: Path, size: int, archive: zipfile.ZipFile, info: zipfile.ZipInfo) -> None:
        self.path, self.info, self.name = path, info, info.filename.removesuffix(".npy")
        if info.flag_bits & 1:
            raise problem(path, f"{self.name!r} must not be encrypted", "a password", "unpack it yourself")
        if info.compress_type not in _COMPRESSIONS:  # zipfile unpacks those without a limit, whatever size is claimed
            found, remedy = f"compression method {info.compress_type}", "make it again with np.savez_compressed"
            raise problem(path, f"{self.name!r} must be stored or deflated", found, remedy)
        believable(path, info.file_size, size)  # even its .npy header can be a bomb
        self.stream = archive.open(info)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # old and damaged headers
            version = npy.read_magic(self.stream)
            read_header = {(1, 0): npy.read_array_header_1_0, (2, 0): npy.read_array_header_2_0}.get(version)
            if read_header is None:
                raise problem(path, f"{self.name!r} must be .npy of version 1 or 2", version, "save it with np.savez")
            self.shape, self.fortran, self.dtype = read_header(self.stream)
        self.header_size = self.stream.tell()
        self._check()

    def _check(self) -> None:
        if self.dtype.hasobject:
            raise problem(
                self.path,
                f"{self.name!r} must hold numbers or text",
                "pickled Python objects, which can run any code when read",
                "make it again with numbers, or strings of dtype str",
            )
        if (
            self.dtype.kind not in "fiubU"
            or not self.dtype.itemsize
            or any(type(d) is not int or d < 0 for d in self.shape)
        ):
            raise problem(
                self.path, f"{self.name!r} must hold numbers or text", f"{self.dtype} {self.shape}", "convert it"
            )
        held, claimed = self.info.file_size - self.header_size, prod(self.shape) * self.dtype.itemsize
        if held != claimed:
            raise problem(self.path, f"{self.name!r} must hold {claimed} bytes for {self.shape}", held, "make it again")

    def take(self, rows: int | None) -> NDArray[Any]:
        """The next rows, or the whole array."""
        shape = self.shape if rows is None else (rows, *self.shape[1:])
        flat = np.empty(prod(shape), self.dtype)
        room, at = memoryview(flat.view(np.uint8).data), 0
        while at < len(room):
            piece = self.stream.read(min(len(room) - at, _PIECE))
            if not piece:
                raise EOFError(f"{self.name!r} ends after {at} of {len(room)} bytes")
            room[at : at + len(piece)] = piece
            at += len(piece)
        return flat.reshape(shape, order="F" if self.fortran else "C")

    def end(self) -> None:
        """Read to the end, where zipfile compares the checksum."""
        while self.stream.read(_PIECE):
            pass

    def mapped(self, handle: IO[bytes]) -> NDArray[Any]:
        """The array on the file's pages, copied on write. Reads it once, for the checksum."""
        handle.seek(self.info.header_offset)
        local = _LOCAL_HEADER.unpack(handle.read(_LOCAL_HEADER.size))
        start = self.info.header_offset + _LOCAL_HEADER.size + local[-2] + local[-1]
        if self.info.compress_type != zipfile.ZIP_STORED or (start + self.header_size) % self.dtype.alignment:
            found = "unaligned" if self.info.compress_type == zipfile.ZIP_STORED else "compressed"
            remedy = "load it without mmap, then save it; or stream it"
            raise problem(
                self.path, f"{self.name!r} must be stored uncompressed and aligned to be mapped", found, remedy
            )
        raw = np.memmap(handle, np.uint8, "r", start, (self.info.file_size,))
        checksum = 0
        for at in range(0, len(raw), _PIECE):
            checksum = zlib.crc32(raw[at : at + _PIECE].data, checksum)
        if checksum != self.info.CRC:
            raise problem(self.path, f"{self.name!r} must have the checksum {self.info.CRC}", checksum, "make it again")
        order = "F" if self.fortran else "C"
        return np.memmap(handle, self.dtype, "c", start + self.header_size, self.shape, order)  # type: ignore[call-overload,no-any-return]


class _Archive:
    """An open archive whose members have been found."""

    def __init__(self, path: Path, names: Names, stack: ExitStack) -> None:
        self.path = path
        self.handle = stack.enter_context(path.open("rb"))
        self.zip = stack.enter_context(zipfile.ZipFile(self.handle))
        self.infos = {info.filename.removesuffix(".npy"): info for info in self.zip.infolist()}
        self.size = os.fstat(self.handle.fileno()).st_size
        if len(self.infos) < len(self.zip.infolist()):
            raise problem(path, "member names must differ", listed(self.zip.namelist()), "make it again")
        self.header = self._header()
        self.keys = [key for key in self.infos if key != KEY]
        present = [kind for kind in ("logits", "probs") if kind in self.infos]
        self.kind = kind_of(path, names, self.header, self.keys, present)
        self.members = {self.kind: self._named(getattr(names, self.kind) or self.kind)}
        self.members["labels"] = self._named(names.labels or "labels")
        for name in ("ids", "groups", "posterior"):
            given, needed = optional(name, names, self.header)
            if needed or (given is None and name in self.infos and self.header is None):
                self.members[name] = self._named(given or name)
        believable(path, sum(m.info.file_size for m in self.members.values()), self.size)
        self.rows = self._rows()
        self.multilabel = bool(self.header and self.header.multilabel)

    def _header(self) -> Header | None:
        if KEY not in self.infos:
            if self.zip.comment == MARK:
                raise problem(self.path, f"the archive must hold {KEY!r}", listed(list(self.infos)), "make it again")
            return None
        member = _Member(self.path, self.size, self.zip, self.infos[KEY])
        if member.dtype.kind != "U" or member.shape != ():
            raise problem(self.path, f"{KEY!r} must be one string", f"{member.dtype} {member.shape}", "make it again")
        text = str(member.take(None))
        member.end()
        return Header.parse(text, self.path)

    def _named(self, key: Any) -> _Member:
        if not isinstance(key, str) or key not in self.infos:
            remedy = "name the key of each field, e.g. load(path, logits='...', labels='...')"
            raise problem(self.path, f"the archive must hold {key!r}", listed(self.keys), remedy)
        return _Member(self.path, self.size, self.zip, self.infos[key])

    def _rows(self) -> int:
        shapes = {name: member.shape for name, member in self.members.items()}
        counts = {shape[0] if shape else None for shape in shapes.values()}
        rows = counts.pop()
        if counts or rows is None or (self.header and rows != self.header.rows):
            stated = f" ({self.header.rows} as stated)" if self.header else ""
            raise problem(self.path, f"all arrays must have one entry a row{stated}", shapes, "make it again")
        return rows

    def fields(self, arrays: dict[str, Any]) -> dict[str, Any]:
        return {**arrays, "multilabel": self.multilabel, "header": self.header}


def chunks(path: Path, names: Names, rows: int | None) -> Iterator[dict[str, Any]]:
    """The arrays in order, at most `rows` rows at a time, compressed or not; all in one with None."""
    with ExitStack() as stack:
        archive = _Archive(path, names, stack)
        if rows is not None and any(m.fortran and len(m.shape) > 1 for m in archive.members.values()):
            raise problem(
                path, "arrays must be stored row by row to be streamed", "column by column", "load it, then save it"
            )
        for start in range(0, archive.rows, rows or max(1, archive.rows)):
            take = None if rows is None else min(rows, archive.rows - start)
            arrays = {name: member.take(take) for name, member in archive.members.items()}
            if take is None or start + take == archive.rows:
                for member in archive.members.values():
                    member.end()
            yield archive.fields(arrays)
        if not archive.rows:
            raise problem(path, "the file must hold at least one row", 0, "make it again")


def mapped(path: Path, names: Names) -> dict[str, Any]:
    """The arrays on the file's pages."""
    with ExitStack() as stack:
        archive = _Archive(path, names, stack)
        widths = {archive.header.dtype, archive.header.posterior} if archive.header else set()
        if widths & {"float16", "bfloat16"}:
            raise problem(path, "half precision is stored wider, so not mapped", "a half dtype", "load it without mmap")
        return archive.fields({name: member.mapped(archive.handle) for name, member in archive.members.items()})
