"""Tables: columns of equal length, as CSV (every digit), Markdown, LaTeX and plain text (digits that can be read).

A column of floats is written in one notation, so that its decimal points line up: with a fixed number of decimals if
that leaves every number other than 0 at least two significant digits, else in powers of ten.
"""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

_LATEX = {
    "\\": r"\textbackslash{}",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "<": r"\textless{}",
    ">": r"\textgreater{}",
    "|": r"\textbar{}",
    **{character: "\\" + character for character in "&%$#_{}"},
}
_MARKDOWN = {character: "\\" + character for character in "\\|_*`<[]"} | {"\n": " ", "\r": " "}
_WIDEST = 6  # digits before the point, and zeros after it, that are still read at a glance


class Printed(float):
    """A number that somebody printed, which is shown with the digits it was printed with."""

    text: str

    def __new__(cls, text: str) -> Printed:
        """Of "0.180", say."""
        made = super().__new__(cls, text)
        made.text = text
        return made


@dataclass(frozen=True)
class Table:
    """Columns by name, in order.

    headings    what stands above a column, where that is not its name
    digits      significant digits of a typical number of a float column; CSV has all of them
    missing     what stands for NaN and None
    """

    columns: Mapping[str, Sequence[Any] | np.ndarray]
    headings: Mapping[str, str] = field(default_factory=dict)
    digits: int = 3
    missing: str = "-"

    def __post_init__(self) -> None:
        """Refuse what is not a table."""
        if not self.columns:
            raise ValueError("columns must hold at least one column, got none; pass {name: values}")
        lengths = {name: len(values) for name, values in self.columns.items()}
        if len(set(lengths.values())) > 1:
            raise ValueError(f"columns must be equally long, got {lengths}; pass one value a row in each")
        unknown = [name for name in self.headings if name not in self.columns]
        if unknown:
            raise ValueError(f"headings must name columns, got {unknown[0]!r}; the columns are {', '.join(lengths)}")
        if self.digits < 1:
            raise ValueError(f"digits must be >= 1, got {self.digits}; choose how many significant digits to print")

    @property
    def titles(self) -> list[str]:
        """What stands above the columns."""
        return [self.headings.get(name, name) for name in self.columns]

    @property
    def numeric(self) -> list[bool]:
        """True for the columns that are aligned right."""
        return [all(_is_number(value) or value is None for value in values) for values in self.columns.values()]

    def rows(self) -> list[list[str]]:
        """The cells as text, unescaped."""
        return _transposed([_texts(list(values), self.digits, self.missing) for values in self.columns.values()])

    def csv(self) -> str:
        """A line of names, then the rows; floats are written so that reading them gives the same bits."""
        out = io.StringIO()
        writer = csv.writer(out, lineterminator="\n")
        writer.writerow(self.columns)
        writer.writerows(zip(*([_exact(value) for value in values] for values in self.columns.values()), strict=True))
        return out.getvalue()

    def markdown(self) -> str:
        """A pipe table, padded so that it can be read as text, too."""
        columns = _transposed([self.titles, *self.rows()])
        cells = [[_escaped(cell, _MARKDOWN) for cell in column] for column in columns]
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
    ) -> str:
        """A `tabular` with booktabs' rules, in a `table` if there is a caption or a label.

        `headings` by column, the names of `groups` of adjacent columns and `caption` are LaTeX and go in as they are;
        all else is escaped.
        """
        raw = headings or {}
        titles = [raw.get(name, _escaped(title, _LATEX)) for name, title in zip(self.columns, self.titles, strict=True)]
        body = [
            [
                _latex_number(cell) if right else _escaped(cell, _LATEX)
                for cell, right in zip(row, self.numeric, strict=True)
            ]
            for row in self.rows()
        ]
        lines = [" & ".join(row) + r" \\" for row in (titles, *body)]
        alignment = "".join("r" if right else "l" for right in self.numeric)
        opening = [rf"\begin{{tabular}}{{{alignment}}}", r"\toprule", *self._spanning(groups), lines[0], r"\midrule"]
        tabular = [*opening, *lines[1:], r"\bottomrule", r"\end{tabular}"]
        if caption or label:
            named = [rf"\caption{{{caption}}}"] * bool(caption) + [rf"\label{{{label}}}"] * bool(label)
            tabular = [r"\begin{table}", r"\centering", *named, *tabular, r"\end{table}"]
        return "\n".join([*tabular, ""])

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
        """Aligned columns for a terminal."""
        cells = _transposed([self.titles, *self.rows()])
        padded = _padded(cells, [max(map(len, column)) for column in cells], self.numeric)
        return "".join("  ".join(row).rstrip() + "\n" for row in padded)


def number(value: float, *, digits: int = 3) -> str:
    """One number as it stands in a table: 0.0123, 4.00, 1.20e-13."""
    return _texts([float(value)], digits, "-")[0]


def _texts(values: list[Any], digits: int, missing: str) -> list[str]:
    shown = [v for v in values if isinstance(v, float | np.floating) and not isinstance(v, Printed)]
    floats = [abs(float(v)) for v in shown if math.isfinite(v) and v != 0]
    form = _form(floats, digits)
    return [_text(value, form, missing) for value in values]


def _form(sizes: list[float], digits: int) -> str:
    if not sizes:
        return ".0f"
    if all(size.is_integer() and size < 10**_WIDEST for size in sizes):
        return ".0f"
    least, most = (math.floor(math.log10(size)) for size in (min(sizes), max(sizes)))
    middle = math.floor(math.log10(float(np.median(sizes))))
    decimals = max(0, digits - 1 - middle)
    readable = most < _WIDEST and decimals <= _WIDEST and least + decimals >= min(digits, 2) - 1
    return f".{decimals}f" if readable else f".{digits - 1}e"


def _text(value: Any, form: str, missing: str) -> str:
    if value is None:
        return missing
    if isinstance(value, bool | np.bool_):
        return "yes" if value else "no"
    if isinstance(value, float | np.floating):
        if math.isnan(value):
            return missing
        if isinstance(value, Printed):
            return value.text
        if value == 0 and form.endswith("e"):
            return "0"
        return format(float(value) + 0.0, form) if math.isfinite(value) else str(float(value))  # no -0
    return str(value)


def _exact(value: Any) -> str:
    if value is None:
        return ""
    return repr(float(value)) if isinstance(value, float | np.floating) else str(value)


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float | np.integer | np.floating) and not isinstance(value, bool)


def _escaped(text: str, characters: Mapping[str, str]) -> str:
    return "".join(characters.get(character, character) for character in text)


def _latex_number(cell: str) -> str:
    mantissa, e, exponent = cell.partition("e")
    if e and exponent.lstrip("+-").isdigit():
        return rf"${mantissa}\times 10^{{{int(exponent)}}}$"
    if cell in ("inf", "-inf"):
        return rf"${cell.replace('inf', chr(92) + 'infty')}$"
    return f"${cell}$" if cell.startswith("-") and len(cell) > 1 else _escaped(cell, _LATEX)


def _padded(columns: list[list[str]], widths: list[int], right: list[bool]) -> list[list[str]]:
    return _transposed(
        [
            [cell.rjust(width) if at_right else cell.ljust(width) for cell in column]
            for column, width, at_right in zip(columns, widths, right, strict=True)
        ]
    )


def _transposed(lists: list[list[str]]) -> list[list[str]]:
    return [list(row) for row in zip(*lists, strict=True)]
