"""CSV with every digit, in which nothing that somebody named can become a spreadsheet's formula."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable
from typing import Any

import numpy as np

_FORMULA = ("=", "+", "-", "@", "\t", "\r")  # how a cell begins that a spreadsheet may compute


def csv_text(rows: Iterable[Iterable[Any]]) -> str:
    """A line per row; floats are written so that reading them gives the same bits, nothing stands for None."""
    out = io.StringIO()
    csv.writer(out, lineterminator="\n").writerows([_cell(value) for value in row] for row in rows)
    return out.getvalue()


def _cell(value: Any) -> str:
    if value is None:
        return ""
    if isinstance(value, float | np.floating):
        return repr(float(value))
    return _inert(value) if isinstance(value, str) else str(value)


def _inert(text: str) -> str:
    """Text that begins like a formula gets an apostrophe before it; a number, -0.5 say, or a dash stays what it is."""
    if len(text) == 1 or not text.startswith(_FORMULA):
        return text
    try:
        float(text)
    except ValueError:
        return f"'{text}"
    return text
