"""Rows of tables that lack a value, left out where the caller says so."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from focalcal.predictions.columns import Layout
from focalcal.predictions.reading_notes import Missing
from focalcal.predictions.text_tables import MISSING, _arrow, _is_text


def without_missing(
    table: Any, layout: Layout, *, numbers: Sequence[str] = ()
) -> tuple[Any, NDArray[np.int64], Missing]:
    """The rows of an Arrow table that have every value, where they stood, and what the others lack.

    Missing are nulls, NaN and empty text; in text that is to hold `numbers` also NA and the like.
    """
    lacking = {name: _lacks(table.column(name), number=name in numbers) for name in layout.all_columns}
    any_of_them = np.logical_or.reduce(list(lacking.values()))
    missing = Missing(
        table.num_rows,
        int(any_of_them.sum()),
        Counter({name: n for name, each in lacking.items() if (n := int(each.sum()))}),
    )
    if not missing.left_out:
        return table, np.arange(table.num_rows), missing
    return table.filter(_arrow().array(~any_of_them)), np.flatnonzero(~any_of_them), missing


def _lacks(column: Any, *, number: bool) -> NDArray[np.bool_]:
    arrow, compute, types = _arrow(), _arrow(".compute"), _arrow(".types")
    if types.is_dictionary(column.type):
        column = column.cast(column.type.value_type)
    lacks = column.is_null(nan_is_null=True)
    if types.is_list(column.type) or types.is_large_list(column.type) or types.is_fixed_size_list(column.type):
        rows = compute.list_parent_indices(column).to_numpy()
        inside = np.asarray(compute.list_flatten(column).is_null(nan_is_null=True))
        marks = np.asarray(lacks).copy()
        marks[rows[inside]] = True
        return marks
    if _is_text(column.type):
        empty = MISSING if number else ("",)
        lacks = compute.or_(
            lacks, compute.fill_null(compute.is_in(compute.utf8_trim_whitespace(column), arrow.array(empty)), True)
        )
    return np.asarray(lacks)
