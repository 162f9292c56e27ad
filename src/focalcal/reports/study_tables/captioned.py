"""A table with what stands above and below it."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from focalcal.reports.cell_text import LATEX, Mean, Rounded, escaped
from focalcal.reports.tables import Table


@dataclass(frozen=True)
class CaptionedTable:
    """`title` says what is shown, `note` how it was made and what it does not say; `groups` span columns in LaTeX."""

    title: str
    table: Table
    note: str = ""
    groups: Mapping[str, Sequence[str]] = field(default_factory=dict)

    def text(self) -> str:
        """For a terminal, where bold is a star."""
        note = self.note.replace("in bold", "with a star")
        return f"{self.title}\n\n{self.table.text()}" + (f"\n{note}\n" if note else "")

    def markdown(self) -> str:
        """A heading, the table and the note."""
        return f"### {self.title}\n\n{self.table.markdown()}" + (f"\n{self.note}\n" if self.note else "")

    def latex(self, label: str = "") -> str:
        """A floating table with a caption, no larger than the page; needs booktabs and graphicx."""
        caption = escaped(f"{self.title}. {self.note}".strip(), LATEX)
        groups = {escaped(title, LATEX): columns for title, columns in self.groups.items()}
        return self.table.latex(caption=caption, label=label, groups=groups or None, fitted=True)


def printed(cell: Any) -> float | None:
    """The number that a reader sees, which is what ties are decided by; None for an empty cell."""
    if cell is None:
        return None
    value = float(cell.printed if isinstance(cell, Mean) else cell.text if isinstance(cell, Rounded) else cell)
    return None if math.isnan(value) else value


def best(cells: Sequence[Any], *, higher: bool = False) -> list[bool]:
    """Which cells are the best as printed: all that tie, and none where there is nothing to be better than."""
    values = [printed(cell) for cell in cells]
    there = [value for value in values if value is not None]
    if len(there) < 2:
        return [False] * len(cells)
    top = max(there) if higher else min(there)
    return [value == top and math.isfinite(top) for value in values]
