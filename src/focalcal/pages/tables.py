"""Tables: columns of equal length, as CSV (every digit), Markdown, LaTeX and plain text (digits that can be read)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from focalcal.core.csv_text import csv_text
from focalcal.pages.cell_text import (
    LATEX,
    MARKDOWN,
    escaped,
    is_number,
    latex_number,
    number,
    texts,
)
from focalcal.pages.numbers import Mean

__all__ = ["CaptionedTable", "Table", "number"]

_MARK = "*"  # after a bold cell of plain text
_FITTED = (  # no wider and no higher than the page, and never enlarged
    r"\resizebox{\ifdim\width>\linewidth\linewidth\else\width\fi}{!}{%",
    r"\resizebox*{!}{\ifdim\totalheight>0.8\textheight 0.8\textheight\else\totalheight\fi}{%",
)


@dataclass(frozen=True)
class Table:
    """Columns by name, in order.

    headings    what stands above a column, where that is not its name
    digits      significant digits of a typical number of a float column; CSV has all of them
    missing     what stands for NaN and None
    bold        of some columns, which cells stand out: **x** in Markdown, \\textbf in LaTeX, x* in text, nothing in CSV
    """

    columns: Mapping[str, Sequence[Any] | np.ndarray]
    headings: Mapping[str, str] = field(default_factory=dict)
    digits: int = 3
    missing: str = "-"
    bold: Mapping[str, Sequence[bool]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """Refuse what is not a table."""
        if not self.columns:
            raise ValueError("columns must hold at least one column, got none; pass {name: values}")
        lengths = {name: len(values) for name, values in self.columns.items()}
        if len(set(lengths.values())) > 1:
            raise ValueError(f"columns must be equally long, got {lengths}; pass one value per row in each")
        unknown = [name for name in self.headings if name not in self.columns]
        if unknown:
            raise ValueError(f"headings must name columns, got {unknown[0]!r}; the columns are {', '.join(lengths)}")
        if self.digits < 1:
            raise ValueError(f"digits must be >= 1, got {self.digits}; choose how many significant digits to print")
        rows = next(iter(lengths.values()))
        for name, mask in self.bold.items():
            if lengths.get(name) != len(mask):
                raise ValueError(f"bold must have {rows} values for a column, got {len(mask)} for {name!r}")

    @classmethod
    def stacked(cls, blocks: Iterable[Mapping[str, Any]], *, digits: int = 3) -> Table:
        """Blocks of rows one below the other; a text or number of a block stands in each of its rows."""
        columns: dict[str, list[Any]] = {}
        for block in blocks:
            rows = next(len(values) for values in block.values() if np.ndim(values))
            for name, values in block.items():
                listed = np.asarray(values).tolist() if np.ndim(values) else [values] * rows
                columns.setdefault(name, []).extend(listed)
        return cls(columns, digits=digits)

    @property
    def titles(self) -> list[str]:
        """What stands above the columns."""
        return [self.headings.get(name, name) for name in self.columns]

    @property
    def numeric(self) -> list[bool]:
        """True for the columns that are aligned right."""
        return [all(is_number(value) or value is None for value in values) for values in self.columns.values()]

    def rows(self) -> list[list[str]]:
        """The cells as text, unescaped."""
        return _transposed([texts(list(values), self.digits, self.missing) for values in self.columns.values()])

    def bold_rows(self) -> list[list[bool]]:
        """Which cells of `rows()` stand out."""
        plain = [False] * len(next(iter(self.columns.values())))
        masks = [map(bool, self.bold.get(name, plain)) for name in self.columns]
        return [list(row) for row in zip(*masks, strict=True)]

    def csv(self) -> str:
        """A line of names, then the rows; floats are written so that reading them gives the same bits.

        A column of means is three: the mean, `_std` and `_n`.
        """
        columns: dict[str, list[Any]] = {}
        for name, values in self.columns.items():
            columns[name] = list(values)
            if any(isinstance(value, Mean) for value in values):
                columns[f"{name}_std"] = [value.deviation if isinstance(value, Mean) else None for value in values]
                columns[f"{name}_n"] = [value.n if isinstance(value, Mean) else None for value in values]
        return csv_text([columns, *zip(*columns.values(), strict=True)])

    def markdown(self) -> str:
        """A pipe table, padded so that it can be read as text, too."""
        body = [[escaped(cell, MARKDOWN) for cell in row] for row in self.rows()]
        cells = _transposed([[escaped(title, MARKDOWN) for title in self.titles], *self._marked(body, "**", "**")])
        widths = [max(3, *map(len, column)) for column in cells]
        padded = _padded(cells, widths, self.numeric)
        rule = [
            "-" * (width - 1) + ":" if right else "-" * width for width, right in zip(widths, self.numeric, strict=True)
        ]
        return "".join(f"| {' | '.join(row)} |\n" for row in (padded[0], rule, *padded[1:]))

    def latex(
        self,
        *,
        headings: Mapping[str, str] | None = None,
        groups: Mapping[str, Sequence[str]] | None = None,
        caption: str = "",
        label: str = "",
        fitted: bool = False,
    ) -> str:
        """A `tabular` with booktabs' rules, in a `table` if there is a caption or a label.

        `headings` by column, the names of `groups` of adjacent columns and `caption` are LaTeX and go in as they are;
        all else is escaped. `fitted` shrinks what is larger than the page, which needs graphicx.
        """
        raw = headings or {}
        titles = [raw.get(name, escaped(title, LATEX)) for name, title in zip(self.columns, self.titles, strict=True)]
        body = [
            [
                latex_number(cell) if right else escaped(cell, LATEX)
                for cell, right in zip(row, self.numeric, strict=True)
            ]
            for row in self.rows()
        ]
        bold = [
            [rf"\boldmath {cell}" if "$" in cell and at else cell for cell, at in zip(row, mask, strict=True)]
            for row, mask in zip(body, self.bold_rows(), strict=True)
        ]  # digits of formulas, too
        lines = [" & ".join(row) + r" \\" for row in (titles, *self._marked(bold, r"\textbf{", "}"))]
        alignment = "".join("r" if right else "l" for right in self.numeric)
        opening = [rf"\begin{{tabular}}{{{alignment}}}", r"\toprule", *self._spanning(groups), lines[0], r"\midrule"]
        tabular = [*opening, *lines[1:], r"\bottomrule", r"\end{tabular}"]
        if fitted:
            tabular = [*_FITTED, *tabular[:-1], tabular[-1] + "}}"]
        if caption or label:
            named = [rf"\caption{{{caption}}}"] * bool(caption) + [rf"\label{{{label}}}"] * bool(label)
            tabular = [r"\begin{table}", r"\centering", *named, *tabular, r"\end{table}"]
        return "\n".join([*tabular, ""])

    def _marked(self, rows: list[list[str]], before: str, after: str) -> list[list[str]]:
        return [
            [f"{before}{cell}{after}" if bold else cell for cell, bold in zip(row, mask, strict=True)]
            for row, mask in zip(rows, self.bold_rows(), strict=True)
        ]

    def _spanning(self, groups: Mapping[str, Sequence[str]] | None) -> list[str]:
        """The line above the headings, with a rule below each group; nothing without groups."""
        if not groups:
            return []
        names = list(self.columns)
        cells, rules, at = [], [], 0
        for title, columns in sorted(groups.items(), key=lambda group: names.index(group[1][0])):
            first = names.index(columns[0])
            if first < at or names[first : first + len(columns)] != list(columns):
                raise ValueError(f"groups must name adjacent columns, each once, got {list(columns)} for {title!r}")
            cells += [""] * (first - at) + [rf"\multicolumn{{{len(columns)}}}{{c}}{{{title}}}"]
            at = first + len(columns)
            rules.append(rf"\cmidrule(lr){{{first + 1}-{at}}}")
        return [" & ".join(cells + [""] * (len(names) - at)) + r" \\", "".join(rules)]

    def text(self) -> str:
        """Aligned columns for a terminal; a cell that stands out has a star behind it."""
        starred = [any(self.bold.get(name, ())) for name in self.columns]
        rows = zip(self._marked(self.rows(), "", _MARK), self.bold_rows(), strict=True)
        body = [
            [cell if bold or not room else cell + " " for cell, bold, room in zip(row, mask, starred, strict=True)]
            for row, mask in rows
        ]
        titles = [title + " " * room for title, room in zip(self.titles, starred, strict=True)]
        cells = _transposed([titles, *body])
        padded = _padded(cells, [max(map(len, column)) for column in cells], self.numeric)
        return "".join("  ".join(row).rstrip() + "\n" for row in padded)


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


def _padded(columns: list[list[str]], widths: list[int], right: list[bool]) -> list[list[str]]:
    return _transposed(
        [
            [cell.rjust(width) if at_right else cell.ljust(width) for cell in column]
            for column, width, at_right in zip(columns, widths, right, strict=True)
        ]
    )


def _transposed(lists: list[list[str]]) -> list[list[str]]:
    return [list(row) for row in zip(*lists, strict=True)]
