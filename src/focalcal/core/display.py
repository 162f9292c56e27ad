"""How a result shows itself: a short text, the same as a table in a notebook, and columns for whoever computes on."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import fields
from html import escape
from typing import Any

MOST_ROWS = 40  # what fits a screen


class Displayed:
    """A dataclass (with `repr=False`) that prints on one screen and shows what `frame` holds in a notebook.

    What is here does for one of single values; others have a `frame` and a `__str__` of their own.
    """

    def frame(self) -> dict[str, list[Any]]:
        """Columns of equal length by name, which `pandas.DataFrame`, `polars.DataFrame` and `pyarrow.table` take."""
        return {field.name: [getattr(self, field.name)] for field in fields(self)}  # type: ignore[arg-type]

    def __str__(self) -> str:
        """One line per value."""
        values = {name.replace("_", " "): cell_text(value) for name, (value,) in self.frame().items()}
        width = max(map(len, values))
        return "\n".join([type(self).__name__, *(f"  {name:<{width}}  {value}" for name, value in values.items())])

    def __repr__(self) -> str:
        """As it is printed."""
        return str(self)

    def _repr_html_(self) -> str:
        return html_table(self.frame())


def shortened(count: int) -> Iterator[int | None]:
    """The numbers of the rows to show, None where some are left out: the first and the last ones of many."""
    if count <= MOST_ROWS:
        yield from range(count)
        return
    half = MOST_ROWS // 2
    yield from range(half)
    yield None
    yield from range(count - half, count)


def text_table(columns: Mapping[str, Sequence[Any]]) -> str:
    """A table of at most a screen of rows, its columns aligned to the right."""
    widths = [max(len(name), *(len(cell) for cell in cells)) for name, cells in _cells(columns).items()]
    rows = [tuple(columns), *zip(*_cells(columns).values(), strict=True)]
    lines = ("  ".join(cell.rjust(width) for cell, width in zip(row, widths, strict=True)) for row in rows)
    return "\n".join(lines)


def html_table(columns: Mapping[str, Sequence[Any]]) -> str:
    """A table of at most a screen of rows."""
    head = "".join(f"<th>{escape(name.replace('_', ' '))}</th>" for name in columns)
    rows = zip(*_cells(columns).values(), strict=True)
    body = "".join("<tr>" + "".join(f"<td>{escape(cell)}</td>" for cell in row) + "</tr>" for row in rows)
    return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"


def _cells(columns: Mapping[str, Sequence[Any]]) -> dict[str, list[str]]:
    return {
        name: ["..." if at is None else cell_text(values[at]) for at in shortened(len(values))]
        for name, values in columns.items()
    }


def cell_text(value: Any) -> str:
    """Four decimals of a float, or two digits of a very small one."""
    if not isinstance(value, float):
        return str(value)
    return f"{value:.2g}" if 0 < abs(value) < 1e-3 else f"{value:.4f}"


def percent(share: float) -> str:
    """A share in percent, with three digits where it is small.

    >>> percent(0.1204), percent(0.00106), percent(1e-9), percent(0.0)
    ('12.0 %', '0.106 %', '0.0000001 %', '0 %')
    """
    value = 100 * share
    if value == 0 or abs(value) >= 0.9995:  # which three digits round to 1, so that 0.01 and its neighbours look alike
        return f"{value:.1f} %" if value else "0 %"
    text = f"{value:.{2 - math.floor(math.log10(abs(value)))}f}"
    return f"{text.rstrip('0')} %" if abs(value) < 1e-3 else f"{text} %"


def ratio(value: float) -> str:
    """An O/E ratio or a slope in as many digits as it deserves.

    >>> ratio(1.4), ratio(0.0), ratio(0.0012), ratio(1.85e6), ratio(math.inf)
    ('1.40', '0.00', '0.0012', '1,850,000', 'inf')
    """
    if not math.isfinite(value) or 0 < abs(value) < 0.01:
        return f"{value:.2g}"
    return f"{value:,.0f}" if abs(value) >= 100 else f"{value:.2f}"
