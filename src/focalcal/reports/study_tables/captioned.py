"""A table with what stands above and below it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from focalcal.reports.cell_text import LATEX, escaped
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
