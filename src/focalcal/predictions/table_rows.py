"""Tables with all of their columns, batch by batch: what production has, with or without labels, in and out again."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

import numpy as np

from focalcal.predictions.field_checks import shares_of_percentages
from focalcal.predictions.foreign_formats import refuse_foreign
from focalcal.predictions.header import KEY, Names, PredictionsFileError
from focalcal.predictions.locations import Location, Source, files_below, standard_input, suffix_of
from focalcal.predictions.table_file import READERS, matrix_of, refuse_missing, with_numbers
from focalcal.predictions.text_cells import arrow_module
from focalcal.predictions.text_tables import MARK

if TYPE_CHECKING:
    from numpy.typing import NDArray

_BATCH = 1 << 18  # rows of a .parquet file in memory


def open_rows(source: Source | IO[bytes], names: Names, stack: ExitStack) -> Any:
    """The table in a file, or in what a stream sends; `stack` closes what is opened."""
    place = source if isinstance(source, Path | Location) else standard_input(source)
    suffix = suffix_of(place)
    if isinstance(place, Path):
        refuse_foreign(place, suffix)
    if suffix not in READERS:
        raise PredictionsFileError(f"rows must be in a table, {', '.join(READERS)}, got {suffix!r}; rename it")
    return READERS[suffix](place, names, stack)


def whole_batches(table: Any, numbers: Sequence[str], *, keep_text: bool, percent: bool = False) -> Iterator[Any]:
    """Arrow's tables with every column, at least one; those of `numbers` as `numbers_of` takes them.

    With `keep_text` the rest of a text is as it stands there, to be written so; otherwise it is what Arrow finds.
    """
    arrow, schema = arrow_module(), None
    types = dict.fromkeys(table.columns, arrow.string()) if keep_text else {}
    kinds = dict.fromkeys(numbers, arrow.float64())
    options = {"null_values": () if keep_text else None, "percent": percent, "rows": _BATCH, "dictionaries": False}
    try:
        for batch in table.batches(table.columns, types, numbers=kinds, **options):
            schema = batch.schema
            yield arrow.Table.from_batches([batch])
    except arrow.ArrowInvalid as error:
        reason = " ".join(str(error).split())[:300]
        raise PredictionsFileError(
            f"{reason}; fix the cell, or write a .csv, which keeps the other columns as text"
        ) from error
    if schema is None:
        texts = arrow.schema([(name, types.get(name, arrow.string())) for name in table.columns])
        yield (texts if table.text else table.schema(table.columns)).empty_table()


@contextmanager
def table_writer(handle: IO[bytes], schema: Any, suffix: str) -> Iterator[Any]:
    """Something with `write(table)`, for tables of this schema; its metadata are those of the file."""
    if suffix == ".parquet":
        with arrow_module(".parquet").ParquetWriter(handle, schema, write_page_checksum=True) as writer:
            yield writer.write_table
        return
    stated = (schema.metadata or {}).get(KEY.encode())
    if stated is not None:
        handle.write(f"{MARK} {stated.decode()}\n".encode())
    names = io.StringIO()
    csv.writer(names, lineterminator="\n").writerow(schema.names)
    handle.write(names.getvalue().encode())
    yield lambda table: handle.write(_csv_bytes(table))


def _csv_bytes(table: Any) -> Any:
    """Without quotes if no text needs them: a number that is kept as text stays one to look at."""
    arrow, writer = arrow_module(), arrow_module(".csv")
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


def numbers_of(rows: Any, table: Any, columns: Sequence[str], first_row: int, *, percent: bool) -> NDArray[np.floating]:
    """Columns of the tables of `rows` side by side, or one of lists, as (rows, K) in float32 or float64.

    A missing value is refused. With `percent` percentages, which may be text, become shares of one.
    """
    if not table.num_rows:
        return np.empty((0, len(columns)))
    kinds = dict.fromkeys(columns, arrow_module().float64())
    table = with_numbers(rows, table.select(list(columns)), kinds, first_row, percent=columns if percent else ())
    refuse_missing(table, columns, first_row, "fill them in, or leave the rows out")
    matrix = matrix_of(table, list(columns), numbers="iuf")
    if matrix.dtype.kind not in "iuf":
        raise PredictionsFileError(
            f"column {columns[0]!r} must hold numbers, got {table.column(columns[0]).type}; name other columns"
        )
    if percent:
        matrix = shares_of_percentages("probs", matrix)
    single = matrix.dtype.kind == "f" and matrix.dtype.itemsize <= 4
    return matrix.astype(np.float32 if single else np.float64, copy=False)


def table_parts(folder: Path) -> list[Path]:
    """The tables of a folder and of those in it, in the order of their names, but for hidden ones."""
    parts = [path for path, _ in files_below(folder) if isinstance(path, Path)]
    foreign = [path for path in parts if suffix_of(path) not in READERS]
    if foreign or not parts:
        got = f"{foreign[0].relative_to(folder)}" if foreign else "no file"
        raise PredictionsFileError(
            f"{folder} must hold .parquet or .csv files and nothing else, got {got}; name the files one by one"
        )
    return parts
