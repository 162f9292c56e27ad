"""Predictions as a table, .csv or .parquet, both read and written by pyarrow: one column per class.

`label`, `logit_0` ... `logit_{K-1}` or `prob_0` ..., and optionally `id`, `group` (or `group_NAME` of several),
`cluster`, `weight`, `time`, `posterior_0` ...; with multilabel
`label_0` ... `label_{L-1}` instead of `label`. Other names are found by `columns`, other columns are ignored. The
header is metadata of a .parquet, and the first line of a .csv, `# focalcal: {...}`.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack
from typing import IO, TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from focalcal.predictions.arrays_file import stored
from focalcal.predictions.columns import COLUMNS, PREFIXES, Layout, find_layout
from focalcal.predictions.header import (
    KEY,
    KINDS,
    Header,
    Names,
    PredictionsFileError,
    check_unpacked_size,
)
from focalcal.predictions.locations import Source, folder_values, suffix_of
from focalcal.predictions.missing_values import without_missing
from focalcal.predictions.parquet_table import ParquetTable
from focalcal.predictions.reading_notes import Missing
from focalcal.predictions.text_tables import MARK, MISSING, CsvTable, JsonLinesTable, _arrow, _is_text, no_number

if TYPE_CHECKING:
    from focalcal.predictions.record import Predictions

# What reads which suffix: made with (source, names, stack), and has `columns`, `header`, `size`, `floating`, `batches`.
READERS: dict[str, Any] = {
    ".parquet": ParquetTable,
    ".csv": CsvTable,
    ".tsv": CsvTable,
    ".txt": CsvTable,
    ".jsonl": JsonLinesTable,
    ".ndjson": JsonLinesTable,
}
NOTHING_SAID = Names()
_PREFIX = {"labels": "label"} | {name: prefixes[0] for name, prefixes in PREFIXES.items()}


def write(handle: IO[bytes], predictions: Predictions, suffix: str) -> None:
    """The rows, at most 64 MB of scores at a time."""
    schema = _table(predictions[:1]).schema
    if suffix == ".csv":
        names = io.StringIO()
        csv.writer(names, lineterminator="\n").writerow(schema.names)  # the name of a group may have a comma
        handle.write(f"{MARK} {Header.of(predictions)}\n{names.getvalue()}".encode())
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


def _open(path: Source, names: Names, stack: ExitStack) -> Any:
    return READERS[suffix_of(path)](path, names, stack)


def stored_columns(path: Source, names: Names = NOTHING_SAID) -> list[str]:
    """The names of a table's columns."""
    with ExitStack() as stack:
        columns: list[str] = _open(path, names, stack).columns
        return columns


def layout_of(path: Source, names: Names) -> Layout:
    """Where a table has what; no row of it is read."""
    with ExitStack() as stack:
        return _layout(_open(path, names, stack), path, names)


def _layout(table: Any, path: Source, names: Names) -> Layout:
    return find_layout(names, table.header, table.columns, table.floating, folders=folder_values(path))


def row_group_sizes(path: Source) -> list[int]:
    """The number of rows of each row group of a .parquet file."""
    with ExitStack() as stack:
        sizes: list[int] = ParquetTable(path, NOTHING_SAID, stack).row_group_sizes
        return sizes


def row_batches(
    path: Source, names: Names, rows: int | None, row_groups: range | None = None
) -> Iterator[tuple[Header | None, dict[str, Any]]]:
    """(header, fields) of at most `rows` rows at a time; of all rows with None."""
    with ExitStack() as stack:
        table = _open(path, names, stack)
        layout, first_row = _layout(table, path, names), 0
        folders = {name: value for name, value in folder_values(path).items() if name not in table.columns}
        options: dict[str, Any] = {}
        if isinstance(table, ParquetTable):
            options = {"rows": rows, "row_groups": row_groups}
            first_row = sum(table.row_group_sizes[: row_groups[0]]) if row_groups else 0
        scores = next(layout.columns[kind] for kind in KINDS if kind in layout.columns)
        numbers = [name for field in (*KINDS, "posterior", "weights") for name in layout.columns.get(field, ())]
        decimal = table.decimal_sign(numbers) if names.scale == "percent" else "."
        batches = table.batches(
            [name for name in layout.all_columns if name not in folders],
            types=_column_types(layout, names, table.header),
            numbers=numbers,
            null_values=MISSING if names.drop_missing else (),
            **options,
        )
        for whole in _regroup(batches, rows):
            read, count = _with_folders(whole, layout, folders), whole.num_rows
            missing, at = Missing(count), None
            if names.drop_missing:
                read, at, missing = without_missing(read, layout, numbers=scores if names.scale == "percent" else ())
            if names.scale == "percent":
                read = percent_as_numbers(read, scores, decimal, first_row, at)
            fields = _fields(read, layout, table.size, first_row) if read.num_rows else {}
            if names.drop_missing and fields and "ids" not in fields and names.ids is not False:
                fields["ids"] = first_row + (np.arange(count) if at is None else at)
            yield table.header, fields | {"missing": missing}
            first_row += count


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


def _column_types(layout: Layout, names: Names, header: Header | None) -> dict[str, Any]:
    """What the cells of a text are read as; None of labels that nobody states: numbers or names, as Arrow finds."""
    arrow = _arrow()
    types: dict[str, Any] = {}
    for name, places in layout.columns.items():
        stated = None if name == "labels" else names.stated_type(name, header)
        if name == "labels" and header is None:
            continue
        if name == "times":
            kind = arrow.timestamp("us") if stated == "us" else arrow.string()
        elif name == "labels" or stated == "int":
            kind = arrow.int64()
        elif name == "probs" and names.scale == "percent":
            kind = arrow.string()
        elif name in COLUMNS and name != "weights":
            kind = arrow.dictionary(arrow.int32(), arrow.string())
        else:
            kind = arrow.float64() if stated in (None, "float64") else arrow.float32()
        types |= dict.fromkeys(places, kind)
    return types


def _with_folders(table: Any, layout: Layout, folders: dict[str, str | None]) -> Any:
    """The rows with those columns that the names of folders say."""
    arrow = _arrow()
    for name in layout.all_columns:
        if name in folders and name not in table.column_names:
            column = arrow.DictionaryArray.from_arrays(
                arrow.array(np.zeros(table.num_rows, np.int32), mask=np.full(table.num_rows, folders[name] is None)),
                arrow.array([folders[name] or ""], arrow.string()),
            )
            table = table.append_column(name, column)
    return table


def percent_as_numbers(
    table: Any, columns: Sequence[str], decimal: str, first_row: int, at: NDArray[Any] | None = None
) -> Any:
    """Columns of text such as "85 %" as numbers from 0 to 100."""
    arrow, compute = _arrow(), _arrow(".compute")
    for place, name in enumerate(table.column_names):
        column = table.column(name)
        if _arrow(".types").is_dictionary(column.type):
            column = column.cast(column.type.value_type)
        if name not in columns or not _is_text(column.type):
            continue
        digits = compute.replace_substring_regex(column, r"^[\s\x{a0}]+|[\s\x{a0}\x{202f}]*%?[\s\x{a0}]*$", "")
        if decimal == ",":
            digits = compute.replace_substring(compute.replace_substring(digits, ".", "?"), ",", ".")
        is_number = compute.match_substring_regex(digits, r"^[-+]?(\d+\.?\d*|\.\d+)([eE][-+]?\d+)?$")
        if not (right := np.asarray(is_number)).all():
            row = int(np.argmin(right))
            raise no_number(name, int(first_row + row if at is None else first_row + at[row]), column[row].as_py())
        numbers = digits.cast(arrow.float64())
        signed = np.asarray(compute.match_substring(column, "%"))
        if signed.any() and not (alike := signed | (np.asarray(numbers) == 0)).all():
            row = int(np.argmin(alike))
            raise PredictionsFileError(
                f"column {name!r} must have a sign of percent in every row or in none, got "
                f"{column[row].as_py()[:50]!r} in row {int(first_row + (row if at is None else at[row]))} and "
                f"{column[int(signed.argmax())].as_py()[:50]!r}; write all of them in one way"
            )
        table = table.set_column(place, name, numbers)
    return table


def _fields(table: Any, layout: Layout, size: int, first_row: int) -> dict[str, Any]:
    """A table as NumPy arrays; `first_row` is its place in the file."""
    fields: dict[str, Any] = {"multilabel": layout.multilabel}
    for name, columns in layout.columns.items():
        for column in columns:
            if nulls := table.column(column).null_count:
                row = first_row + int(np.flatnonzero(table.column(column).is_null())[0])
                raise PredictionsFileError(
                    f"column {column!r} must have a value in every row, got {nulls} null(s), the first in row {row}; "
                    "leave such rows out (drop_missing=True, of a command --drop-missing)"
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
                "leave the row out (drop_missing=True, of a command --drop-missing)"
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
