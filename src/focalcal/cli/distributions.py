"""Distributions as they are given on the command line: as numbers, or in a file with one a row."""

from __future__ import annotations

import csv
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np
    from jaxtyping import Float


def given_rows(name: str, numbers: list[float] | None, file: Path | None) -> Float[np.ndarray, "n k"]:
    """The numbers as one row, or the rows of the file; exactly one of the two must be given."""
    import numpy as np

    if bool(numbers) == (file is not None):
        got = "both" if numbers else "neither"
        raise ValueError(f"{name} must be given either as numbers or with --file, got {got}; for example 0.7 0.2 0.1")
    return np.array([numbers], dtype=np.float64) if file is None else _rows_of(file)


def _rows_of(file: Path) -> Float[np.ndarray, "n k"]:
    import numpy as np

    if file.suffix not in (".csv", ".npy"):
        raise ValueError(f"--file must end in .csv or .npy, got {file.name!r}; save it as one of them")
    array: np.ndarray = _csv_rows(file) if file.suffix == ".csv" else np.load(file, allow_pickle=False)
    if array.dtype.kind not in "fiu" or array.ndim not in (1, 2) or array.size == 0:
        raise ValueError(
            f"{file} must hold numbers, one distribution (K,) or one a row (N, K), got {array.dtype} of shape "
            f"{array.shape}; save probabilities"
        )
    return np.atleast_2d(array).astype(np.float64)


def _csv_rows(file: Path) -> Float[np.ndarray, "n k"]:
    import numpy as np

    with open(file, newline="", encoding="utf-8") as handle:
        lines = [(number, row) for number, row in enumerate(csv.reader(handle), start=1) if row]
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
