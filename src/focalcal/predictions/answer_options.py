"""Log-probabilities of answer options, of which an interface may list only some, as probabilities."""

from __future__ import annotations

from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from focalcal.core.arrays import as_array, is_tensor
from focalcal.core.checks import SUM_TOLERANCE, between_zero_and_one, finite_at_least, first_row, one_of, shown

Normalize = Literal["options", "none"]
ROUNDED_UP = 1e-3  # how far above 0 a rounded log-probability may be


def option_probs(logprobs: Any, *, normalize: Any, missing: float | None = None) -> NDArray[np.float64]:
    """Probabilities of answer options from their log-probabilities, as `Predictions(logprobs=...)` has them.

    Args:
        logprobs: (N, K), with NaN or None where one is missing.
        normalize: "options": each row is divided by its sum over the options, so that they are all that can be said;
            "none": they stay as they are, and one more column holds the rest, which went to no option.
        missing: the probability that a missing option is taken to have, such as 0, or what a list of the 20 most
            probable tokens leaves at most; without it a missing option is refused.

    Returns:
        (N, K), or (N, K + 1) with the rest.

    >>> option_probs([[-0.5, -1.5], [-0.1, None]], normalize="none", missing=0.0).round(4).tolist()
    [[0.6065, 0.2231, 0.1703], [0.9048, 0.0, 0.0952]]
    """
    if not isinstance(normalize, str):
        raise ValueError(
            "normalize must be 'options' (divide by the sum over the options) or 'none' (the rest is a class of its "
            f"own) with logprobs, got {shown(normalize)}; say which"
        )
    one_of("normalize", normalize, ("options", "none"))
    if isinstance(logprobs, np.ma.MaskedArray):
        logprobs = np.ma.filled(logprobs.astype(object), None)
    try:
        given = as_array("logprobs", logprobs) if is_tensor(logprobs) else np.asarray(logprobs)
    except ValueError:
        raise ValueError(
            "logprobs must have as many options in every row, got rows of several lengths; fill up with None and pass "
            "missing=0, or audit rows with other options apart"
        ) from None
    try:
        if given.dtype.kind in "cmMV":  # float64 would drop a part of it, or its unit
            raise TypeError
        values = given.astype(np.float64)  # None becomes NaN
    except (TypeError, ValueError, OverflowError):
        raise TypeError(
            f"logprobs must be rows of numbers, one per option, got {shown(logprobs)}; pass logarithms as floats"
        ) from None
    if values.ndim != 2 or values.shape[1] < 2 or not len(values):
        raise ValueError(f"logprobs must be (N, K), one column per option, got shape {values.shape}")
    if (wrong := values > ROUNDED_UP).any():
        at = first_row(wrong)
        raise ValueError(
            f"logprobs must be logarithms of probabilities, at most 0, got {values[at][wrong[at]][0]:g} in row {at}; "
            "pass scores of another kind as logits="
        )
    absent = np.isnan(values)
    missing = None if missing is None else finite_at_least("missing", missing, 0.0)
    if missing:
        between_zero_and_one("missing", missing, remedy="it is the probability of an option that is not listed")
    if absent.any() and missing is None:
        at = first_row(absent)
        raise ValueError(
            f"logprobs must have every option unless missing= says its probability, got none of option "
            f"{int(absent[at].argmax())} in row {at}; pass missing=0, or the least that is listed"
        )
    probs = np.where(absent, missing or 0.0, np.exp(np.minimum(values, 0.0)))
    total = probs.sum(1)
    if normalize == "none":
        if (wrong := total > 1 + SUM_TOLERANCE).any():
            at = first_row(wrong)
            raise ValueError(
                f"logprobs must be of options that exclude each other with normalize='none', got a sum of "
                f"{total[at]:.4g} in row {at}; normalize='options' divides by it"
            )
        return np.concatenate([probs, np.maximum(1 - total, 0)[:, None]], 1)
    # Differences of logarithms: options of some hundred tokens have probabilities that no float64 holds.
    with np.errstate(divide="ignore"):
        logs = np.where(absent, np.log(missing or 0.0), np.minimum(values, 0.0))
    largest = logs.max(1, keepdims=True)
    if (wrong := np.isneginf(largest[:, 0])).any():
        raise ValueError(
            f"logprobs must give some option of every row a probability, got none in row {first_row(wrong)}; leave the "
            "row out, or pass a missing= above 0"
        )
    probs = np.exp(logs - largest)
    shares: NDArray[np.float64] = probs / probs.sum(1, keepdims=True)
    return shares
