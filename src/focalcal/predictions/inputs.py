"""What people have, as scores and labels: the one place for the forms that arrays, tables and labels come in.

Scores and labels may be `Predictions`, NumPy arrays, tensors, columns and tables of pandas, polars or Arrow, or lists.

    scores      (N, K) or (N, K, d1, ...), one column per class; or for two classes one column, (N,) or (N, 1, ...), of
                the positive class alone: its probability p is taken for (1 - p, p), its logit z for (0, z)
    labels      indices of classes in any integer type, whole floats, booleans; one-hot rows of the scores' shape; names
                (strings, categories, or whatever `classes` lists); with or without a class dimension of one
    classes     the name of each column, in order. Without it the names of a table's columns count if every label is
                among them, then the categories of a categorical, then the sorted names, as an `InputWarning` says
    positive    the label that one column of scores belongs to; 1 or True where labels are 0 and 1
    normalize   divide each row of probabilities by its sum, however far from one that is
    confidence, correct   how sure each prediction is and whether it is right, in the place of scores and labels

Shapes and types are checked here. Ranges and values are checked by who computes with them (`core.checks`), but for
those of `Predictions`, which were checked when these were made.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal, NamedTuple, TypedDict

import numpy as np

from focalcal.core.arrays import Array, as_array, is_tensor, scores_and_labels
from focalcal.core.checks import collect_miss, first_row, in_unit_interval, label_to_ignore, not_finite, yes_or_no
from focalcal.core.numerics import at_least_float32
from focalcal.predictions.class_labels import InputWarning as InputWarning
from focalcal.predictions.class_labels import check_names, class_columns, column_names, label_values, two_class_columns
from focalcal.predictions.field_checks import checked_weights


class InputOptions(TypedDict, total=False):
    """The keywords of `read_inputs` besides scores, labels and `ignore_index`."""

    confidence: Any
    """(N,), how sure each prediction is, in place of scores."""
    correct: Any
    """(N,), whether it is right, in place of labels."""
    classes: Sequence[Any] | None
    """The names of the columns, in order, if labels are names."""
    positive: Any
    """Of one column of scores, the class that it is of."""
    normalize: bool
    """True divides rows of probabilities by their sums."""
    sample_weight: Any
    """(N,), how often each row counts."""


class Inputs(NamedTuple):
    """Scores of their kind and labels, in their usual form, as `read_inputs` gives them.

    Attributes:
        kind: "probs", "logits" or "outcomes".
        scores: (N, K, ...) of that kind; of "outcomes" the confidences (N,).
        labels: (N, ...), integers; of "outcomes" whether each is right (N,).
        classes: the names of the columns if there are any.
        checked: whether ranges and values have been, too.
        log_odds: of the outcomes of an event, what its probabilities round.
        weights: (N,), how much each row counts, None that all count alike.

    >>> read_inputs([0.9, 0.2], ["yes", "no"], classes=["no", "yes"], positive="yes").labels
    array([1, 0])
    """

    kind: Literal["probs", "logits", "outcomes"]
    scores: Array
    labels: Array
    classes: tuple[Any, ...] | None = None
    checked: bool = False
    log_odds: Array | None = None
    weights: Array | None = None


def read_inputs(
    probs: Any = None,
    labels: Any = None,
    *,
    logits: Any = None,
    confidence: Any = None,
    correct: Any = None,
    classes: Sequence[Any] | None = None,
    positive: Any = None,
    normalize: bool = False,
    sample_weight: Any = None,
    ignore_index: int | None = None,
) -> Inputs:
    """Scores and labels in their usual form.

    An object with a method `__focalcal_inputs__`, as `Predictions` is, holds both and stands for probs or logits alone.

    Args:
        probs: (N, K), or one column (N,) of two classes; or `Predictions`, a table, or `logits=` in their place.
        labels: (N,), class indices or names.
        logits: (N, K), in place of probs.
        confidence: (N,), how sure each prediction is, where no more is known.
        correct: (N,), whether it is right.
        classes: the names of the columns, in order, if labels are names.
        positive: of one column, the class that it is of.
        normalize: True divides rows of probabilities by their sums.
        sample_weight: (N,), how often each row counts.
        ignore_index: a label that stays what it is.

    Returns:
        Checked arrays, of the scores' own kind.

    >>> read_inputs([[0.9, 0.1], [0.2, 0.8]], ["no", "yes"], classes=["no", "yes"]).labels
    array([0, 1])
    """
    if sample_weight is not None:
        alike = read_inputs(
            probs, labels, logits=logits, confidence=confidence, correct=correct, classes=classes, positive=positive,
            normalize=normalize, ignore_index=ignore_index,
        )  # fmt: skip
        return alike._replace(weights=checked_weights(sample_weight, len(alike.labels), "sample_weight"))
    given = probs if logits is None else logits
    plain = not yes_or_no("normalize", normalize) and confidence is correct is classes is positive is None
    kind: Literal["probs", "logits"] = "probs" if logits is None else "logits"
    if plain and (probs is None or logits is None) and (usual := _usual(kind, given, labels, ignore_index)):
        return usual
    if hasattr(given, "__focalcal_inputs__"):
        if not plain or labels is not None or (probs is not None and logits is not None):
            raise TypeError(f"{type(given).__name__} hold scores and labels; give nothing else beside them")
        inputs: Inputs = given.__focalcal_inputs__()
        return inputs
    if confidence is not None or correct is not None:
        others = (probs, labels, logits, classes, positive, ignore_index)
        if normalize or any(other is not None for other in others):
            raise TypeError("confidence and correct take the place of scores and labels; give one or the other")
        return _outcomes(confidence, correct)
    if probs is not None and logits is not None:
        raise ValueError("probs and logits were both given; pass one of them")
    if given is None or labels is None:
        missing = "probs" if given is None else "labels"
        raise ValueError(f"{missing} is missing; pass probs or logits=... and labels, or Predictions, which hold both")
    return _read_arrays(kind, given, labels, classes, positive, normalize, ignore_index)


def _read_arrays(
    kind: Literal["probs", "logits"],
    given: Any,
    labels: Any,
    classes: Sequence[Any] | None,
    positive: Any,
    normalize: bool,
    ignore_index: int | None,
) -> Inputs:
    label_to_ignore(ignore_index)
    scores, single = class_scores(kind, given, normalize=normalize)
    if positive is not None and not single:
        raise ValueError(
            f"positive is for one column of scores, got {kind} of shape {scores.shape}; "
            "name the columns with classes= instead"
        )
    values, categories = label_values(labels)
    classes = None if classes is None else list(classes)
    if single:
        known = classes or (None if positive is None else categories)  # an order of categories names no positive class
        index, named = two_class_columns(kind, scores, values, known, positive, ignore_index)
    else:
        classes = classes or column_names(given, values) or categories
        index, named = class_columns(kind, scores, values, classes, ignore_index)
    check_names(named, scores)
    scores, index = scores_and_labels(kind, scores, index, in_range=False)
    return Inputs(kind, scores, index, named)


def _usual(kind: Literal["probs", "logits"], scores: Any, labels: Any, ignore_index: int | None) -> Inputs | None:
    """Scores (N, K, ...) and integers (N, ...) where there is nothing else to do, and microseconds count."""
    if type(scores) is not np.ndarray or type(labels) is not np.ndarray:
        if not (is_tensor(scores) and is_tensor(labels)):
            return None
        scores, labels = as_array(kind, scores), as_array("labels", labels)
    if labels.dtype.kind in "iu" and labels.ndim == scores.ndim - 1 > 0 and scores.shape[1] > 1:
        return Inputs(kind, *scores_and_labels(kind, scores, labels, ignore_index=ignore_index, in_range=False))
    return None


def _outcomes(confidence: Any, correct: Any) -> Inputs:
    """Confidences and whether each prediction is right, checked."""
    if confidence is None or correct is None:
        raise ValueError("confidence and correct belong together: how sure each prediction is, and whether it is right")
    sure, right = as_array("confidence", confidence).ravel(), as_array("correct", correct).ravel()
    if sure.dtype.kind != "f":
        raise TypeError(f"confidence must be floating point, got {sure.dtype}; pass the probability of the prediction")
    if sure.shape != right.shape or not len(sure):
        raise ValueError(f"confidence and correct must have one value per row each, got {len(sure)} and {len(right)}")
    for name, values, wrong, rule, remedy in (
        ("confidence", sure, ~in_unit_interval(sure), "a probability from 0 to 1", "divide percentages by 100"),
        ("correct", right, (right != 0) & (right != 1), "True or False", "say of each whether it is right"),
    ):
        if wrong.any():
            at = first_row(wrong)
            raise ValueError(f"{name} must be {rule}, got {values[at].item():g} in row {at}; {remedy}")
    return Inputs("outcomes", at_least_float32(sure), right == 1)


def _check_one_column(probs: Array) -> None:
    """Refuse probabilities of one event outside [0, 1]: of two columns 1 - p would be what the error names."""
    wrong = ~in_unit_interval(probs)
    if wrong.any():
        at = first_row(wrong)
        if not np.isfinite(probs[at]).all():
            raise not_finite("probs", at, probs[at])
        raise ValueError(
            f"probs must be probabilities from 0 to 1, got {float(probs[at][wrong[at]][0]):.9g} in row {at}; divide "
            "percentages by 100, or name the argument logits where it is one"
        )


def class_scores(kind: str, given: Any, *, normalize: bool = False) -> tuple[Array, bool]:
    """Scores with one column per class, and whether they were one column, that of the positive class."""
    scores = as_array(kind, given)
    single = scores.dtype.kind == "f" and (scores.ndim == 1 or (scores.ndim > 1 and scores.shape[1] == 1))
    if single:
        own = at_least_float32(scores[:, None] if scores.ndim == 1 else scores)
        if kind == "probs":
            _check_one_column(own)
        scores = np.concatenate([1 - own if kind == "probs" else np.zeros_like(own), own], 1)
    if not normalize:
        return scores, single
    if kind == "logits":
        raise ValueError("normalize=True is for probs; the softmax of logits sums to one as it is")
    with np.errstate(invalid="ignore", over="ignore"):
        total = scores.sum(1, keepdims=True, dtype=np.float64)
    usable = np.isfinite(total) & (total > 0)
    if not usable.all():
        at = first_row(~usable)
        raise ValueError(f"probs must have a positive and finite sum to be divided by, got another in row {at}")
    collect_miss("probs", float(np.abs(total - 1).max(initial=0)))
    return scores / total, single
