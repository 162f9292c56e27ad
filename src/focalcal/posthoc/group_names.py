"""Groups as callers have them, one or several columns of names, as a table of columns."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from numpy.typing import NDArray

from focalcal.core.arrays import as_values


def group_columns(groups: Any, rows: int) -> dict[str, NDArray[Any]]:
    """Columns by their names, each (rows,): of a dict, a table (pandas, polars, Arrow), or an array (N,) or (N, G).

    Names of groups are text or whole numbers; columns without a name of their own are called group, or group_0, ...
    """
    if groups is None:
        raise ValueError("groups must be given, got None; pass the name of a group for every row")
    named = getattr(groups, "columns", None) if hasattr(groups, "to_numpy") else None
    if isinstance(groups, Mapping):
        columns = {str(name): as_values("groups", column) for name, column in groups.items()}
    elif hasattr(groups, "column_names"):  # Arrow
        columns = {name: as_values("groups", groups[name]) for name in groups.column_names}
    elif named is not None:
        columns = {str(name): as_values("groups", groups[name]) for name in named}
    else:
        table = as_values("groups", groups)
        several = {f"group_{at}": table[:, at] for at in range(table.shape[1] if table.ndim == 2 else 0)}
        columns = several if table.ndim == 2 else {"group": table}
    if not columns:
        raise ValueError("groups must have at least one column, got none; pass the name of a group for every row")
    for name, column in columns.items():
        _check(name, column, rows)
    return columns


def _check(name: str, column: NDArray[Any], rows: int) -> None:
    if column.shape != (rows,):
        raise ValueError(f"groups must name the group of each of {rows} rows, got {name} of shape {column.shape}")
    if column.dtype.kind not in "OSUTiub":
        raise TypeError(
            f"groups must be text or whole numbers, got {column.dtype} in {name}; cut numbers into ranges with names"
        )
    missing = [at for at, value in enumerate(column.tolist()) if value is None or value != value or value == ""]
    if missing:
        raise ValueError(
            f"groups must not be missing, got {column[missing[0]]!r} in row {missing[0]} of {name}; name it"
        )


def one_group_column(groups: Any, rows: int) -> NDArray[Any]:
    """The only column."""
    columns = group_columns(groups, rows)
    if len(columns) > 1:
        raise ValueError(
            f"groups must be one column here, got {len(columns)}: {', '.join(columns)}; join them to one name per row"
        )
    return next(iter(columns.values()))
