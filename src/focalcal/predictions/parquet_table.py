"""A .parquet file, judged by its footer before its rows are read."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack
from itertools import islice
from typing import Any

from focalcal.predictions.header import KEY, Header, Names, check_unpacked_size
from focalcal.predictions.locations import Source, opened
from focalcal.predictions.text_cells import arrow_module, is_text

_BATCH = 65536  # rows


class ParquetTable:
    """Columns by name, rows in batches, all or those of some row groups."""

    text = False

    def __init__(self, source: Source, names: Names, stack: ExitStack) -> None:
        self.decimal = names.decimal or "."
        self._handle = stack.enter_context(opened(source))
        self.size: int = self._handle.size()
        footer = arrow_module(".parquet").ParquetFile(self._handle)
        self._metadata, self._schema = footer.metadata, footer.schema_arrow
        stated = (self._schema.metadata or {}).get(KEY.encode())
        self.header = None if stated is None else Header.parse(stated.decode())
        self.columns: list[str] = self._schema.names

    def schema(self, columns: Sequence[str]) -> Any:
        """The types of the columns."""
        return self._schema

    @property
    def row_group_sizes(self) -> list[int]:
        """The number of rows of each row group."""
        return [self._metadata.row_group(group).num_rows for group in range(self._metadata.num_row_groups)]

    def batches(
        self,
        columns: Sequence[str],
        types: Mapping[str, Any],
        *,
        rows: int | None = None,
        row_groups: range | None = None,
        dictionaries: bool = True,
        **_: Any,
    ) -> Iterator[Any]:
        """Arrow's batches of some columns; text as `dictionaries`, or as it is stored."""
        parquet, metadata = arrow_module(".parquet"), self._metadata
        # Not by chunk: pyarrow raises for a row group that makes no sense, and aborts for a chunk.
        groups = [metadata.row_group(group) for group in range(metadata.num_row_groups)]
        sizes = [max(group.total_byte_size, 8 * group.num_rows * metadata.num_columns) for group in groups]
        check_unpacked_size(sum(sizes), self.size)
        # Text stays a dictionary, so that it can be measured before there is a copy for each row.
        kinds = {name: self._schema.field(name).type for name in columns}
        texts = [name for name, kind in kinds.items() if dictionaries and is_text(kind)]
        file = parquet.ParquetFile(
            self._handle, metadata=metadata, read_dictionary=texts, page_checksum_verification=True, pre_buffer=False
        )
        lists = [name for name, kind in kinds.items() if dictionaries and arrow_module(".types").is_nested(kind)]
        for first in islice(file.iter_batches(1, columns=lists) if lists else (), 1):
            check_unpacked_size(first.nbytes * metadata.num_rows, self.size)  # no footer says how long lists are
        return iter(file.iter_batches(rows or _BATCH, row_groups=row_groups, columns=list(kinds)))
