"""Labels in whatever form, numbers or names, as the index of each row's column of scores."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from focalcal.core.arrays import Array, as_array, as_values, is_tensor
from focalcal.core.checks import one_class, shown, user_level


class InputWarning(UserWarning):
    """Something that the caller did not say was inferred; the message tells what, and how to say it."""


def label_values(labels: Any) -> tuple[Array, list[Any] | None]:
    """Labels as numbers or as names, and the categories of a categorical column."""
    if is_tensor(labels):
        return as_array("labels", labels), None
    array = labels if isinstance(labels, np.ma.MaskedArray) else as_values("labels", labels)
    if array.dtype.kind in "SU" and isinstance(labels, (list, tuple)):
        array = np.array(labels, dtype=object)  # a NaN among strings would be the name 'nan'
    for at, name in enumerate(array.flat if array.dtype.kind == "O" else ()):
        if name is None or type(name).__name__ == "NAType" or name != name:
            raise ValueError(f"labels must not be missing, got {name!r} in row {at}; leave the row out")
    dtype = getattr(labels, "dtype", None)
    # polars' Categorical has its categories in the order in which they came, which means nothing.
    categories = None if type(dtype).__name__ == "Categorical" else getattr(dtype, "categories", None)
    known = None if categories is None else list(categories)
    return (array if are_names(array) else as_array("labels", array)), known


def are_names(labels: Array) -> bool:
    """Whether these are text or objects, and no numbers."""
    return labels.dtype.kind in "OSUT"


def column_names(scores: Any, values: Array) -> list[Any] | None:
    """The names of a table's columns, if labels are names and every one is among them."""
    columns = getattr(scores, "column_names", None)  # Arrow
    if columns is None and hasattr(scores, "to_numpy"):  # pandas, polars
        columns = getattr(scores, "columns", None)
    if columns is None or not are_names(values) or not set(values.ravel().tolist()) <= set(columns):
        return None
    return list(columns)


def class_columns(
    kind: str, scores: Array, values: Array, classes: Sequence[Any] | None, ignore_index: int | None
) -> tuple[Array, tuple[Any, ...] | None]:
    """The column of each label, (N, ...), and the names of the columns."""
    named = None if classes is None else tuple(classes)
    if named is None and are_names(values) and _are_digits(values):
        values = values.astype(np.int64)  # sorted as words, '10' would come before '2'
    if not are_names(values):
        if values.shape == scores.shape and values.ndim > 1:
            return _hot_column(kind, values), named
        if values.dtype == np.bool_ and scores.ndim > 1 and scores.shape[1] > 2:
            raise TypeError(
                f"labels must be integers or names, the class of each row among {scores.shape[1]} columns, got "
                "booleans; whether predictions are right goes with confidence=, as correct="
            )
        if named is None or all(isinstance(name, str) for name in named):  # names are for who reads the result
            return _without_column(_whole(values), scores), named
    elif named is None:
        named = _sorted_names(values, scores.shape[1] if scores.ndim > 1 else 0)
    return _without_column(_positions(values, named, scores, ignore_index), scores), named


def two_class_columns(
    kind: str,
    scores: Array,
    values: Array,
    classes: Sequence[Any] | None,
    positive: Any,
    ignore_index: int | None,
) -> tuple[Array, tuple[Any, ...] | None]:
    """The same for one column of scores, that of the class `positive`, which comes last."""
    one_class("positive", positive)
    if positive is None and (classes is not None or not are_names(values) or _are_digits(values)):
        return class_columns(kind, scores, values, classes, ignore_index)
    values = _whole(values) if values.dtype.kind == "f" else values
    distinct = dict.fromkeys(values.flatten().tolist())
    if positive is None:
        raise ValueError(
            f"positive is missing; say which of {_listed([*distinct])} the one column of scores belongs to, "
            "or --positive of a command"
        )
    positive = _meant(positive, distinct)
    if positive not in distinct and classes is None and len(distinct.keys() - {ignore_index}) > 1:
        known = _listed([name for name in distinct if name != ignore_index])
        raise ValueError(f"positive must be one of the labels, {known}; got {shown(positive)}")
    others = [name for name in distinct if name not in (positive, ignore_index)]
    pair = classes or [*(others or [f"not {positive}"]), positive]
    if len(pair) != 2 or positive not in pair:
        raise ValueError(
            f"labels must be of two classes, {positive!r} one of them, for one column of scores, got {_listed(pair)}; "
            "pass one column per class"
        )
    index, named = class_columns(kind, scores, values, pair, ignore_index)
    if pair[1] == positive:
        return index, named
    flipped = 1 - index if ignore_index is None else np.where(index == ignore_index, index, 1 - index)
    return flipped, (pair[1], pair[0])


def _meant(positive: Any, labels: Iterable[Any]) -> Any:
    """The label that a text stands for where labels are no text: of a command '1' is 1 or 1.0, and 'true' is True."""
    same = [name for name in labels if name == positive]
    if not same and isinstance(positive, str):
        try:
            number: float | None = float(positive)
        except ValueError:
            number = {"true": 1.0, "false": 0.0}.get(positive.lower())
        same = [name for name in labels if not isinstance(name, str) and name == number]
    return same[0] if same else positive


def _are_digits(names: Array) -> bool:
    return all(str(name).isdecimal() and len(str(name)) < 19 for name in set(names.flat))


def _sorted_names(names: Array, columns: int) -> tuple[Any, ...]:
    """The names in their order, with a warning where that decides which column is whose."""
    distinct = list(dict.fromkeys(names.ravel().tolist()))
    try:
        ordered = tuple(sorted(distinct))
    except TypeError:
        raise TypeError(f"labels must be names of one kind, got {_listed(distinct)}; convert them") from None
    if len(ordered) == columns:
        pairs = ", ".join(f"{name!r} -> {at}" for at, name in enumerate(ordered[:10]))
        warnings.warn(
            f"labels are names, and columns were taken to be in their sorted order: {pairs}"
            f"{', ...' if columns > 10 else ''}; say classes=[...] to name the columns yourself",
            InputWarning,
            stacklevel=user_level(),
        )
    return ordered


def _positions(values: Array, classes: Sequence[Any], scores: Array, ignore_index: int | None) -> Array:
    """The position of each label among the classes."""
    check_names(classes, scores)
    places = {name: at for at, name in enumerate(classes)}
    if not are_names(values) and ignore_index is not None:
        places[ignore_index] = ignore_index
    flat = values.flatten().tolist()
    unknown = next((at for at, name in enumerate(flat) if name not in places), None)
    if unknown is not None:
        raise ValueError(
            f"labels must be among the classes {_listed(classes)}, got {flat[unknown]!r} in row {unknown}; "
            "pass classes=[...], one name per column in order"
        )
    return np.array([places[name] for name in flat], np.int64).reshape(values.shape)


def check_names(classes: Sequence[Any] | None, scores: Array) -> None:
    """Refuse names that are not one per column, each once."""
    if classes is not None and scores.ndim > 1 and not len(classes) == len(set(classes)) == scores.shape[1]:
        raise ValueError(
            f"classes must be {scores.shape[1]} different names, one per column of the scores in order, "
            f"got {len(classes)}: {_listed(classes)}; pass classes=[...]"
        )


def _listed(names: Sequence[Any]) -> str:
    return ", ".join(map(shown, names[:10])) + (", ..." if len(names) > 10 else "")


def _whole(labels: Array) -> Array:
    """Integers, booleans and whole floats as int64."""
    if labels.dtype.kind == "f":
        wrong = ~(np.abs(labels) < np.float64(2**63)) | (labels != np.rint(labels))
        if wrong.any():
            at = int(wrong.ravel().argmax())
            raise ValueError(
                "labels must be whole numbers, the index of each row's class, "
                f"got {float(labels.ravel()[at]):g} at flat position {at}; leave out rows without a label"
            )
    return labels.astype(np.int64, copy=False)


def _without_column(index: Array, scores: Array) -> Array:
    """Labels (N, ...) of such that have a class dimension of one."""
    return index.squeeze(1) if index.ndim == scores.ndim > 1 and index.shape[1] == 1 else index


def _hot_column(kind: str, labels: Array) -> Array:
    """Where the 1 is in each one-hot row."""
    hot = labels == 1
    if not ((hot | (labels == 0)).all(1) & (hot.sum(1) == 1)).all():
        raise ValueError(
            f"labels of the shape of {kind}, {labels.shape}, must be one-hot, a single 1 in each row; pass the "
            "index of each row's class; for several labels per row use multilabel=True or the multilabel_ functions"
        )
    index: Array = hot.argmax(1)
    return index
