"""How a result shows itself: a short text, the same as a table in a notebook, and columns for whoever computes on."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from html import escape
from typing import Any

MOST_ROWS = 40  # what fits a screen


class Displayed(ABC):
    """`print` and a notebook show what `frame` holds, shortened to a screen."""

    @abstractmethod
    def frame(self) -> dict[str, list[Any]]:
        """Columns of equal length by name, which `pandas.DataFrame`, `polars.DataFrame` and `pyarrow.table` take."""

    @abstractmethod
    def __str__(self) -> str:
        """The numbers on one screen."""

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


def html_table(columns: Mapping[str, Sequence[Any]]) -> str:
    """A table of at most a screen of rows."""
    head = "".join(f"<th>{escape(name.replace('_', ' '))}</th>" for name in columns)
    body = []
    for at in shortened(max((len(values) for values in columns.values()), default=0)):
        cells = ("..." if at is None else cell_text(values[at]) for values in columns.values())
        body.append("<tr>" + "".join(f"<td>{escape(cell)}</td>" for cell in cells) + "</tr>")
    return f"<table><thead><tr>{head}</tr></thead><tbody>{''.join(body)}</tbody></table>"


def cell_text(value: Any) -> str:
    """Four decimals of a float."""
    return f"{value:.4f}" if isinstance(value, float) else str(value)
