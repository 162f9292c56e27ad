"""Predictions as .parquet: one column a class, row groups of bounded size, checksums on every page."""

from __future__ import annotations

from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from focalcal.predictions.checks import LONGEST_NAME, text_fault
from focalcal.predictions.chunk import rows_at_once
from focalcal.predictions.errors import believable, problem
from focalcal.predictions.header import KEY, Header, Names
from focalcal.predictions.table import COLUMN, PREFIX, Layout, columns_of, layout, stored_columns

if TYPE_CHECKING:
    from focalcal.predictions.record import Predictions

_BATCH = 65536


def _arrow() -> tuple[Any, Any]:
    try:
        return import_module("pyarrow"), import_module("pyarrow.parquet")
    except ModuleNotFoundError as error:
        raise ModuleNotFoundError(
            "Parquet files need pyarrow; install it with pip install 'focalcal[study]', or use .npz or .csv"
        ) from error


def write(handle: IO[bytes], predictions: Predictions, header: str) -> None:
    """A row group at a time."""
    arrow, parquet = _arrow()
    columns = [column for column, _, _ in columns_of(predictions)]
    first = stored_columns(predictions[:1])
    types = [arrow.string() if v.dtype.kind == "U" else arrow.from_numpy_dtype(v.dtype) for v in first]
    schema = arrow.schema(
        [arrow.field(column, kind, nullable=False) for column, kind in zip(columns, types, strict=True)],
        metadata={KEY: header},
    )
    repeated = [column for column in columns if column in (*COLUMN.values(), PREFIX["labels"])]
    with parquet.ParquetWriter(handle, schema, use_dictionary=repeated, write_page_checksum=True) as writer:
        for part in predictions.batches(rows_at_once(predictions.n_classes)):
            arrays = [
                arrow.array(values.tolist() if values.dtype.kind == "U" else np.ascontiguousarray(values), type=kind)
                for values, kind in zip(stored_columns(part), types, strict=True)
            ]
            writer.write_table(arrow.Table.from_arrays(arrays, schema=schema))


def chunks(path: Path, names: Names, rows: int | None) -> Iterator[dict[str, Any]]:
    """The rows in order, at most `rows` at a time; all in one with None."""
    arrow, parquet = _arrow()
    options = {"page_checksum_verification": True, "pre_buffer": False}
    with arrow.OSFile(str(path)) as source:
        with parquet.ParquetFile(source, **options) as file:
            metadata, schema = file.metadata, file.schema_arrow
        stated = (schema.metadata or {}).get(KEY.encode())
        header = None if stated is None else Header.parse(stated.decode(), path)
        found = layout(path, names, header, schema.names)
        count = metadata.num_rows
        if count < 1 or (header and count != header.rows):
            raise problem(
                path, f"the file must hold {header.rows if header else 'some'} row(s)", count, "make it again"
            )
        widths = {name: _width(path, found, name, schema.field(name).type) for name in found.columns}
        believable(path, _claimed(metadata, widths), source.size())
        texts = [name for name, width in widths.items() if not width]
        with parquet.ParquetFile(source, metadata=metadata, read_dictionary=texts, **options) as file:
            table = _Table(path, found, source.size(), count if rows is None else min(rows, count))
            parts = map(table.fields, file.iter_batches(min(rows or _BATCH, count), columns=found.columns))
            read = 0
            for fields in parts if rows is not None else [_whole(path, parts, count)]:
                read += len(fields["labels"])
                yield {**fields, "multilabel": found.multilabel, "header": header}
        if read != count:
            raise problem(path, f"the file must hold {count} row(s)", read, "make it again")


def _width(path: Path, found: Layout, name: str, kind: Any) -> int:
    """The bytes of a column's numbers, 0 if it is text; refuses what is neither."""
    types = import_module("pyarrow.types")
    one = kind
    wide = [columns for columns in (found.scores, found.labels, found.posterior) if columns and name in columns]
    if [name] in wide and (types.is_list(kind) or types.is_large_list(kind) or types.is_fixed_size_list(kind)):
        one = kind.value_type
    if types.is_dictionary(one):
        one = one.value_type
    if types.is_integer(one) or ((types.is_floating(one) or types.is_boolean(one)) and wide):
        return max(1, int(one.bit_width) // 8)
    if not wide and (types.is_string(one) or types.is_large_string(one)):
        return 0
    if not wide:
        raise problem(path, f"column {name!r} must hold integers or strings", kind, "convert it")
    field = {id(found.labels): "labels", id(found.posterior): "posterior"}.get(id(wide[0]), found.kind)
    raise problem(path, f"{field} must be an array of numbers in column {name!r}", kind, "convert it")


def _claimed(metadata: Any, widths: dict[str, int]) -> int:
    """The bytes that the columns take in memory, as the file states; text takes that of its dictionary and an index."""
    paths = [metadata.schema.column(k).path for k in range(metadata.num_columns)]
    wanted = [
        (k, widths[name])
        for k, path in enumerate(paths)
        if (name := path if path in widths else path.partition(".")[0]) in widths
    ]
    total: int = 0
    for group in map(metadata.row_group, range(metadata.num_row_groups)):
        for k, width in wanted:
            column = group.column(k)  # whose values are counted one by one in lists
            total += max(column.total_uncompressed_size, max(column.num_values, group.num_rows) * (width or 4))
    return max(total, int(metadata.num_rows) * sum(width or 4 for width in widths.values()))


def _whole(path: Path, parts: Iterator[dict[str, NDArray[Any]]], count: int) -> dict[str, Any]:
    """Consecutive rows, `count` in all, as one."""
    whole: dict[str, Any] = {}
    at = 0
    for fields in parts:
        end = at + len(fields["labels"])
        for name, values in fields.items():
            if values.dtype.kind == "U":  # of one width in each part
                whole.setdefault(name, []).append(values)
                continue
            room = whole.setdefault(name, values if end == count and not at else None)
            if room is None:
                room = whole[name] = np.empty((count, *values.shape[1:]), values.dtype)
            if end > count or values.shape[1:] != room.shape[1:]:
                found = f"{values.shape} after {at} rows"
                raise problem(path, f"{name} must have the shape {room.shape}", found, "make it again")
            if room is not values:
                room[at:end] = values
        at = end
    if at != count:
        raise problem(path, f"the file must hold {count} row(s)", at, "make it again")
    return {name: np.concatenate(values) if isinstance(values, list) else values for name, values in whole.items()}


class _Table:
    """The fields of a file's batches, `rows` rows of which are in memory at once."""

    def __init__(self, path: Path, found: Layout, size: int, rows: int) -> None:
        self.path, self.found, self.size, self.rows = path, found, size, rows

    def fields(self, batch: Any) -> dict[str, NDArray[Any]]:
        """A batch as NumPy arrays."""
        found = self.found
        labels = self._matrix(batch, found.labels)
        fields = {
            found.kind: self._matrix(batch, found.scores),
            "labels": labels if found.multilabel or labels.shape[1] != 1 else labels[:, 0],
        }
        if found.posterior is not None:
            fields["posterior"] = self._matrix(batch, found.posterior)
        for name, column in (("ids", found.ids), ("groups", found.groups)):
            if column is not None:
                fields[name] = self._column(batch, column)
        return fields

    def _values(self, batch: Any, name: str) -> Any:
        """A column, which must have no nulls."""
        column = batch.column(name)
        nulls = column.null_count + (column.dictionary.null_count if hasattr(column, "dictionary") else 0)
        if nulls:
            rule = f"column {name!r} must have a value in every row"
            raise problem(self.path, rule, f"{nulls} nulls", "drop them")
        return column

    def _column(self, batch: Any, name: str) -> NDArray[Any]:
        """One column as NumPy; strings as str."""
        column = self._values(batch, name)
        if hasattr(column, "dictionary"):
            text = "string" in str(column.type.value_type)
            if text:
                self._bounded(name, column.dictionary)
            column = column.dictionary_decode()
            if text:
                texts = column.to_pylist()
                if fault := text_fault(texts):
                    raise problem(self.path, f"column {name!r} must {fault[1]}", fault[2], "shorten or replace them")
                return np.array(texts, dtype=np.str_)
        values: NDArray[Any] = column.to_numpy(zero_copy_only=False)
        return values

    def _bounded(self, name: str, texts: Any) -> None:
        """Refuse text that takes too much memory, before there is one for each row."""
        compute = import_module("pyarrow.compute")
        size = int(compute.max(compute.binary_length(texts)).as_py() or 0)
        width = int(compute.max(compute.utf8_length(texts)).as_py() or 0)
        if width > LONGEST_NAME or size > 4 * LONGEST_NAME:
            rule = f"column {name!r} must have at most {LONGEST_NAME} characters each"
            raise problem(self.path, rule, max(width, size // 4), "shorten them")
        believable(self.path, self.rows * max(size, 4 * width), self.size)

    def _matrix(self, batch: Any, names: list[str]) -> NDArray[Any]:
        """Columns side by side, or one column of lists of equal length, (rows, K)."""
        if len(names) > 1 or "list" not in str(batch.column(names[0]).type):
            columns = [self._column(batch, name) for name in names]
            out = np.empty((len(batch), len(names)), np.result_type(*columns))
            for k, column in enumerate(columns):
                out[:, k] = column
            return out
        lists_ = self._values(batch, names[0])
        inner = lists_.flatten()
        width = len(inner) // len(batch)
        lengths = set(lists_.value_lengths().to_pylist()) if hasattr(lists_, "value_lengths") else {width}
        if inner.null_count or lengths != {width}:
            rule = f"column {names[0]!r} must hold lists of one length, without nulls"
            raise problem(self.path, rule, sorted(lengths)[:9], "mend it")
        if hasattr(inner, "dictionary"):
            inner = inner.dictionary_decode()
        values: NDArray[Any] = inner.to_numpy(zero_copy_only=False).reshape(len(batch), width)
        return values
