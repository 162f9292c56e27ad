"""Distributions as the command line takes them: as numbers, in a file with one per row, or as a population's states."""

from __future__ import annotations

import csv
import json
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    import numpy as np
    from jaxtyping import Float

_EXAMPLE = "weight,eta_1,eta_2,eta_3"


class Given(NamedTuple):
    """The distributions, and the file they are from."""

    rows: Float[np.ndarray, "n k"]
    file: Path | None

    def place(self, row: int) -> str:
        """Where a row is from, to begin an error with."""
        return "" if self.file is None else f"{self.file}, row {row + 1}: "


class States(NamedTuple):
    """Posteriors eta (N, K); the predictions q (N, K) and the weights (N,), which sum to one, if there are any."""

    eta: Float[np.ndarray, "n k"]
    q: Float[np.ndarray, "n k"] | None
    weights: Float[np.ndarray, " n"] | None


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
        return Given(_checked_rows(name, _rows_of(file), file), file)
    return Given(np.array([numbers(name, words or [])]), None)


def numbers(name: str, words: list[str], *, example: str = "0.7 0.2 0.1") -> list[float]:
    """Words of the command line as probabilities, each >= 0."""
    for word in words:
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
    return [float(word) for word in words]


def read_states(file: Path) -> States:
    """A .csv file with headings (weight, eta_1, eta_2, ..., q_1, q_2, ...), or a .json file with a list of objects.

    Each state has `eta`, and may have `q` and `weight`, which all or none must have. Weights are divided by their sum;
    rows of eta and q that sum to one within 1e-5 are divided by theirs.
    """
    kind = file.suffix.lower()
    if kind not in (".csv", ".json"):
        raise ValueError(f"the file of states must end in .csv or .json, got {file.name!r}; save it as one of them")
    columns = _csv_columns(file) if kind == ".csv" else _json_columns(file)
    if "eta" not in columns:
        raise ValueError(f"{file} must give the posterior of every state, got no eta; for example {_EXAMPLE}")
    eta, q = (_checked_rows(name, columns[name], file) if name in columns else None for name in ("eta", "q"))
    assert eta is not None
    weights = columns.get("weight")
    if weights is not None:
        total = weights.sum()
        if not (weights >= 0).all() or not 0 < total < float("inf"):
            raise ValueError(
                f"{file}: weights must be >= 0 with a positive sum, got {weights.min():g} and a sum of {total:g}"
            )
        weights = weights / total
    return States(eta, q, weights)


def _csv_columns(file: Path) -> dict[str, np.ndarray]:
    """`eta`, `q` and `weight`, as far as the headings name them."""
    headings, states = _csv_table(file, headed=True)
    places = {"weight": [at for at, heading in enumerate(headings) if heading == "weight"]}
    for name in ("eta", "q"):
        count = sum(heading.startswith(f"{name}_") for heading in headings)
        entries = [f"{name}_{k + 1}" for k in range(count)]
        places[name] = [headings.index(entry) for entry in entries if entry in headings]
    if sorted(at for entries in places.values() for at in entries) != list(range(len(headings))):
        raise ValueError(
            f"{file}, line 1: the headings must be weight, eta_1, eta_2, ... and q_1, q_2, ..., each once, "
            f"got {','.join(headings)!r}; for example {_EXAMPLE}"
        )
    if not len(states):
        raise ValueError(f"{file} must hold at least one state, got none; give each a line under {_EXAMPLE}")
    columns = {name: states[:, entries] for name, entries in places.items() if entries}
    return columns | ({"weight": columns["weight"][:, 0]} if "weight" in columns else {})


def _json_columns(file: Path) -> dict[str, np.ndarray]:
    try:
        states = json.loads(file.read_text(encoding="utf-8-sig"))
    except (ValueError, RecursionError) as problem:
        raise ValueError(f"{file} must be JSON in UTF-8, got something else ({problem})") from None
    if not isinstance(states, list) or not states or not all(isinstance(state, dict) for state in states):
        raise ValueError(
            f"{file} must hold a list of at least one state, each an object, got another kind of JSON; "
            'for example [{"weight": 1, "eta": [0.7, 0.2, 0.1]}]'
        )
    given = [name for name in ("eta", "q", "weight") if any(state.get(name) is not None for state in states)]
    return {name: _json_column(file, name, [state.get(name) for state in states]) for name in given}


def _json_column(file: Path, name: str, values: list[Any]) -> np.ndarray:
    import numpy as np

    try:
        array = np.array(values)
    except ValueError:  # of lists that are not equally long
        array = np.array(None)
    is_vector = name != "weight"
    if array.dtype.kind not in "iuf" or array.ndim != 1 + is_vector or not np.isfinite(array).all():
        rule = "a list of equally many numbers" if is_vector else "a number"
        raise ValueError(f"{file}: {name} of every state must be {rule}, unless no state has one; write them all")
    return array.astype(np.float64)


def _checked_rows(name: str, rows: Float[np.ndarray, "n k"], file: Path) -> Float[np.ndarray, "n k"]:
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
    if kind == ".csv":
        array = _csv_table(file)[1]
    else:
        try:
            array = np.load(file, allow_pickle=False)
        except (ValueError, EOFError):
            raise ValueError(
                f"{file} must hold an array of numbers, got Python objects or another format; write it with numpy.save"
            ) from None
    if array.dtype.kind not in "fiu" or array.ndim not in (1, 2) or array.size == 0:
        raise ValueError(
            f"{file} must hold numbers, one distribution (K,) or one a row (N, K), got {array.dtype} of shape "
            f"{array.shape}; save probabilities"
        )
    return np.atleast_2d(array).astype(np.float64)


def _csv_table(file: Path, *, headed: bool = False) -> tuple[list[str], np.ndarray]:
    """The names in the first line, if it has names, and the numbers (lines, columns)."""
    import numpy as np

    try:
        with open(file, newline="", encoding="utf-8-sig") as handle:  # spreadsheets put a mark first
            lines = [(number, row) for number, row in enumerate(csv.reader(handle), start=1) if row]
    except (UnicodeDecodeError, csv.Error) as problem:
        raise ValueError(f"{file} must be CSV in UTF-8, got something else ({problem}); save it as such") from None
    first = lines[0][1] if lines else []
    rows: list[list[float]] = []
    for number, row in lines[headed:]:
        if len(row) != len(first):
            raise ValueError(
                f"{file}, line {number}: every line must have {len(first)} numbers like the first, got {len(row)}"
            )
        try:
            rows.append([float(cell) for cell in row])
        except ValueError:
            raise ValueError(
                f"{file}, line {number}: every cell must be a number, got {','.join(row)[:60]!r}; write one "
                "distribution per line"
            ) from None
    return [name.strip() for name in first] if headed else [], np.array(rows, dtype=np.float64)
