"""Delta and Iceberg tables, whose files can hold rows that were overwritten: read by their libraries, or refused."""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

from focalcal.core.extras import required
from focalcal.predictions.header import PredictionsFileError
from focalcal.predictions.locations import Location, Source, local_copy, location

_ICEBERG = re.compile(r"v?(\d+)(?:-.*)?(?:\.gz)?\.metadata\.json")  # a version of a table


class _Versioned(NamedTuple):
    """A table with versions: what it is, where, what reads it, and the line of Python that exports it."""

    kind: str
    folder: Path
    package: str
    opened: Callable[[Any], Any]  # with the package, gives Arrow's batches
    export: str

    @property
    def line(self) -> str:
        """What exports it."""
        return f"python -c \"{self.export}.to_pandas().to_parquet('plain.parquet')\""


def plain_source(place: str | os.PathLike[str] | Location) -> Source:
    """What to read: the place itself, or of a Delta or Iceberg folder a copy of the rows that count now."""
    source = location(place)
    if isinstance(source, Location):
        return source
    table = _versioned(source)
    if table is None:
        return source
    if source.resolve() != table.folder:
        raise _refusal(table)
    try:
        package = required(table.package, purpose="A table with versions")
    except ModuleNotFoundError:
        raise _refusal(table) from None
    try:
        batches = table.opened(package)
        copy = local_copy(str(place), "rows.parquet")
        with required("pyarrow.parquet", purpose="A copy").ParquetWriter(copy.path, batches.schema) as writer:
            for batch in batches:
                writer.write_batch(batch)
    except Exception as error:  # of another program's files, in another library's words
        reason = " ".join(f"{type(error).__name__}: {error}".split())[:300]
        raise PredictionsFileError(
            f"{table.kind} table must be readable by {table.package}, got ({reason}); export those that "
            f"count: {table.line}"
        ) from error
    return copy


def _refusal(table: _Versioned) -> PredictionsFileError:
    return PredictionsFileError(
        f"predictions must be in plain files, got {table.kind} table in {table.folder}, whose files can hold rows that "
        f"were overwritten; name that folder with {table.package} installed, or export those that count: "
        f"{table.line}"
    )


def _versioned(path: Path) -> _Versioned | None:
    """The table that a folder is, or that it or a .parquet file is part of."""
    folders = (path.resolve(), *path.resolve().parents) if path.is_dir() or path.suffix.lower() == ".parquet" else ()
    for folder in folders:
        if (folder / "_delta_log").is_dir():
            export = f"import deltalake; deltalake.DeltaTable({str(folder)!r})"
            return _Versioned("a Delta", folder, "deltalake", partial(_delta_batches, folder), export)
        versions = {file: _ICEBERG.fullmatch(file.name) for file in (folder / "metadata").glob("*.metadata.json")}
        numbers = {str(file): int(match[1]) for file, match in versions.items() if match}
        if numbers:
            newest = max(numbers, key=lambda file: numbers[file])
            export = f"from pyiceberg.table import StaticTable; StaticTable.from_metadata({newest!r}).scan()"
            return _Versioned("an Iceberg", folder, "pyiceberg.table", partial(_iceberg_batches, newest), export)
    return None


def _delta_batches(folder: Path, package: Any) -> Any:
    arrow = required("pyarrow", purpose="Reading a Delta table")
    query = package.QueryBuilder().register("rows", package.DeltaTable(folder)).execute("select * from rows")
    return arrow.RecordBatchReader.from_stream(query)


def _iceberg_batches(metadata: str, package: Any) -> Any:
    return package.StaticTable.from_metadata(metadata).scan().to_arrow_batch_reader()
