"""Tables with all of their columns, batch by batch: what production has, with or without labels, in and out again."""

from __future__ import annotations

import csv
import io
import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

import numpy as np

from focalcal.predictions.header import KEY, Header, PredictionsFileError
from focalcal.predictions.table_file import _arrow, _check_range, _csv_columns, _matrix

if TYPE_CHECKING:
    from numpy.typing import NDArray

_BATCH = 1 << 18  # rows of a .parquet file in memory
_BLOCK = 1 << 24  # bytes of a .csv file
MARK = f"# {KEY}: "  # of our header, before the rows of a .csv


class ParquetRows:
    """The rows of a .parquet file with every column as it is."""

    def __init__(self, path: Path) -> None:
        self._file = _arrow(".parquet").ParquetFile(path, pre_buffer=False)
        schema = self._file.schema_arrow
        stated = (schema.metadata or {}).get(KEY.encode())
        self.columns: list[str] = schema.names
        self.header = None if stated is None else Header.parse(stated.decode())

    def batches(self, numbers: Sequence[str]) -> Iterator[Any]:
        """Arrow's tables, at least one."""
        none = True
        for batch in self._file.iter_batches(_BATCH):
            none = False
            yield _arrow().Table.from_batches([batch])
        if none:
            yield self._file.schema_arrow.empty_table()


class CsvRows:
    """The rows of a .csv file or of standard input: numbers in the columns asked for, the rest as Arrow finds it.

    With `keep_text` the rest is the text that stands there, to be written as it is.
    """

    def __init__(self, handle: IO[bytes], *, keep_text: bool) -> None:
        self._handle, self._keep_text = handle, keep_text
        self.header, self.columns = _csv_columns(handle)
        if not self.columns:
            raise PredictionsFileError("a .csv must begin with the names of its columns, got nothing; make it again")

    def batches(self, numbers: Sequence[str]) -> Iterator[Any]:
        """Arrow's tables, at least one."""
        arrow, reader = _arrow(), _arrow(".csv")
        types = dict.fromkeys(self.columns, arrow.string()) if self._keep_text else {}
        types |= dict.fromkeys(numbers, arrow.float64())
        first_row, none = 0, True
        for block in _blocks(self._handle):
            options = (
                reader.ReadOptions(column_names=self.columns, block_size=len(block) + 1),
                reader.ParseOptions(newlines_in_values=True),
            )

            def read(kinds: dict[str, Any], block: bytes = block, options: Any = options, **only: Any) -> Any:
                as_they_are = reader.ConvertOptions(
                    column_types=kinds, null_values=[] if self._keep_text else None, **only
                )
                return reader.read_csv(arrow.BufferReader(block), *options, as_they_are)

            try:
                table = read(types)
            except arrow.ArrowInvalid as error:
                reason = " ".join(str(error).split())[:300]
                raise PredictionsFileError(
                    f"{reason}, in the {len(block):,} bytes that begin with row {first_row}; fix the cell, or write a "
                    ".csv, which keeps the other columns as text"
                ) from error
            if overflown := [name for name in numbers if np.isinf(table.column(name)).any()]:
                text = read(dict.fromkeys(overflown, arrow.string()), include_columns=overflown)
                _check_range(table.select(overflown), text, first_row)
            types = {field.name: field.type for field in table.schema}  # the first block says the types of all
            first_row, none = first_row + table.num_rows, False
            yield table
        if none:
            fields = [(name, types.get(name, arrow.string())) for name in self.columns]
            yield arrow.schema(fields).empty_table()


def _blocks(handle: IO[bytes]) -> Iterator[bytes]:
    """Whole lines, some megabytes at a time; a line end inside of quotes ends none."""
    rest = b""
    while data := handle.read(_BLOCK):
        rest += data
        end = rest.rfind(b"\n")
        quotes = rest.count(b'"', 0, end + 1)
        while end >= 0 and quotes % 2:
            before = rest.rfind(b"\n", 0, end)
            quotes -= rest.count(b'"', before + 1, end + 1)
            end = before
        if end >= 0:
            if rest[: end + 1].strip():
                yield rest[: end + 1]
            rest = rest[end + 1 :]
    if rest.strip():
        yield rest


@contextmanager
def table_writer(handle: IO[bytes], schema: Any, suffix: str) -> Iterator[Any]:
    """Something with `write(table)`, for tables of this schema; its metadata are those of the file."""
    if suffix == ".parquet":
        with _arrow(".parquet").ParquetWriter(handle, schema, write_page_checksum=True) as writer:
            yield writer.write_table
        return
    stated = (schema.metadata or {}).get(KEY.encode())
    if stated is not None:
        handle.write(f"{MARK}{stated.decode()}\n".encode())
    names = io.StringIO()
    csv.writer(names, lineterminator="\n").writerow(schema.names)
    handle.write(names.getvalue().encode())
    yield lambda table: handle.write(_csv_bytes(table))


def _csv_bytes(table: Any) -> Any:
    """Without quotes if no text needs them: a number that is kept as text stays one to look at."""
    arrow, writer = _arrow(), _arrow(".csv")
    for style in ("none", "needed"):
        out = arrow.BufferOutputStream()
        try:
            writer.write_csv(table, out, writer.WriteOptions(include_header=False, quoting_style=style))
        except arrow.ArrowInvalid:
            if style == "needed":
                raise
            continue
        return out.getvalue()
    raise AssertionError


def numbers_of(table: Any, columns: Sequence[str], first_row: int) -> NDArray[np.floating]:
    """Columns side by side, or one of lists, as (rows, K) in float32 or float64; a missing value is refused."""
    arrow, types = _arrow(), _arrow(".types")
    for name in columns:
        column = table.column(name)
        if column.null_count:
            at = first_row + int(np.flatnonzero(column.is_null())[0])
            raise PredictionsFileError(
                f"column {name!r} must have a value in every row, got nothing in row {at} ({column.null_count} such "
                "rows from there on); fill them in, or leave the rows out"
            )
        if types.is_decimal(column.type):
            table = table.set_column(table.schema.get_field_index(name), name, column.cast(arrow.float64()))
    if not table.num_rows:
        return np.empty((0, len(columns)))
    matrix = _matrix(table, list(columns), numbers="iuf")
    if matrix.dtype.kind not in "iuf":
        raise PredictionsFileError(
            f"column {columns[0]!r} must hold numbers, got {table.column(columns[0]).type}; name other columns"
        )
    single = matrix.dtype.kind == "f" and matrix.dtype.itemsize <= 4
    return matrix.astype(np.float32 if single else np.float64, copy=False)


def table_parts(folder: Path) -> list[Path]:
    """The .parquet and .csv files of a folder and of those in it, in the order of their names, but for hidden ones."""
    parts = sorted(
        path
        for path in folder.rglob("*")
        if path.is_file() and not any(name.startswith((".", "_")) for name in path.relative_to(folder).parts)
    )
    foreign = [path for path in parts if path.suffix.lower() not in (".parquet", ".csv")]
    if foreign or not parts:
        got = f"{foreign[0].relative_to(folder)}" if foreign else "no file"
        raise PredictionsFileError(
            f"{folder} must hold .parquet or .csv files and nothing else, got {got}; name the files one by one"
        )
    return parts


def open_rows(source: Path | IO[bytes], stack: Any, *, keep_text: bool) -> ParquetRows | CsvRows:
    """The rows of a file, or those of a stream of CSV; `stack` (an ExitStack) closes what is opened."""
    if not isinstance(source, os.PathLike):
        return CsvRows(source, keep_text=keep_text)
    if source.suffix.lower() == ".parquet":
        return ParquetRows(source)
    return CsvRows(stack.enter_context(source.open("rb")), keep_text=keep_text)
