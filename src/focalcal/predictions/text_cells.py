"""Cells of text as numbers: the one place that decides which text is a number, and names the cell that is none."""

from __future__ import annotations

import re
from typing import Any

import numpy as np

from focalcal.core.extras import required
from focalcal.predictions.header import PredictionsFileError

MISSING = ("", "NA", "N/A", "n/a", "#N/A", "NaN", "nan", "NULL", "null", "None")  # in the place of a number


def arrow_module(module: str = "") -> Any:
    """pyarrow, or one of its modules."""
    return required(f"pyarrow{module}", purpose="Reading or writing predictions as .csv or .parquet")


def is_text(kind: Any) -> bool:
    """Whether a type of Arrow's is text, or a dictionary of text."""
    types = arrow_module(".types")
    kind = kind.value_type if types.is_dictionary(kind) else kind
    return bool(types.is_string(kind) or types.is_large_string(kind))


def plain_text(column: Any) -> Any:
    """A column of text without its dictionary."""
    return column.cast(column.type.value_type) if arrow_module(".types").is_dictionary(column.type) else column


def numbers_of_text(
    name: str, column: Any, first_row: int, kind: Any, *, decimal: str = ".", percent: bool = False, missing: bool
) -> Any:
    """A column of text as numbers of a type of Arrow's; a cell that is none, or too large, is named by its row.

    With `percent` "85 %" is 85.0, and all numbers have the sign or none; with `missing` empty cells, NA and the like
    are null.
    """
    arrow, compute = arrow_module(), arrow_module(".compute")
    column = plain_text(column)
    digits = compute.utf8_trim(column, " \t")  # a line end is that of a quote that is not closed
    if missing:
        digits = compute.if_else(compute.is_in(digits, arrow.array(MISSING)), None, digits)
    if percent:
        digits = compute.replace_substring_regex(digits, r"^[\s\x{a0}]+|[\s\x{a0}\x{202f}]*%?[\s\x{a0}]*$", "")
    if decimal == ",":
        digits = compute.replace_substring(compute.replace_substring(digits, ".", "?"), ",", ".")
    try:
        numbers = digits.cast(kind)
    except arrow.ArrowInvalid as error:
        row = _first_that_fails(digits, kind)
        raise no_number(name, first_row + row, column[row].as_py(), commas=decimal == ".") from error
    if arrow.types.is_floating(kind) and (infinite := np.isinf(numbers)).any():
        overflows = infinite & np.asarray(compute.fill_null(compute.match_substring_regex(column, "[0-9]"), False))
        if overflows.any():
            row = int(overflows.argmax())
            raise PredictionsFileError(
                f"column {name!r} must hold numbers within the range of {kind}, got {column[row].as_py()[:50]!r} in "
                f"row {first_row + row}; fix it, or write -inf for the logit of an impossible class"
            )
    if percent:
        _check_signs(name, column, numbers, first_row)
    return numbers


def no_number(column: str, row: int, value: str, *, commas: bool = False) -> PredictionsFileError:
    """The error for a cell that holds none, with what it may be."""
    remedy = "fill it in, or leave the row out (drop_missing=True, of a command --drop-missing)"
    if "%" in value:
        remedy = 'read percentages with scale="percent"'
    elif commas and re.fullmatch(r"\s*[-+]?\d*,\d+\s*", value):
        remedy = "say decimal=',', of a command --decimal comma, if all numbers have a decimal comma, or fix the cell"
    elif value.strip() not in MISSING:
        remedy = "fill it in, or leave the row out"
    return PredictionsFileError(
        f"column {column!r} must hold a number in every row, got {value[:50]!r} in row {row}; {remedy}"
    )


def _first_that_fails(cells: Any, kind: Any) -> int:
    """The place of the first cell that Arrow does not take for a number, by halving."""
    low, high = 0, len(cells)
    while high - low > 1:
        middle = (low + high) // 2
        try:
            cells.slice(low, middle - low).cast(kind)
            low = middle
        except arrow_module().ArrowInvalid:
            high = middle
    return low


def _check_signs(name: str, column: Any, numbers: Any, first_row: int) -> None:
    """Refuse numbers with a sign of percent beside others without, but for 0."""
    compute = arrow_module(".compute")
    signed = np.asarray(compute.fill_null(compute.match_substring(column, "%"), False))
    alike = signed | np.asarray(compute.fill_null(compute.equal(numbers, 0.0), True))
    if signed.any() and not alike.all():
        row = int(np.argmin(alike))
        raise PredictionsFileError(
            f"column {name!r} must have a sign of percent in every row or in none, got {column[row].as_py()[:50]!r} in "
            f"row {first_row + row} and {column[int(signed.argmax())].as_py()[:50]!r}; write all of them in one way"
        )
