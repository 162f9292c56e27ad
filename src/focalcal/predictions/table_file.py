"""Predictions as a table, .csv or .parquet, both read and written by pyarrow: one column per class.

`label`, `logit_0` ... `logit_{K-1}` or `prob_0` ..., and optionally `id`, `group` (or `group_NAME` of several),
`cluster`, `weight`, `time`, `posterior_0` ...; with multilabel
`label_0` ... `label_{L-1}` instead of `label`. Other names are found by `columns`, other columns are ignored. The
header is metadata of a .parquet, and the first line of a .csv, `# focalcal: {...}`.
"""

from __future__ import annotations

import csv
import io
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from typing import IO, TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from focalcal.predictions.arrays_file import stored
from focalcal.predictions.columns import COLUMNS, PREFIXES, Layout, find_layout
from focalcal.predictions.header import KEY, Header, Names, PredictionsFileError, check_unpacked_size
from focalcal.predictions.locations import Source, folder_values, suffix_of
from focalcal.predictions.parquet_table import ParquetTable
from focalcal.predictions.reading_notes import Missing
from focalcal.predictions.text_cells import MISSING, arrow_module, is_text, numbers_of_text, plain_text
from focalcal.predictions.text_tables import MARK, CsvTable, JsonLinesTable

if TYPE_CHECKING:
    from focalcal.predictions.record import Predictions

# What reads which suffix: made with (source, names, stack), it has `columns`, `header`, `size`, `schema(columns)` of
# the first rows and `batches(columns, types, ...)`; of a `text` table numbers are text there, with a `decimal` sign.
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
        options = arrow_module(".csv").WriteOptions(include_header=False)
        writer = arrow_module(".csv").CSVWriter(handle, schema, write_options=options)
    else:
        schema = schema.with_metadata({KEY: Header.of(predictions)})
        repeated = [name for name in schema.names if name in ("id", "cluster", "label") or name.startswith("group")]
        # Scores hardly shrink, and numbers without a codec are not read with another one when a footer is damaged.
        codecs = {field.name: "snappy" if is_text(field.type) else "none" for field in schema}
        writer = arrow_module(".parquet").ParquetWriter(
            handle, schema, use_dictionary=repeated, compression=codecs, write_page_checksum=True
        )
    with writer:
        for batch in predictions.batches(max(1, min(65536, (1 << 24) // predictions.n_classes))):
            writer.write_table(_table(batch))


def _table(predictions: Predictions) -> Any:
    """Rows as an Arrow table."""
    arrow = arrow_module()
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


@contextmanager
def opened_table(path: Source, names: Names = NOTHING_SAID) -> Iterator[Any]:
    """The table in a file, by its suffix."""
    with ExitStack() as stack:
        yield READERS[suffix_of(path)](path, names, stack)


def layout_of(path: Source, names: Names) -> Layout:
    """Where a table has what; no row of it is read."""
    with opened_table(path, names) as table:
        return _layout(table, path, names)


def _layout(table: Any, path: Source, names: Names) -> Layout:
    def floating(labels: str) -> list[str]:
        """The columns of floating-point numbers, if `labels` is text."""
        if not is_text(table.schema([labels]).field(labels).type):
            return []
        return [each.name for each in table.schema(table.columns) if arrow_module(".types").is_floating(each.type)]

    return find_layout(names, table.header, table.columns, floating, folders=folder_values(path))


def row_batches(
    path: Source, names: Names, rows: int | None, row_groups: range | None = None
) -> Iterator[tuple[Header | None, dict[str, Any]]]:
    """(header, fields) of at most `rows` rows at a time; of all rows with None."""
    with opened_table(path, names) as table:
        layout, first_row = _layout(table, path, names), 0
        if row_groups:
            first_row = sum(table.row_group_sizes[: row_groups[0]])
        folders = {name: value for name, value in folder_values(path).items() if name not in table.columns}
        kinds, types = _cell_types(layout, names, table.header)
        batches = table.batches(
            [name for name in layout.all_columns if name not in folders],
            types,
            numbers={name: kind for name, kind in kinds.items() if name not in types},
            null_values=MISSING if names.drop_missing else (),
            percent=names.scale == "percent",
            rows=rows,
            row_groups=row_groups,
        )
        percent = layout.scores if names.scale == "percent" else ()
        numeric = _numeric(table, batches, kinds, first_row, percent, missing=names.drop_missing)
        for whole in _regroup(numeric, rows):
            read, kept, missing = _with_folders(whole, layout, folders), np.arange(whole.num_rows), Missing(len(whole))
            if names.drop_missing:
                read, kept, missing = _without_missing(read, layout)
            else:
                refuse_missing(read, layout.all_columns, first_row)
            fields = _fields(read, layout, table.size, first_row) if read.num_rows else {}
            if names.drop_missing and fields and "ids" not in fields and names.ids is not False:
                fields["ids"] = first_row + kept
            yield table.header, fields | {"missing": missing}
            first_row += len(whole)


def _regroup(tables: Iterable[Any], rows: int | None) -> Iterator[Any]:
    """Tables of `rows` rows, the last one of what is left; one of all rows with None."""
    concatenated = arrow_module().concat_tables
    waiting, count = [], 0
    for part in tables:
        waiting.append(part)
        count += part.num_rows
        while rows is not None and count >= rows:
            table = concatenated(waiting)
            yield table.slice(0, rows)
            waiting, count = [table.slice(rows)], count - rows
    if count:
        yield concatenated(waiting)


def _cell_types(layout: Layout, names: Names, header: Header | None) -> tuple[dict[str, Any], dict[str, Any]]:
    """Which columns of a text are numbers of what type, and what the others, and labels, are read as.

    The type is None of labels that nobody states: numbers or names, as the first rows have them.
    """
    arrow = arrow_module()
    kinds: dict[str, Any] = {}
    types: dict[str, Any] = {}
    for name, places in layout.columns.items():
        stated = None if name == "labels" else names.stated_type(name, header)
        if name == "labels":
            types |= dict.fromkeys(places, arrow.string())
            kinds |= dict.fromkeys(places, None if header is None else arrow.int64())
        elif name in COLUMNS and name != "weights":
            text = arrow.dictionary(arrow.int32(), arrow.string())
            types |= dict.fromkeys(places, {"us": arrow.timestamp("us"), "int": arrow.int64()}.get(stated or "", text))
        else:
            kinds |= dict.fromkeys(places, arrow.float64() if stated in (None, "float64") else arrow.float32())
    return kinds, types


def _numeric(
    rows: Any, batches: Iterable[Any], kinds: dict[str, Any], first_row: int, percent: Sequence[str], *, missing: bool
) -> Iterator[Any]:
    """The batches as tables in which what is a number is one."""
    open_kinds = rows.text and None in kinds.values()
    for batch in batches:
        table = arrow_module().Table.from_batches([batch])
        if open_kinds:
            kinds |= {name: _label_kind(table.column(name)) for name, kind in kinds.items() if kind is None}
            open_kinds = False
        yield with_numbers(rows, table, kinds, first_row, percent=percent, missing=missing)
        first_row += batch.num_rows


def _label_kind(column: Any) -> Any:
    """What labels of a text are by those of its first rows; None of names."""
    arrow, compute = arrow_module(), arrow_module(".compute")
    cells = compute.utf8_trim(column.combine_chunks().unique(), " \t")
    cells = cells.filter(compute.invert(compute.is_in(cells, arrow.array(MISSING))))
    for kind in (arrow.int64(), arrow.float64(), arrow.bool_()) if len(cells) else ():
        with suppress(arrow.ArrowInvalid):
            cells.cast(kind)
            return kind
    return None


def with_numbers(
    rows: Any,
    table: Any,
    kinds: dict[str, Any],
    first_row: int,
    *,
    percent: Sequence[str] = (),
    missing: bool = False,
) -> Any:
    """The table with text as numbers of these kinds, where `rows` is a text or the column has percentages."""
    arrays, types = [], arrow_module(".types")
    for name, given in zip(table.column_names, table.columns, strict=True):
        column, kind = given, kinds.get(name)
        if kind is not None and is_text(column.type):
            if not rows.text and name not in percent:
                raise _text_in(name, column, first_row)
            column = numbers_of_text(
                name, column, first_row, kind, decimal=rows.decimal, percent=name in percent, missing=missing
            )
        elif kind is not None and types.is_decimal(column.type):
            column = column.cast(kind)
        elif kind is not None and types.is_struct(column.type):
            raise PredictionsFileError(
                f"column {name!r} must hold numbers, got {column.type}; make it a list or columns"
            )
        elif kind is not None and types.is_nested(column.type) and is_text(column.type.value_type):
            raise _text_in(name, column, first_row)
        arrays.append(column)
    return arrow_module().Table.from_arrays(arrays, table.column_names)


def _text_in(name: str, column: Any, first_row: int) -> PredictionsFileError:
    row, cell = next(((row, cell) for row, cell in enumerate(column.to_pylist()) if cell), (0, None))
    remedy = 'read percentages with scale="percent"' if "%" in str(cell) else "write numbers without quotes"
    return PredictionsFileError(
        f"column {name!r} must hold numbers, got the text {str(cell)[:50]!r} in row {first_row + row}; {remedy}"
    )


def _with_folders(table: Any, layout: Layout, folders: dict[str, str | None]) -> Any:
    """The rows with those columns that the names of folders say."""
    arrow = arrow_module()
    for name in layout.all_columns:
        if name in folders and name not in table.column_names:
            value = arrow.scalar(folders[name], arrow.dictionary(arrow.int32(), arrow.string()))
            table = table.append_column(name, arrow.repeat(value, table.num_rows))
    return table


DROP = "leave such rows out (drop_missing=True, of a command --drop-missing)"


def refuse_missing(table: Any, columns: Sequence[str], first_row: int, remedy: str = DROP) -> None:
    """Refuse a null in one of the columns."""
    for name in columns:
        if nulls := table.column(name).null_count:
            row = first_row + int(np.flatnonzero(table.column(name).is_null())[0])
            raise PredictionsFileError(
                f"column {name!r} must have a value in every row, got {nulls} null(s), the first in row {row}; {remedy}"
            )


def _without_missing(table: Any, layout: Layout) -> tuple[Any, NDArray[np.int64], Missing]:
    """The rows that have every value, where they stood, and what the others lack: nulls, NaN and empty text."""
    lacking = {name: _lacks(table.column(name)) for name in layout.all_columns}
    left_out = np.logical_or.reduce(list(lacking.values()))
    counts = Counter({name: n for name, each in lacking.items() if (n := int(each.sum()))})
    missing = Missing(len(table), int(left_out.sum()), counts)
    if missing.left_out:
        table = table.filter(arrow_module().array(~left_out))
    return table, np.flatnonzero(~left_out), missing


def _lacks(given: Any) -> NDArray[np.bool_]:
    compute, types, column = arrow_module(".compute"), arrow_module(".types"), plain_text(given)
    lacks = np.array(column.is_null(nan_is_null=True))
    if types.is_nested(column.type):
        inside = np.asarray(compute.list_flatten(column).is_null(nan_is_null=True))
        lacks[compute.list_parent_indices(column).to_numpy()[inside]] = True
    elif is_text(column.type):
        lacks |= np.asarray(compute.fill_null(compute.equal(compute.utf8_trim_whitespace(column), ""), True))
    return lacks


def _fields(table: Any, layout: Layout, size: int, first_row: int) -> dict[str, Any]:
    """A table without nulls as NumPy arrays; `first_row` is its place in the file."""
    fields: dict[str, Any] = {"multilabel": layout.multilabel}
    for name, columns in layout.columns.items():
        if name == "groups" and layout.group_names is not None:
            fields[name] = {
                own: _names(table.column(column), size) for own, column in zip(layout.group_names, columns, strict=True)
            }
        elif name in COLUMNS:
            fields[name] = _names(table.column(columns[0]), size)
        else:
            fields[name] = matrix_of(table, columns, numbers="iufb" if name == "labels" else "iuf")
    if layout.multilabel:
        return fields
    if "labels" not in fields:
        return fields | ({} if layout.classes is None else {"classes": layout.classes})
    if fields["labels"].shape[1] == 1:
        labels = fields["labels"] = fields["labels"][:, 0]
        if missing := np.flatnonzero(labels == "").tolist() if labels.dtype.kind == "O" else []:
            raise PredictionsFileError(
                f"column {layout.columns['labels'][0]!r} must have a label in every row, got nothing in row "
                f"{first_row + missing[0]}; {DROP}"
            )
    if layout.classes is not None:
        fields["classes"] = layout.classes
    elif fields["labels"].dtype.kind == "O" and set(fields["labels"].flat) <= set(layout.scores):
        fields["classes"] = layout.scores
    return fields


def _names(column: Any, size: int) -> NDArray[Any]:
    """Ids, groups and the like as they are; text as strings of Python."""
    types, compute = arrow_module(".types"), arrow_module(".compute")
    if types.is_dictionary(column.type) and not types.is_integer(column.type.value_type):
        longest = max(compute.max(compute.binary_length(chunk.dictionary)).as_py() or 0 for chunk in column.chunks)
        check_unpacked_size(4 * longest * len(column), size)  # NumPy gives every row the room of the longest
    names: NDArray[Any] = column.to_numpy()
    return names


def _array(column: Any) -> NDArray[Any]:
    """A column without nulls."""
    types = arrow_module(".types")
    if column.num_chunks and (types.is_integer(column.type) or types.is_floating(column.type)):
        return np.concatenate([np.from_dlpack(chunk) for chunk in column.chunks])  # `to_numpy` imports pandas
    array: NDArray[Any] = column.to_numpy()
    return array


def matrix_of(table: Any, columns: list[str], numbers: str) -> NDArray[Any]:
    """Columns side by side, or one column of lists of equal length, (rows, K); kinds of `numbers` may be mixed."""
    if len(columns) > 1 or not arrow_module(".types").is_nested(table.column(columns[0]).type):
        arrays = [_array(table.column(column)) for column in columns]
        if not {array.dtype.kind for array in arrays} <= {*numbers} and len({array.dtype for array in arrays}) > 1:
            types = ", ".join(f"{column} {table.column(column).type}" for column in columns[:24])
            raise PredictionsFileError(f"columns side by side must hold numbers, got {types}; name or convert columns")
        return np.column_stack(arrays)
    compute, lists = arrow_module(".compute"), table.column(columns[0])
    lengths, values = compute.list_value_length(lists).unique().to_pylist(), compute.list_flatten(lists)
    if values.null_count or len(lengths) > 1:
        raise PredictionsFileError(
            f"column {columns[0]!r} must hold lists of one length, without nulls, got lengths {sorted(lengths)[:9]} "
            f"and {values.null_count} null(s); leave such rows out"
        )
    matrix: NDArray[Any] = values.to_numpy().reshape(len(lists), lengths[0])
    return matrix
