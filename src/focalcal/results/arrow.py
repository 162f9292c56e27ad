"""Rows as Arrow tables, which DuckDB and Parquet files take; needs the extra `study`."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any


def arrow_table(arrow: Any, columns: Sequence[str], rows: list[dict[str, Any]]) -> Any:
    """The given columns first, others as they come; text where types are mixed or numbers too large."""
    names = column_names(columns, rows)
    return arrow.table({title: _column(arrow, name, [row.get(name) for row in rows]) for name, title in names.items()})


def column_names(columns: Sequence[str], rows: Iterable[Mapping[str, Any]]) -> dict[str, str]:
    """The names in the rows and what to call their columns: SQL does not tell `Gamma` from `gamma`.

    >>> column_names(["key"], [{"key": "a", "gamma": 1}, {"Gamma": 2}])
    {'key': 'key', 'gamma': 'gamma', 'Gamma': 'Gamma_2'}
    """
    found: dict[str, str] = {}
    taken: set[str] = set()
    for name in (*columns, *(name for row in rows for name in row)):
        if name not in found:
            title, number = name, 2
            while title.lower() in taken:
                title, number = f"{name}_{number}", number + 1
            taken.add(title.lower())
            found[name] = title
    return found


def _column(arrow: Any, name: str, values: list[Any]) -> Any:
    kinds = {type(value) for value in values if value is not None}
    kind = arrow.string()
    if kinds and kinds <= {int, float}:
        kind = arrow.int64() if name in ("seed", "epoch", "epochs") else arrow.float64()
    elif kinds == {list}:
        kind = arrow.list_(arrow.float64())
    elif kinds == {bool}:
        kind = arrow.bool_()
    elif not kinds and name in ("value", "seconds", "seed", "epoch"):
        kind = arrow.float64()
    try:
        return arrow.array(values, kind)
    except (arrow.ArrowException, OverflowError):  # mixed types, and numbers that do not fit
        return arrow.array([None if value is None else str(value) for value in values], arrow.string())
