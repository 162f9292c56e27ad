"""Distributions as they are given on the command line: as numbers, or in a file with one a row."""

from __future__ import annotations

import csv
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    import numpy as np
    from jaxtyping import Float


class Given(NamedTuple):
    """The distributions, and the file they are from."""

    rows: Float[np.ndarray, "n k"]
    file: Path | None

    def place(self, row: int) -> str:
        """Where a row is from, to begin an error with."""
        return "" if self.file is None else f"{self.file}, row {row + 1}: "


def given_rows(name: str, words: list[str] | None, file: Path | None, *, instead: str = "") -> Given:
    """The words as one row of numbers, or the rows of the file; exactly one of the two must be given.

    `instead` is what else the command takes. That rows miss a sum of one by at most 1e-3 is left to the theory.
    """
    import numpy as np

    if bool(words) == (file is not None):
        got = "both" if words else "neither"
        raise ValueError(
            f"{name} must be given either as numbers or with --file, got {got}; for example 0.7 0.2 0.1{instead}"
        )
    if file is not None:
        return Given(checked_rows(name, _rows_of(file), file), file)
    return Given(np.array([numbers(name, words or [])]), None)


def numbers(name: str, words: list[str], *, example: str = "0.7 0.2 0.1") -> list[float]:
    """Words of the command line as probabilities, each >= 0."""
    return [_number(name, word, example) for word in words]


def _number(name: str, word: str, example: str) -> float:
    try:
        value = float(word)
    except ValueError:
        if word.startswith("-"):
            raise ValueError(f"there is no option {word}; see --help") from None
        apart = " ".join(word.replace(",", " ").replace(";", " ").split())
        remedy = f"write {apart}" if apart != word else f"for example {example}"
        raise ValueError(f"{name} must be numbers with spaces between them, got {word!r}; {remedy}") from None
    if value < 0:
        raise ValueError(f"{name} must be >= 0, got {word}; pass probabilities, not logits or scores")
    return value


def checked_rows(name: str, rows: Float[np.ndarray, "n k"], file: Path) -> Float[np.ndarray, "n k"]:
    """The rows; the error for one that holds no probabilities says where in the file it is."""
    from focalcal.core.checks import off_simplex
    from focalcal.theory.posteriors import distributions

    wrong = off_simplex(rows.min(-1), rows.sum(-1))
    if wrong.any():
        row = int(wrong.argmax())
        try:
            distributions(name, rows[row])
        except ValueError as problem:
            raise ValueError(f"{Given(rows, file).place(row)}{problem}") from None
    return rows


def _rows_of(file: Path) -> Float[np.ndarray, "n k"]:
    import numpy as np

    kind = file.suffix.lower()
    if kind not in (".csv", ".npy"):
        raise ValueError(f"--file must end in .csv or .npy, got {file.name!r}; save it as one of them")
    array: np.ndarray = _csv_rows(file) if kind == ".csv" else _npy_array(file)
    if array.dtype.kind not in "fiu" or array.ndim not in (1, 2) or array.size == 0:
        raise ValueError(
            f"{file} must hold numbers, one distribution (K,) or one a row (N, K), got {array.dtype} of shape "
            f"{array.shape}; save probabilities"
        )
    return np.atleast_2d(array).astype(np.float64)


def _npy_array(file: Path) -> np.ndarray:
    import numpy as np

    try:
        array: np.ndarray = np.load(file, allow_pickle=False)
    except (ValueError, EOFError):
        raise ValueError(
            f"{file} must hold an array of numbers, got Python objects or another format; write it with numpy.save"
        ) from None
    return array


def _csv_rows(file: Path) -> Float[np.ndarray, "n k"]:
    import numpy as np

    try:
        with open(file, newline="", encoding="utf-8-sig") as handle:  # spreadsheets put a mark first
            lines = [(number, row) for number, row in enumerate(csv.reader(handle), start=1) if row]
    except (UnicodeDecodeError, csv.Error) as problem:
        raise ValueError(f"{file} must be text in UTF-8, got something else ({problem}); save it as CSV") from None
    rows: list[list[float]] = []
    for number, row in lines:
        try:
            rows.append([float(cell) for cell in row])
        except ValueError:
            raise ValueError(
                f"{file}, line {number}: every cell must be a number, got {','.join(row)[:60]!r}; "
                "write one distribution a line, without headings"
            ) from None
        if len(row) != len(rows[0]):
            raise ValueError(
                f"{file}, line {number}: every line must have {len(rows[0])} numbers like the first, got {len(row)}"
            )
    return np.array(rows, dtype=np.float64)
