"""Predictions as a table, .csv or .parquet, both read and written by pyarrow: one column per class.

`label`, `logit_0` ... `logit_{K-1}` or `prob_0` ..., and optionally `id`, `group` (or `group_NAME` of several),
`cluster`, `weight`, `time`, `posterior_0` ...; with multilabel
`label_0` ... `label_{L-1}` instead of `label`. Other names are found by `columns`, other columns are ignored. The
header is metadata of a .parquet, and the first line of a .csv, `# focalcal: {...}`.
"""

from __future__ import annotations

import csv
import io
import os
import re
from collections.abc import Iterable, Iterator
from functools import partial
from itertools import islice
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from focalcal.core.extras import required
from focalcal.predictions.arrays_file import stored
from focalcal.predictions.columns import COLUMNS, PREFIXES, Layout, check_width, find_layout
from focalcal.predictions.header import (
    KEY,
    KINDS,
    Header,
    Names,
    PredictionsFileError,
    check_unpacked_size,
)

if TYPE_CHECKING:
    from focalcal.predictions.record import Predictions

SUFFIXES = (".parquet", ".csv")
_PREFIX = {"labels": "label"} | {name: prefixes[0] for name, prefixes in PREFIXES.items()}
_MARK = f"# {KEY}:".encode()
_BYTE_ORDER_MARK = b"\xef\xbb\xbf"
_CSV_BLOCK = 1 << 24  # bytes read at once; a line must fit
_PARQUET_BATCH = 65536  # rows
_NO_NUMBER = re.compile(  # in Arrow's words, which are the only place that has the row
    r"In CSV column #(?P<column>\d+): Row #(?P<row>\d+): CSV conversion error to \w+: invalid value '(?P<value>.*)'",
    re.S,
)


def _arrow(module: str = "") -> Any:
    return required(f"pyarrow{module}", purpose="Reading or writing predictions as .csv or .parquet")


def write(handle: IO[bytes], predictions: Predictions, suffix: str) -> None:
    """The rows, at most 64 MB of scores at a time."""
    schema = _table(predictions[:1]).schema
    if suffix == ".csv":
        names = io.StringIO()
        csv.writer(names, lineterminator="\n").writerow(schema.names)  # the name of a group may have a comma
        handle.write(_MARK + f" {Header.of(predictions)}\n{names.getvalue()}".encode())
        options = _arrow(".csv").WriteOptions(include_header=False)
        writer = _arrow(".csv").CSVWriter(handle, schema, write_options=options)
    else:
        schema = schema.with_metadata({KEY: Header.of(predictions)})
        repeated = [name for name in schema.names if name in ("id", "cluster", "label") or name.startswith("group")]
        # Scores hardly shrink, and numbers without a codec are not read with another one when a footer is damaged.
        codecs = {field.name: "snappy" if _is_text(field.type) else "none" for field in schema}
        writer = _arrow(".parquet").ParquetWriter(
            handle, schema, use_dictionary=repeated, compression=codecs, write_page_checksum=True
        )
    with writer:
        for batch in predictions.batches(max(1, min(65536, (1 << 24) // predictions.n_classes))):
            writer.write_table(_table(batch))


def _table(predictions: Predictions) -> Any:
    """Rows as an Arrow table."""
    arrow = _arrow()
    columns: dict[str, Any] = {column: getattr(predictions, name) for name, column in COLUMNS.items()}
    if predictions.group_names is not None:
        of_groups = columns.pop("group").T
        columns |= {f"group_{name}": own for name, own in zip(predictions.group_names, of_groups, strict=True)}
    matrices = {predictions.kind: predictions.scores, "posterior": predictions.posterior}
    if predictions.multilabel:
        matrices = {"labels": predictions.labels, **matrices}
    else:
        columns["label"] = stored(predictions.labels)
    for name, matrix in matrices.items():
        if matrix is not None:
            values = stored(matrix)
            columns |= {f"{_PREFIX[name]}_{k}": values[:, k] for k in range(predictions.n_classes)}
    arrays = {
        name: arrow.array(values.tolist() if values.dtype.kind == "U" else np.ascontiguousarray(values))
        for name, values in columns.items()
        if values is not None
    }
    fields = [arrow.field(name, array.type, nullable=False) for name, array in arrays.items()]
    return arrow.Table.from_arrays(list(arrays.values()), schema=arrow.schema(fields))


def stored_columns(path: Path) -> list[str]:
    """The names of a table's columns."""
    with path.open("rb") as handle:
        if path.suffix.lower() == ".csv":
            return _csv_columns(handle)[1]
        names: list[str] = _arrow(".parquet").ParquetFile(handle).schema_arrow.names
        return names


def layout_of(path: Path, names: Names) -> Layout:
    """Where a table has what; no row of it is read."""
    with path.open("rb") as handle:
        if path.suffix.lower() == ".csv":
            return _open_csv(handle, names)[1]
        return _open_parquet(handle, names, os.fstat(handle.fileno()).st_size, 1, None)[1]


def row_group_sizes(path: Path) -> list[int]:
    """The number of rows of each row group of a .parquet file."""
    metadata = _arrow(".parquet").read_metadata(path)
    return [metadata.row_group(group).num_rows for group in range(metadata.num_row_groups)]


def row_batches(
    path: Path, names: Names, rows: int | None, row_groups: range | None = None
) -> Iterator[tuple[Header | None, dict[str, Any]]]:
    """(header, fields) of at most `rows` rows at a time; of all rows with None."""
    with path.open("rb") as handle:
        size, first_row = os.fstat(handle.fileno()).st_size, 0
        if path.suffix.lower() == ".csv":
            header, layout, batches = _open_csv(handle, names)
        else:
            header, layout, batches = _open_parquet(handle, names, size, rows or _PARQUET_BATCH, row_groups)
            if row_groups:
                first_row = sum(row_group_sizes(path)[: row_groups[0]])
        for table in _regroup(batches, rows):
            yield header, _fields(table, layout, size, first_row)
            first_row += table.num_rows


def _regroup(batches: Iterable[Any], rows: int | None) -> Iterator[Any]:
    """Tables of `rows` rows, the last one of what is left; one of all rows with None."""
    from_batches = _arrow().Table.from_batches
    waiting, count = [], 0
    for batch in batches:
        waiting.append(batch)
        count += batch.num_rows
        while rows is not None and count >= rows:
            table = from_batches(waiting)
            yield table.slice(0, rows)
            waiting, count = table.slice(rows).to_batches(), count - rows
    if count:
        yield from_batches(waiting)


def _open_csv(handle: IO[bytes], names: Names) -> tuple[Header | None, Layout, Iterable[Any]]:
    """Read what stands before the rows; Arrow reads the rest."""
    header, columns = _csv_columns(handle)
    if not columns:
        raise PredictionsFileError("the file must begin with the names of its columns, got nothing; make it again")
    layout = find_layout(names, header, columns, partial(_class_columns, handle, columns))
    if header is not None:
        _check_last_line(handle)
    arrow, reader = _arrow(), _arrow(".csv")
    types: dict[str, Any] = {}
    for name, places in layout.columns.items():
        stated = None if name == "labels" else names.stated_type(name, header)
        if name == "labels" and header is None:
            continue  # numbers or names, as Arrow finds
        if name == "times":
            kind = arrow.timestamp("us") if stated == "us" else arrow.string()
        elif name == "labels" or stated == "int":
            kind = arrow.int64()
        elif name in COLUMNS and name != "weights":
            kind = arrow.dictionary(arrow.int32(), arrow.string())
        else:
            kind = arrow.float64() if stated in (None, "float64") else arrow.float32()
        types |= dict.fromkeys(places, kind)
    options = (
        reader.ReadOptions(column_names=columns, block_size=_CSV_BLOCK, use_threads=False),
        reader.ParseOptions(newlines_in_values=True),
        reader.ConvertOptions(include_columns=layout.all_columns, column_types=types, null_values=[]),
    )
    return header, layout, _csv_batches(handle, options, columns)


def _csv_columns(handle: IO[bytes]) -> tuple[Header | None, list[str]]:
    """What stands before the rows."""
    header, line = None, handle.readline().removeprefix(_BYTE_ORDER_MARK)
    while line.startswith(b"#") or (line and not line.strip()):
        if line.startswith(_MARK):
            header = Header.parse(line.removeprefix(_MARK).decode())
        line = handle.readline()
    return header, [name.strip() for name in next(csv.reader([line.decode()], strict=True), [])]


def _csv_batches(handle: IO[bytes], options: tuple[Any, ...], columns: list[str]) -> Iterator[Any]:
    """Arrow's batches; a cell that is no number, or too large for one, is named by its row, from 0, and its column."""
    arrow, reader = _arrow(), _arrow(".csv")
    try:
        # Arrow's own file: its threads may hold it while Python ends, which aborts if it is one of Python's.
        with arrow.OSFile(handle.name) as rows, arrow.OSFile(handle.name) as again:
            for file in (rows, again):
                file.seek(handle.tell())
            first_row, texts = 0, None
            for number, batch in enumerate(reader.open_csv(rows, *options)):
                floats = [field.name for field in batch.schema if _arrow(".types").is_floating(field.type)]
                if texts is None and any(np.isinf(batch.column(name)).any() for name in floats):
                    kinds = dict.fromkeys(floats, arrow.string())
                    as_text = reader.ConvertOptions(include_columns=floats, column_types=kinds)
                    texts = islice(reader.open_csv(again, *options[:2], as_text), number, None)  # from here on in step
                if texts is not None:
                    _check_range(batch, next(texts), first_row)
                first_row += batch.num_rows
                yield batch
    except _arrow().ArrowInvalid as error:
        if "Empty CSV file" in str(error):
            raise PredictionsFileError("the file must hold at least one row, got none; make it again") from error
        cell = _NO_NUMBER.search(str(error))
        if cell is None:
            raise
        column, row, value = columns[int(cell["column"])], int(cell["row"]) - 1, cell["value"]
        raise PredictionsFileError(
            f"column {column!r} must hold a number in every row, got {value[:50]!r} in row {row}; fill it in, or leave "
            "the row out"
        ) from error


def _check_range(batch: Any, text: Any, first_row: int) -> None:
    """Refuse digits that Arrow reads as an infinity, as it does -1e400; `text` are the cells of floating columns."""
    for name in text.schema.names:
        has_digits = _arrow(".compute").match_substring_regex(text.column(name), "[0-9]")
        overflows = np.isinf(batch.column(name)) & np.asarray(has_digits)
        if overflows.any():
            at = int(overflows.argmax())
            raise PredictionsFileError(
                f"column {name!r} must hold numbers within the range of {batch.column(name).type}, got "
                f"{text.column(name)[at].as_py()[:50]!r} in row {first_row + at}; fix it, or write -inf for the logit "
                "of an impossible class"
            )


def _class_columns(handle: IO[bytes], columns: list[str], labels: str) -> list[str]:
    """`_floating_columns` of the first lines of a .csv; the handle stays where it is."""
    start = handle.tell()
    lines = handle.readlines(1 << 20)
    handle.seek(start)
    reader = _arrow(".csv")

    def schema(**only: Any) -> Any:
        text, names = _arrow().BufferReader(b"".join(lines)), reader.ReadOptions(column_names=columns)
        return reader.read_csv(text, names, convert_options=reader.ConvertOptions(**only)).schema

    if not _is_text(schema(include_columns=[labels]).field(labels).type):
        return []
    check_width(len(columns))
    return _floating_columns(schema(), labels)


def _floating_columns(schema: Any, labels: str) -> list[str]:
    """The columns of floating-point numbers, if `labels` is text."""
    types = _arrow(".types")
    kind = schema.field(labels).type
    if not _is_text(kind.value_type if types.is_dictionary(kind) else kind):
        return []
    return [field.name for field in schema if types.is_floating(field.type)]


def _is_text(kind: Any) -> bool:
    types = _arrow(".types")
    return bool(types.is_string(kind) or types.is_large_string(kind))


def _check_last_line(handle: IO[bytes]) -> None:
    """Refuse a file of ours that is cut off inside its last line, and leave the handle where it is."""
    start = handle.tell()
    handle.seek(-1, os.SEEK_END)
    if handle.read(1) != b"\n":
        raise PredictionsFileError("the last line must be whole, got no line end; it may be cut off: make it again")
    handle.seek(start)


def _open_parquet(
    handle: IO[bytes], names: Names, size: int, batch_rows: int, row_groups: range | None
) -> tuple[Header | None, Layout, Iterable[Any]]:
    """Judge a file by its footer; its rows are read afterwards."""
    parquet = _arrow(".parquet")
    footer = parquet.ParquetFile(handle)
    metadata, schema = footer.metadata, footer.schema_arrow
    stated = (schema.metadata or {}).get(KEY.encode())
    header = None if stated is None else Header.parse(stated.decode())
    layout = find_layout(names, header, schema.names, partial(_floating_columns, schema))
    # Not by chunk: pyarrow raises for a row group that makes no sense, and aborts for a chunk.
    groups = [metadata.row_group(group) for group in range(metadata.num_row_groups)]
    sizes = [max(group.total_byte_size, 8 * group.num_rows * metadata.num_columns) for group in groups]
    check_unpacked_size(sum(sizes), size)
    # Text stays a dictionary, so that it can be measured before there is a copy for each row.
    kinds = {name: schema.field(name).type for places in layout.columns.values() for name in places}
    texts = [name for name, kind in kinds.items() if _is_text(kind)]
    file = parquet.ParquetFile(
        handle, metadata=metadata, read_dictionary=texts, page_checksum_verification=True, pre_buffer=False
    )
    lists = [name for name, kind in kinds.items() if _arrow(".types").is_nested(kind)]
    for first in islice(file.iter_batches(1, columns=lists) if lists else (), 1):
        check_unpacked_size(first.nbytes * metadata.num_rows, size)  # no footer says how long lists are
    return header, layout, file.iter_batches(batch_rows, row_groups=row_groups, columns=list(kinds))


def _fields(table: Any, layout: Layout, size: int, first_row: int) -> dict[str, Any]:
    """A table as NumPy arrays; `first_row` is its place in the file."""
    fields: dict[str, Any] = {"multilabel": layout.multilabel}
    for name, columns in layout.columns.items():
        for column in columns:
            if nulls := table.column(column).null_count:
                raise PredictionsFileError(
                    f"column {column!r} must have a value in every row, got {nulls} null(s); leave such rows out"
                )
        if name == "groups" and layout.group_names is not None:
            fields[name] = {
                own: _names(table.column(column), size) for own, column in zip(layout.group_names, columns, strict=True)
            }
        elif name in COLUMNS:
            fields[name] = _names(table.column(columns[0]), size)
        else:
            fields[name] = _matrix(table, columns, numbers="iufb" if name == "labels" else "iuf")
    if layout.multilabel:
        return fields
    if fields["labels"].shape[1] == 1:
        fields["labels"] = fields["labels"][:, 0]
        labels = fields["labels"]
        missing = np.flatnonzero(labels == "").tolist() if labels.dtype.kind == "O" else []
        if missing:
            column = layout.columns["labels"][0]
            raise PredictionsFileError(
                f"column {column!r} must have a label in every row, got nothing in row {first_row + missing[0]}; "
                "leave the row out"
            )
    scores = layout.columns[next(kind for kind in KINDS if kind in layout.columns)]
    if layout.classes is not None:
        fields["classes"] = layout.classes
    elif fields["labels"].dtype.kind == "O" and set(fields["labels"].flat) <= set(scores):
        fields["classes"] = scores
    return fields


def _names(column: Any, size: int) -> NDArray[Any]:
    """Ids, groups and the like as they are; text as strings of Python."""
    types, compute = _arrow(".types"), _arrow(".compute")
    if types.is_dictionary(column.type) and not types.is_integer(column.type.value_type):
        longest = max(compute.max(compute.binary_length(chunk.dictionary)).as_py() or 0 for chunk in column.chunks)
        check_unpacked_size(4 * longest * len(column), size)  # NumPy gives every row the room of the longest
    names: NDArray[Any] = column.to_numpy()
    return names


def _array(column: Any) -> NDArray[Any]:
    """A column without nulls."""
    types = _arrow(".types")
    if column.num_chunks and (types.is_integer(column.type) or types.is_floating(column.type)):
        return np.concatenate([np.from_dlpack(chunk) for chunk in column.chunks])  # `to_numpy` imports pandas
    array: NDArray[Any] = column.to_numpy()
    return array


def _matrix(table: Any, columns: list[str], numbers: str) -> NDArray[Any]:
    """Columns side by side, or one column of lists of equal length, (rows, K); kinds of `numbers` may be mixed."""
    if len(columns) > 1 or not _arrow(".types").is_nested(table.column(columns[0]).type):
        arrays = [_array(table.column(column)) for column in columns]
        if not {array.dtype.kind for array in arrays} <= {*numbers} and len({array.dtype for array in arrays}) > 1:
            types = ", ".join(f"{column} {table.column(column).type}" for column in columns[:24])
            raise PredictionsFileError(f"columns side by side must hold numbers, got {types}; name or convert columns")
        return np.column_stack(arrays)
    compute, lists = _arrow(".compute"), table.column(columns[0])
    lengths, values = compute.list_value_length(lists).unique().to_pylist(), compute.list_flatten(lists)
    if values.null_count or len(lengths) > 1:
        raise PredictionsFileError(
            f"column {columns[0]!r} must hold lists of one length, without nulls, got lengths {sorted(lengths)[:9]} "
            f"and {values.null_count} null(s); leave such rows out"
        )
    matrix: NDArray[Any] = values.to_numpy().reshape(len(lists), lengths[0])
    return matrix
