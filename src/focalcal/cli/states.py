"""The states of a population as a file gives them: how probable each is, its posterior, and what is predicted there."""

from __future__ import annotations

import csv
import json
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from focalcal.cli.distributions import checked_rows

if TYPE_CHECKING:
    import numpy as np
    from jaxtyping import Float

_EXAMPLE = "weight,eta_1,eta_2,eta_3"


class States(NamedTuple):
    """Posteriors eta (N, K); the predictions q (N, K) and the weights (N,), which sum to one, if there are any."""

    eta: Float[np.ndarray, "n k"]
    q: Float[np.ndarray, "n k"] | None
    weights: Float[np.ndarray, " n"] | None


def read_states(file: Path) -> States:
    """A .csv file with headings (weight, eta_1, eta_2, ..., q_1, q_2, ...), or a .json file with a list of objects.

    Each state has `eta`, and may have `q` and `weight`, which all or none must have. Weights are divided by their sum;
    rows of eta and q that sum to one within 1e-5 are divided by theirs.
    """
    kind = file.suffix.lower()
    if kind not in (".csv", ".json"):
        raise ValueError(f"the file of states must end in .csv or .json, got {file.name!r}; save it as one of them")
    try:
        text = file.read_text(encoding="utf-8-sig")  # spreadsheets put a mark first
    except UnicodeDecodeError as problem:
        raise ValueError(f"{file} must be text in UTF-8, got something else ({problem})") from None
    states = _csv_states(file, text) if kind == ".csv" else _json_states(file, text)
    if not states:
        raise ValueError(
            f"{file} must hold at least one state, got none; give each a posterior, for example {_EXAMPLE}"
        )
    eta, q, weight = (_column(file, states, name) for name in ("eta", "q", "weight"))
    if eta is None:
        raise ValueError(f"{file} must give the posterior of every state, got no eta; for example {_EXAMPLE}")
    return States(_rows("eta", eta, file), None if q is None else _rows("q", q, file), _weights(file, weight))


def _csv_states(file: Path, text: str) -> list[dict[str, Any]]:
    try:
        lines = [(number, row) for number, row in enumerate(csv.reader(text.splitlines()), start=1) if row]
    except csv.Error as problem:
        raise ValueError(f"{file} must be CSV, got something else ({problem})") from None
    if not lines:
        return []
    headings = [name.strip() for name in lines[0][1]]
    wrong = [name for name in headings if not re.fullmatch(r"weight|(eta|q)_[1-9]\d*", name)]
    if wrong or len(set(headings)) < len(headings):
        received = f"got {wrong[0]!r}" if wrong else f"got {','.join(headings)!r}, where one comes twice"
        raise ValueError(
            f"{file}, line 1: the headings must be weight, eta_1, eta_2, ... and q_1, q_2, ..., {received}; "
            f"for example {_EXAMPLE}"
        )
    at = {name: place for place, name in enumerate(headings)}
    vectors: dict[str, list[int]] = {}
    for name in ("eta", "q"):
        entries = [f"{name}_{k + 1}" for k in range(sum(heading.startswith(f"{name}_") for heading in headings))]
        missing = [entry for entry in entries if entry not in at]
        if missing:
            raise ValueError(f"{file}, line 1: the headings must number {name} from 1 on, got no {missing[0]}")
        vectors[name] = [at[entry] for entry in entries]
    states = []
    for number, row in lines[1:]:
        if len(row) != len(headings):
            raise ValueError(f"{file}, line {number}: every line must have {len(headings)} cells, got {len(row)}")
        try:
            cells = [float(cell) for cell in row]
        except ValueError:
            raise ValueError(
                f"{file}, line {number}: every cell must be a number, got {','.join(row)[:60]!r}"
            ) from None
        state: dict[str, Any] = {name: [cells[i] for i in places] for name, places in vectors.items() if places}
        states.append(state | ({"weight": cells[at["weight"]]} if "weight" in at else {}))
    return states


def _json_states(file: Path, text: str) -> list[dict[str, Any]]:
    try:
        states = json.loads(text)
    except (ValueError, RecursionError) as problem:
        raise ValueError(f"{file} must be JSON, got something else ({problem})") from None
    if not isinstance(states, list) or not all(isinstance(state, dict) for state in states):
        raise ValueError(
            f"{file} must hold a list of states, each an object, got another kind of JSON; "
            'for example [{"weight": 1, "eta": [0.7, 0.2, 0.1]}]'
        )
    return states


def _column(file: Path, states: list[dict[str, Any]], name: str) -> list[Any] | None:
    """What every state has under this name; None if none has."""
    missing = [i for i, state in enumerate(states) if state.get(name) is None]
    if len(missing) == len(states):
        return None
    if missing:
        raise ValueError(f"{file}: every state must have {name}, or none, got none in state {missing[0] + 1}")
    return [state[name] for state in states]


def _rows(name: str, values: list[Any], file: Path) -> Float[np.ndarray, "n k"]:
    import numpy as np

    lengths = {len(row) if isinstance(row, list) else 0 for row in values}
    if len(lengths) > 1 or 0 in lengths or not all(_is_number(cell) for row in values for cell in row):
        raise ValueError(f"{file}: {name} of every state must be a list of equally many numbers; give each class one")
    return checked_rows(name, np.array(values, dtype=np.float64), file)


def _weights(file: Path, values: list[Any] | None) -> Float[np.ndarray, " n"] | None:
    import numpy as np

    if values is None:
        return None
    if not all(_is_number(value) for value in values):
        raise ValueError(f"{file}: weight of every state must be a number; how probable it is, or how often it occurs")
    weights = np.array(values, dtype=np.float64)
    total = weights.sum()
    if not (weights >= 0).all() or not 0 < total < np.inf:
        raise ValueError(
            f"{file}: weights must be >= 0 with a positive sum, got {weights.min():g} and a sum of {total:g}"
        )
    return np.asarray(weights / total)


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and abs(value) < 1e300
