"""The text of a table's cells: numbers with digits that can be read, and what each format escapes.

A column of floats is written in one notation, so that its decimal points line up: with a fixed number of decimals if
few are enough to leave every number other than 0 at least two significant digits, else in powers of ten.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from focalcal.pages.numbers import Shown

LATEX = {
    "\\": r"\textbackslash{}",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "<": r"\textless{}",
    ">": r"\textgreater{}",
    "|": r"\textbar{}",
    "±": r"$\pm$",
    "\n": " ",
    "\r": " ",
    **{character: "\\" + character for character in "&%$#_{}"},
    **{character: f"{{{character}}}" for character in "[]*"},  # else, first in a row, options of the \\ before it
}
# An entity for <: not every reader of Markdown takes a backslash before it.
MARKDOWN = {character: "\\" + character for character in "\\|_*`[]"} | {"<": "&lt;", "\n": " ", "\r": " "}
PLUS_MINUS = "±"
_WIDEST = 6  # digits before the point, and zeros after it, that are still read at a glance


def number(value: float, *, digits: int = 3) -> str:
    """One number as it stands in a table: 0.0123, 4.00, 1.20e-13."""
    return texts([float(value)], digits, "-")[0]


def texts(values: list[Any], digits: int, missing: str) -> list[str]:
    """The cells of one column, in one notation."""
    shown = [v for v in values if isinstance(v, float | np.floating) and not isinstance(v, Shown)]
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
    usual = max(0, digits - 1 - middle)
    decimals = max(usual, min(digits, 2) - 1 - least)
    readable = most < _WIDEST and decimals <= _WIDEST and decimals <= usual + 1
    return f".{decimals}f" if readable else f".{digits - 1}e"


def _text(value: Any, form: str, missing: str) -> str:
    if value is None:
        return missing
    if isinstance(value, bool | np.bool_):
        return "yes" if value else "no"
    if isinstance(value, float | np.floating):
        if math.isnan(value):
            return missing
        if isinstance(value, Shown):
            return value.text
        if value == 0 and form.endswith("e"):
            return "0"
        return format(float(value) + 0.0, form) if math.isfinite(value) else str(float(value))  # no -0
    return str(value)


def is_number(value: Any) -> bool:
    """Whether a cell is aligned right."""
    return isinstance(value, int | float | np.integer | np.floating) and not isinstance(value, bool)


def escaped(text: str, characters: Mapping[str, str]) -> str:
    """With `characters` replaced."""
    return "".join(characters.get(character, character) for character in text)


def latex_number(cell: str) -> str:
    """A number's text as LaTeX: $-1$, $1.50\\times 10^{-13}$, 4.58 $\\pm$ 0.13."""
    mantissa, e, exponent = cell.partition("e")
    if e and exponent.lstrip("+-").isdigit():
        return rf"${mantissa}\times 10^{{{int(exponent)}}}$"
    if PLUS_MINUS in cell:
        mean, _, spread = cell.partition(f" {PLUS_MINUS} ")
        return rf"{latex_number(mean)} $\pm$ {spread}"
    if cell in ("inf", "-inf"):
        return rf"${cell.replace('inf', chr(92) + 'infty')}$"
    return f"${cell}$" if cell.startswith("-") and len(cell) > 1 else escaped(cell, LATEX)
