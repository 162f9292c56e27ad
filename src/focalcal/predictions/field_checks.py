"""Checks of what goes into `Predictions`, on top of those of scores and labels in `core.arrays`."""

from __future__ import annotations

import json
import re
import warnings
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

import numpy as np
from numpy.typing import NDArray

from focalcal.core.arrays import Array, as_array, as_values, is_tensor
from focalcal.core.checks import (
    ROUNDING,
    finite,
    finite_or_masked,
    first_row,
    in_unit_interval,
    labels_below,
    not_finite,
    on_simplex,
    shown,
    user_level,
)
from focalcal.core.chunks import row_chunks
from focalcal.predictions.class_labels import InputWarning

LONGEST_PROVENANCE = 1 << 22  # characters of JSON
DEEPEST_PROVENANCE = 64  # mappings and lists inside each other
# Characters of a split, an id or a group: NumPy gives every string of an array the room of the longest.
LONGEST_NAME = 1024
_UNSTORABLE = re.compile("[\0\ud800-\udfff]")


def checked_scores(name: str, scores: Any, labels: Any, *, multilabel: bool) -> tuple[Array, Array]:
    """Scores (N, K) with int64 labels (N,) of `read_inputs`, or with `multilabel` (N, L) each, labels as bool."""
    scores = as_array(name, scores)
    if scores.ndim != 2:
        raise ValueError(
            f"{name} must be (N, K), one row per example and one column per class, got shape {scores.shape}; "
            "make pixels rows, e.g. np.moveaxis(logits, 1, -1).reshape(-1, K)"
        )
    if multilabel:
        labels = truths(name, scores, as_array("labels", labels))
    else:
        labels_below(labels, scores.shape[1])
    checked_values(name, scores, multilabel=multilabel)
    return scores, labels


def checked_split(split: Any) -> str:
    """The name of a set."""
    if not isinstance(split, str) or not split:
        raise TypeError(f"split must be the name of the set, such as 'test', got {shown(split)}")
    if len(split) > LONGEST_NAME:
        raise ValueError(f"split must have at most {LONGEST_NAME} characters, got {len(split)}; shorten it")
    return split


def checked_classes(classes: Any, columns: int) -> tuple[Any, ...]:
    """The names of the columns, strings or whole numbers."""
    names = tuple(name.item() if isinstance(name, np.generic) else name for name in classes)
    if not len(set(names)) == len(names) == columns or not all(isinstance(name, str | int) for name in names):
        raise ValueError(
            f"classes must be {columns} different strings or whole numbers, one per column, got {str(names)[:200]}"
        )
    return names


def checked_values(name: str, scores: Array, *, multilabel: bool) -> None:
    """Logits are finite or -inf (an impossible class), probabilities on the simplex or, if `multilabel`, in [0, 1]."""
    if name == "logits" and multilabel:
        finite(name, scores)
    elif name == "logits":
        finite_or_masked(name, scores)
    elif multilabel:
        unit_interval(name, scores)
    else:
        on_simplex(name, scores)


def truths(name: str, scores: Array, labels: Array) -> Array:
    """Labels of 0 and 1 in any type as bool, one for every score."""
    if scores.dtype.kind != "f":
        raise TypeError(f"{name} must be floating point, got {scores.dtype}; convert them")
    if labels.shape != scores.shape or not labels.size:
        raise ValueError(
            f"labels must have the shape of {name} and at least one row with multilabel=True, "
            f"got {labels.shape} for {scores.shape}; give 0 or 1 for every row and label"
        )
    for start, rows in row_chunks(labels):
        wrong = (rows != 0) & (rows != 1)
        if wrong.any():
            at = first_row(wrong)
            raise ValueError(
                f"labels must be 0 or 1 with multilabel=True, got {rows[at][wrong[at]][0].item():g} "
                f"in row {start + at}; leave out rows or columns that have unknown labels"
            )
    return labels.view(np.bool_) if labels.dtype == np.uint8 else labels.astype(np.bool_, copy=False)


def shares_of_percentages(name: str, values: Any) -> Array:
    """Percentages, 0 to 100, as probabilities."""
    percentages = as_array(name, values)
    if percentages.dtype.kind not in "iuf":
        raise TypeError(f"{name} must be percentages, got {percentages.dtype}; convert them to numbers")
    for start, rows in row_chunks(percentages):
        wrong = ~((rows >= 0) & (rows <= 100 * (1 + ROUNDING)))
        if wrong.any():
            at = first_row(wrong)
            if not np.isfinite(rows[at]).all():
                raise not_finite(name, start + at, np.atleast_1d(rows[at]))
            raise ValueError(
                f'{name} must be percentages from 0 to 100 with scale="percent", got '
                f"{np.atleast_1d(rows[at])[np.atleast_1d(wrong[at])].flat[0]:.9g} in row {start + at}; leave the scale "
                "out where they are none"
            )
    if percentages.size and percentages.max() <= 1:
        warnings.warn(
            'no percentage is above 1; say scale="unit", or nothing, where scores are from 0 to 1',
            InputWarning,
            stacklevel=user_level(),
        )
    return percentages / (percentages.dtype.type(100) if percentages.dtype.kind == "f" else 100)


def unit_interval(name: str, probs: Array) -> None:
    """Refuse entries that are not the probability of one event."""
    for start, rows in row_chunks(probs):
        wrong = ~in_unit_interval(rows)
        if not wrong.any():
            continue
        at = first_row(wrong)
        if not np.isfinite(rows[at]).all():
            raise not_finite(name, start + at, rows[at])
        value = float(rows[at].min()) if float(rows[at].min()) < 0 else float(rows[at].max())
        raise ValueError(
            f"{name} must be from 0 to 1 with multilabel=True, got {value:g} in row {start + at}; "
            "pass sigmoid(logits), or name the argument logits"
        )


def checked_posterior(posterior: Any, scores: Array, *, multilabel: bool) -> Array:
    """The true class probabilities, of the scores' shape."""
    truth = as_array("posterior", posterior)
    if truth.dtype.kind != "f":
        raise TypeError(f"posterior must be floating point, got {truth.dtype}; convert it")
    if truth.shape != scores.shape:
        raise ValueError(
            f"posterior must have the shape of the scores, {scores.shape}, got {truth.shape}; "
            "give a distribution to every row"
        )
    checked_values("posterior", truth, multilabel=multilabel)
    return truth


def checked_names(name: str, values: Any, rows: int) -> NDArray[Any]:
    """Ids or groups, one per row: integers as int64, or text that every file format can hold."""
    if is_tensor(values):
        values = as_values(name, values)
    elif hasattr(values, "to_numpy"):  # pandas and polars
        values = values.to_numpy()
    array = values if isinstance(values, np.ndarray) else np.array(values, dtype=object)
    if array.ndim != 1 or len(array) != rows:
        raise ValueError(f"{name} must have shape ({rows},), one for every row, got {array.shape}")
    if array.dtype.kind in "OTU":
        return _checked_objects(name, array)
    if array.dtype.kind not in "iu":
        raise TypeError(f"{name} must be integers or strings, got {array.dtype}; use .astype(int) or .astype(str)")
    if array.dtype == np.uint64 and int(array.max()) > np.iinfo(np.int64).max:
        raise ValueError(f"{name} must fit in 64 bits with sign, got {int(array.max())}; make them strings")
    return array.astype(np.int64, copy=False)


def checked_groups(groups: Any, rows: int) -> tuple[NDArray[Any], tuple[str, ...] | None]:
    """Groups (rows,); or of a mapping strings (rows, G) and the names of its columns."""
    if hasattr(groups, "columns"):  # of pandas or polars
        groups = {name: groups[name] for name in groups.columns}
    if not isinstance(groups, Mapping):
        return checked_names("groups", groups, rows), None
    names = list(groups)
    if not names or not all(
        isinstance(name, str) and name.strip() == name > "" and name.isprintable() for name in names
    ):
        raise ValueError(f"groups must have a printable name for each column, got {names}; {{'site': [...]}}")
    columns = [checked_names(f"groups[{name!r}]", values, rows) for name, values in groups.items()]
    return np.stack([column.astype(np.str_) for column in columns], 1), tuple(groups)


def checked_weights(weights: Any, rows: int, name: str = "weights") -> NDArray[np.float64]:
    """How much each row counts: finite, none below 0, not all 0."""
    values = as_array(name, weights)
    if values.shape != (rows,) or values.dtype.kind not in "iuf":
        raise ValueError(f"{name} must be ({rows},) numbers, one for every row, got {values.dtype} {values.shape}")
    values = values.astype(np.float64, copy=False)
    wrong = ~(np.isfinite(values) & (values >= 0))
    if wrong.any():
        at = first_row(wrong)
        raise ValueError(
            f"{name} must be finite and not negative, got {values[at]:g} in row {at}; leave out rows that do not count"
        )
    if not values.any():
        raise ValueError(f"{name} must not all be 0, got 0 in every row; no row would count")
    return values


def checked_times(times: Any, rows: int) -> NDArray[np.datetime64]:
    """Dates and times, (rows,), as datetime64[us] in UTC."""
    values = times.to_numpy() if hasattr(times, "to_numpy") else times
    if is_tensor(values):
        raise TypeError(f"times must be dates, datetimes or ISO 8601 text, got {shown(values)}; pass a list of them")
    array = values if isinstance(values, np.ndarray) else np.array(values, dtype=object)
    if array.shape != (rows,):
        raise ValueError(f"times must have shape ({rows},), one for every row, got {array.shape}")
    if array.dtype.kind in "OTU":
        each, of_row = np.unique(array.astype(np.str_), return_inverse=True)  # few days, many rows
        moments = [_moment(text) for text in each.tolist()]
        zoned = np.array([moment is not None and moment.tzinfo is not None for moment in moments])
        bare = np.array([moment is not None and moment.tzinfo is None for moment in moments])
        if zoned.any() and bare.any():
            with_one, without = str(each[zoned.argmax()]), str(each[bare.argmax()])
            raise ValueError(
                f"times must all have a zone or none, got {with_one!r} and {without!r}; write the zone, such as "
                "+00:00, in every row"
            )
        parsed = np.array([_in_utc(moment) for moment in moments], dtype="datetime64[us]")[of_row]
    elif array.dtype.kind == "M":
        parsed = array.astype("datetime64[us]", copy=False)
    else:
        raise TypeError(
            f"times must be dates, datetimes or ISO 8601 text, got {array.dtype}; convert them by pandas.to_datetime"
        )
    if (wrong := np.isnat(parsed)).any():
        at = first_row(wrong)
        raise ValueError(
            f"times must be dates such as 2026-03-01 or 2026-03-01T12:30, got {str(array[at])[:60]!r} in row {at}; "
            "write them in this order, or leave the row out"
        )
    return parsed


def _moment(text: str) -> datetime | None:
    """The time that ISO 8601 text says, or None; a month or a year begins on its first day."""
    if re.fullmatch(r"\d{4}(-\d{2})?", text):
        text = f"{text}-01-01"[:10] if len(text) == 4 else f"{text}-01"
    try:
        return datetime.fromisoformat(text)
    except ValueError:
        return None


def _in_utc(moment: datetime | None) -> np.datetime64:
    if moment is None:
        return np.datetime64("NaT")
    return np.datetime64(moment if moment.tzinfo is None else moment.astimezone(UTC).replace(tzinfo=None), "us")


def _checked_objects(name: str, array: NDArray[Any]) -> NDArray[Any]:
    """Python's integers or strings as NumPy's; an array of NumPy's strings as it is."""
    items = array.tolist()
    kind: Any = str if isinstance(items[0], str) else (int, np.integer)
    for row, item in enumerate(items):
        if not isinstance(item, kind) or isinstance(item, bool):
            received = f"{item!r} of type {type(item).__name__} in row {row}"
            raise TypeError(f"{name} must be all integers or all strings, got {received}; convert them")
        if kind is str and (len(item) > LONGEST_NAME or _UNSTORABLE.search(item)):
            raise ValueError(
                f"{name} must be text of at most {LONGEST_NAME} characters without NUL characters and lone surrogates, "
                f"got {item[:60]!r} of {len(item)} characters in row {row}; shorten or replace it"
            )
    if kind is str:
        return array if array.dtype.kind == "U" and array.dtype.isnative else np.array(items, dtype=np.str_)
    try:
        return np.array(items, dtype=np.int64)
    except OverflowError:
        raise ValueError(f"{name} must fit in 64 bits with sign; make them strings") from None


def provenance_text(provenance: Any) -> str:
    """Provenance as JSON, which is what is kept: later changes to the mapping do not reach it."""
    if provenance is None:
        return "{}"
    if not isinstance(provenance, Mapping):
        raise TypeError(
            f"provenance must be a mapping, got {type(provenance).__name__}; pass e.g. {{'model': 'resnet20'}}"
        )
    try:
        _check_json(provenance)
        text = json.dumps(dict(provenance), allow_nan=False, sort_keys=True)
    except (TypeError, ValueError) as error:
        raise (TypeError if isinstance(error, TypeError) else ValueError)(
            f"provenance must be what JSON can say, with str keys and finite numbers: {error}; "
            "convert arrays and NumPy numbers with .tolist()"
        ) from None
    if len(text) > LONGEST_PROVENANCE:
        raise ValueError(
            f"provenance must be at most {LONGEST_PROVENANCE} characters of JSON, got {len(text)}; shorten it"
        )
    return text


def _check_json(value: Any, depth: int = 0) -> None:
    """Refuse keys that JSON would make strings, and what is nested so deep that a reader could run out of stack."""
    if depth > DEEPEST_PROVENANCE:
        raise ValueError(f"more than {DEEPEST_PROVENANCE} mappings and lists inside each other")
    if isinstance(value, Mapping):
        for key in value:
            if not isinstance(key, str):
                raise TypeError(f"the key {key!r} is not a string")
        value = list(value.values())
    if isinstance(value, (list, tuple)):
        for inner in value:
            _check_json(inner, depth + 1)
