"""The most probable tokens and their log-probabilities: what is exact without the others, and bounds on the rest."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from focalcal.core.checks import SUM_TOLERANCE, first_row, whole_number
from focalcal.core.display import Displayed
from focalcal.predictions.answer_options import ROUNDED_UP
from focalcal.predictions.record import Predictions

Rows = NDArray[np.float64]


@dataclass(frozen=True, eq=False, repr=False)
class TopK(Displayed):
    """What rows of the k most probable tokens say, (n,) each.

    No other token has more than the last one that is listed. Within that, the bounds are the least and the largest
    values that the rest can be spread to give, and means over rows bound the means. `str` shows them.

    Attributes:
        confidence, correct: of the first token, exact: so are accuracy, ECE and whatever needs no more.
        listed: whether the label is among the k tokens.
        rest: the probability of all other tokens together.
        nll_low, nll_high: bounds of -log p_y: equal where the label is listed; the upper one is infinite where it is
            not, since its probability may be 0.
        brier_low, brier_high: bounds of sum_k (p_k - 1[k = y])^2 over the whole vocabulary.

    >>> found = top_k([["a", "b"]], [[-0.3, -1.6]], ["b"], vocabulary=50)
    >>> found.correct, found.rest.round(3), (found.nll_low == found.nll_high)
    (array([False]), array([0.057]), array([ True]))
    """

    confidence: Rows
    correct: NDArray[np.bool_]
    listed: NDArray[np.bool_]
    rest: Rows
    nll_low: Rows
    nll_high: Rows
    brier_low: Rows
    brier_high: Rows

    def predictions(self, *, split: str = "test", **about: Any) -> Predictions:
        """Confidences and correctness for audits, metrics and calibrators; `about` are ids, groups and the like."""
        return Predictions(confidence=self.confidence, correct=self.correct, split=split, **about)

    def frame(self) -> dict[str, list[Any]]:
        """One row per score, its bounds equal where it is exact."""
        low = {"accuracy": self.correct, "nll": self.nll_low, "brier": self.brier_low}
        high = {"accuracy": self.correct, "nll": self.nll_high, "brier": self.brier_high}
        bounds = [[float(values.mean()) for values in each.values()] for each in (low, high)]
        return {"score": list(low), "low": bounds[0], "high": bounds[1]}

    def __str__(self) -> str:
        """The bounds of the means, and how often the label is not listed."""
        frame = self.frame()
        lines = [f"{name:<9} {a:.4f} to {b:.4f}" for name, a, b in zip(*frame.values(), strict=True)]
        lines[0] = f"accuracy  {frame['low'][0]:.4f}"
        missing = int((~self.listed).sum())
        return "\n".join([f"{len(self.rest):,} rows, the label is not listed in {missing:,}", *lines])


def top_k(
    tokens: Sequence[Sequence[Any]],
    logprobs: Sequence[Sequence[float]],
    labels: Sequence[Any],
    *,
    vocabulary: int | None = None,
) -> TopK:
    """Read rows of the most probable tokens, as interfaces of language models list them.

    Args:
        tokens: (n, k) the tokens of each row, strings or numbers, in any order; rows may differ in length.
        logprobs: (n, k) their log-probabilities.
        labels: (n,) the right token of each row, listed or not: to drop rows whose label is not would leave out the
            worst mistakes.
        vocabulary: how many tokens there are, which narrows the bounds; None if it is not known.

    Returns:
        What is exact, and bounds of what is not.

    >>> found = top_k([["a", "b"], ["c", "a"]], [[-0.3, -1.6], [-0.2, -2.0]], ["a", "b"], vocabulary=50)
    >>> found.confidence.round(3).tolist(), found.correct.tolist(), found.listed.tolist()
    ([0.741, 0.819], [True, False], [True, False])
    """
    logs, names = _padded(tokens, logprobs, labels)
    truth = np.empty(len(labels), dtype=object)
    truth[:] = list(labels)
    probs = np.exp(np.minimum(np.nan_to_num(logs, nan=-np.inf), 0.0))
    count = np.count_nonzero(~np.isnan(logs), 1)
    total, squares, least = probs.sum(1), np.square(probs).sum(1), np.exp(np.minimum(np.nanmin(logs, 1), 0.0))
    if (wrong := total > 1 + SUM_TOLERANCE).any():
        raise ValueError(
            f"logprobs must be of different tokens, got a sum of {total[first_row(wrong)]:.4g} in row "
            f"{first_row(wrong)}; list every token once"
        )
    rest, others = np.maximum(1 - total, 0.0), _others(vocabulary, count)
    if (wrong := rest > others * least + SUM_TOLERANCE).any():
        at = first_row(wrong)
        raise ValueError(
            f"logprobs must be of the most probable tokens, got a rest of {rest[at]:.4g} in row {at}, more than the "
            f"{int(others[at])} other tokens can have below {least[at]:.4g}; list the first ones, or fix vocabulary"
        )
    match = (names == truth[:, None]) & ~np.isnan(logs)
    listed, best = match.any(1), probs.argmax(1)
    every = np.arange(len(probs))
    own, own_log = probs[every, match.argmax(1)], np.minimum(logs[every, match.argmax(1)], 0.0)
    most, fewest = np.minimum(rest, least), np.maximum(rest - np.maximum(others - 1, 0) * least, 0.0)
    with np.errstate(divide="ignore"):
        nll_low, nll_high = np.where(listed, -own_log, -np.log(most)), np.where(listed, -own_log, -np.log(fewest))
    inside = np.square(1 - own) + squares - np.square(own)
    low_out = np.square(1 - most) + squares + _evenly(rest - most, others - 1)
    high_out = np.square(1 - fewest) + squares + _heaped(rest - fewest, least)
    return TopK(
        confidence=probs[every, best],
        correct=match[every, best],
        listed=listed,
        rest=rest,
        nll_low=nll_low + 0.0,
        nll_high=nll_high + 0.0,
        brier_low=np.where(listed, inside + _evenly(rest, others), low_out),
        brier_high=np.where(listed, inside + _heaped(rest, least), high_out),
    )


def _padded(tokens: Any, logprobs: Any, labels: Any) -> tuple[Rows, NDArray[Any]]:
    """Rows of one length, NaN where there are no more."""
    if not len(tokens) == len(logprobs) == len(labels) or not len(labels):
        raise ValueError(
            f"tokens, logprobs and labels must have one entry per row, got {len(tokens)}, {len(logprobs)} and "
            f"{len(labels)}"
        )
    width = max(map(len, logprobs))
    logs, names = np.full((len(labels), width), np.nan), np.full((len(labels), width), None, dtype=object)
    for row, (own, values) in enumerate(zip(tokens, logprobs, strict=True)):
        if len(own) != len(values) or not len(own) or len(set(own)) < len(own):
            raise ValueError(
                f"tokens must be different and have one log-probability each, got {len(own)} tokens, {len(set(own))} "
                f"different, and {len(values)} in row {row}; fix the row"
            )
        logs[row, : len(values)] = values
        names[row, : len(own)] = list(own)
        if not (logs[row, : len(values)] <= ROUNDED_UP).all():
            raise ValueError(
                f"logprobs must be at most 0, got {max(values):g} in row {row}; pass logarithms of probabilities"
            )
    return logs, names


def _others(vocabulary: int | None, count: NDArray[np.int64]) -> Rows:
    """How many tokens are not listed."""
    if vocabulary is None:
        return np.full(len(count), np.inf)
    least = int(count.max())
    remedy = "it is the number of all tokens, listed ones included"
    whole_number("vocabulary", vocabulary, least=least, most=2**53, remedy=remedy)
    return np.asarray(vocabulary - count, dtype=np.float64)


def _evenly(mass: Rows, tokens: Rows) -> Rows:
    """The least sum of squares: every token has as much."""
    return np.square(mass) / np.maximum(tokens, 1.0)


def _heaped(mass: Rows, most: Rows) -> Rows:
    """The largest sum of squares where no token has more than `most`: as many as can have that, one the remainder."""
    full = np.floor(mass / np.maximum(most, np.finfo(float).tiny))
    return full * np.square(most) + np.square(np.maximum(mass - full * most, 0.0))
