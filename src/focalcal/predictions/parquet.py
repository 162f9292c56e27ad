"""Predictions as .parquet: one column a class, row groups of bounded size, checksums on every page."""

from __future__ import annotations

from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from focalcal.predictions.chunk import rows_at_once
from focalcal.predictions.errors import believable, problem
from focalcal.predictions.header import KEY, Header, Names
from focalcal.predictions.table import COLUMN, PREFIX, columns_of, layout, stored_columns

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
    """The rows in order, at most `rows` at a time; batches of any size with None."""
    _, parquet = _arrow()
    with parquet.ParquetFile(path, page_checksum_verification=True, pre_buffer=False) as file:
        stated = (file.schema_arrow.metadata or {}).get(KEY.encode())
        header = None if stated is None else Header.parse(stated.decode(), path)
        found = layout(path, names, header, file.schema_arrow.names)
        count = file.metadata.num_rows
        if count < 1 or (header and count != header.rows):
            raise problem(
                path, f"the file must hold {header.rows if header else 'some'} row(s)", count, "make it again"
            )
        believable(path, 4 * count * len(found.columns), path.stat().st_size)
        read = 0
        for batch in file.iter_batches(min(rows or _BATCH, count), columns=found.columns):
            read += len(batch)
            labels = _matrix(path, batch, found.labels)
            fields = {
                found.kind: _matrix(path, batch, found.scores),
                "labels": labels if found.multilabel or labels.shape[1] != 1 else labels[:, 0],
                "multilabel": found.multilabel,
                "header": header,
            }
            if found.posterior is not None:
                fields["posterior"] = _matrix(path, batch, found.posterior)
            for name, column in (("ids", found.ids), ("groups", found.groups)):
                if column is not None:
                    fields[name] = _column(path, batch, column)
            yield fields
        if read != count:
            raise problem(path, f"the file must hold {count} row(s)", read, "make it again")


def _column(path: Path, batch: Any, name: str) -> NDArray[Any]:
    """One column as NumPy; strings as str."""
    column = batch.column(name)
    if column.null_count:
        raise problem(
            path, f"column {name!r} must have a value in every row", f"{column.null_count} nulls", "drop them"
        )
    values: NDArray[Any] = column.to_numpy(zero_copy_only=False)
    return values.astype(np.str_) if values.dtype == object and all(isinstance(v, str) for v in values) else values


def _matrix(path: Path, batch: Any, names: list[str]) -> NDArray[Any]:
    """Columns side by side, or one column of lists of equal length, (rows, K)."""
    if len(names) > 1 or "list" not in str(batch.column(names[0]).type):
        columns = [_column(path, batch, name) for name in names]
        out = np.empty((len(batch), len(names)), np.result_type(*columns))
        for k, column in enumerate(columns):
            out[:, k] = column
        return out
    _column(path, batch, names[0])
    lists_ = batch.column(names[0])
    inner = lists_.flatten()
    width = len(inner) // len(batch)
    lengths = set(lists_.value_lengths().to_pylist()) if hasattr(lists_, "value_lengths") else {width}
    if inner.null_count or lengths != {width}:
        raise problem(
            path, f"column {names[0]!r} must hold lists of one length, without nulls", sorted(lengths)[:9], "mend it"
        )
    values: NDArray[Any] = inner.to_numpy(zero_copy_only=False).reshape(len(batch), width)
    return values
