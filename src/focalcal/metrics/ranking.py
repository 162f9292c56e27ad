"""Metrics of the order of a score: AUROC and the risk-coverage curves, of the rows as they are and of resamples alike.

Each is a function of how many rows and how many negatives (for a confidence, wrong predictions) every run of equal
scores holds, (runs, resamples); the rows as they are, or as they weigh, are one resample.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property, partial
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.special import digamma

from focalcal.core.arrays import Array, as_array
from focalcal.core.checks import between_zero_and_one, first_row
from focalcal.metrics.bootstrap_statistics import Draw
from focalcal.metrics.scan import Scan
from focalcal.metrics.sources import Source
from focalcal.predictions.field_checks import checked_weights
from focalcal.predictions.inputs import read_inputs

if TYPE_CHECKING:
    from focalcal.metrics.sketch import CalibrationSketch


class Ranking:
    """Rows by falling score, and what all metrics of that order have in common for a draw."""

    def __init__(self, scores: Array, positives: Array) -> None:
        self._order = np.argsort(-scores, kind="stable")
        self.start, self.negative = runs(scores[self._order]), 1.0 - positives[self._order, None]
        self._last: tuple[Draw, RankSums] | None = None

    def sums(self, draw: Draw) -> RankSums:
        """Those of the last draw are kept: several metrics ask for them."""
        if self._last is None or self._last[0] is not draw:
            weights = draw.weights[self._order]
            size, negatives = (self._over_runs(each) for each in (weights, weights * self.negative))
            self._last = draw, RankSums(size, negatives, self.negative)
        return self._last[1]

    def _over_runs(self, values: Array) -> Array:
        """Sums over runs of equal scores; where none are equal, which is usual, the values themselves."""
        return values if len(self.start) == len(values) else np.add.reduceat(values, self.start, axis=0)


class RankSums:
    """How many rows, and how many negatives, each run of equal scores has in each resample, (runs, resamples).

    `negative` (rows, 1) is 1 where a row is one, in their order.
    """

    def __init__(self, size: Array, negatives: Array, negative: Array) -> None:
        self.size, self.negatives, self._negative = size, negatives, negative
        self.up_to, self.negatives_up_to = size.cumsum(0), negatives.cumsum(0)
        self.rows: Array = self.up_to[-1]

    @property
    def right(self) -> Array:
        """How many positives there are."""
        return self.rows - self.negatives_up_to[-1]

    @cached_property
    def auroc(self) -> Array:
        """NaN of a resample without one of the outcomes."""
        negatives = self.negatives_up_to[-1]
        pairs = self.right * negatives
        below = negatives - self.negatives_up_to + self.negatives / 2
        won = np.einsum("ij,ij->j", self.size - self.negatives, below)
        return np.divide(won, pairs, out=np.full_like(won, np.nan), where=pairs > 0)

    @cached_property
    def aurc(self) -> Array:
        """In a run of m equal confidences with e errors, after s rows with E errors, the i-th risk is on average
        (E + e i / m) / (s + i); summed over the run that is e + (E - e s / m) (H_{s+m} - H_s), H the harmonic numbers.
        """
        reached = self._harmonic()
        rise = np.diff(reached, axis=0, prepend=0.0)
        before = self.up_to - self.size
        if len(self.size) == len(self._negative):  # no two scores are equal: a row is wrong or it is not
            before *= self._negative
        else:
            before *= np.divide(self.negatives, self.size, out=np.zeros_like(self.size), where=self.size > 0)
        slope = self.negatives_up_to - self.negatives - before
        return (self.negatives_up_to[-1] + np.einsum("ij,ij->j", slope, rise)) / self.rows

    def _harmonic(self) -> Array:
        """1 + 1/2 + ... + 1/n for the rows up to each run; between whole numbers, as of weights, by digamma."""
        places = self.up_to.astype(np.intp)
        if (places == self.up_to).all():
            return np.append(0.0, np.cumsum(1 / np.arange(1, int(self.rows.max()) + 1))).take(places)
        return digamma(self.up_to + 1) + np.euler_gamma


class Ranked:
    """`of(sums)` of resamples; the statistics of one plan share their `ranking`."""

    def __init__(self, of: Callable[[RankSums], Array], scores: Array, positives: Array) -> None:
        self._of, self.ranking = of, Ranking(scores.astype(np.float64), positives)

    def __call__(self, draw: Draw) -> Array:
        """One value per resample."""
        return self._of(self.ranking.sums(draw))


class FromRanks(Source):
    """`of(sums, **options)` of `RankSums`, (resamples,)."""

    asks = MappingProxyType({"rows": True})

    def of_scan(self, sums: Scan | CalibrationSketch, **options: Any) -> float:
        """From the rows, as they weigh."""
        assert isinstance(sums, Scan)
        return self.of_rows(*sums.outcomes, sums.weights, **options)

    def of_rows(self, confidence: Array, correct: Array, weights: Array | None, **options: Any) -> float:
        """One resample, in which each row counts as often as it weighs; scores may be of any scale."""
        weights = np.ones(len(confidence)) if weights is None else weights
        return float(Ranked(partial(self.of, **options), confidence, correct)(Draw(weights[:, None]))[0])

    def resample(self, sums: Scan, rows: Any, **options: Any) -> Ranked:
        """From ranks."""
        return Ranked(partial(self.of, **options), *sums.outcomes)


def auroc_of(sums: RankSums) -> Array:
    """The chance that a random positive scores above a random negative, ties counting a half (midranks)."""
    return sums.auroc


def confidence_auroc_of(sums: RankSums) -> Array:
    """The chance that a right prediction is more confident than a wrong one, ties counting a half.

    Failure detection by the confidence alone; 1/2 where all predictions are right, or all wrong: nothing to rank.
    """
    return np.nan_to_num(sums.auroc, nan=0.5)


def aurc_of(sums: RankSums) -> Array:
    """Area under the risk-coverage curve: the mean over i of the error among the i most confident rows.

    Rows of equal confidence are taken in the mean over their orders. Geifman, Uziel & El-Yaniv (2019).
    """
    return sums.aurc


def e_aurc_of(sums: RankSums) -> Array:
    """AURC less that of the same predictions in the best order, all wrong ones last; 0 is that order.

    Geifman, Uziel & El-Yaniv (2019). The best order's is exact, (e - r (H_n - H_r)) / n of r right and e wrong rows,
    where they take its limit, (1 - acc) + acc log(acc).
    """
    n, r = sums.rows, sums.right
    return np.maximum(sums.aurc - (n - r - r * (digamma(n + 1) - digamma(r + 1))) / n, 0.0)


def augrc_of(sums: RankSums) -> Array:
    """Area under the generalised risk-coverage curve: the mean over thresholds of the share of all rows that is both
    accepted and wrong.

    Traub et al. (2024): (1 - AUROC) acc (1 - acc) + (1 - acc)^2 / 2, AUROC that of the confidence for being right. A
    threshold's mistakes count by how many there are, not by their share of what is accepted, as in AURC.
    """
    accuracy = sums.right / sums.rows
    return (1 - confidence_auroc_of(sums)) * accuracy * (1 - accuracy) + (1 - accuracy) ** 2 / 2


def coverage_of(sums: RankSums, accuracy: float = 0.95) -> Array:
    """The largest share of rows that a threshold on the confidence accepts and that is right often enough.

    Often enough is `accuracy`, 0.95 unless told; rows of equal confidence are accepted together; 0 if no threshold
    will do.
    """
    between_zero_and_one("accuracy", accuracy, remedy="0.95 is usual")
    wrong = np.divide(sums.negatives_up_to, sums.up_to, out=np.ones_like(sums.up_to), where=sums.up_to > 0)
    return (sums.up_to * (1 - wrong >= accuracy)).max(0) / sums.rows


def auroc(
    scores: Any = None, positives: Any = None, *, confidence: Any = None, correct: Any = None, sample_weight: Any = None
) -> float:
    """The chance that a random positive scores above a random negative, ties counting a half (midranks).

    For shift detection: the maximum softmax probability as score, in-distribution rows as positives.

    Args:
        scores: (n,), of any scale, higher for positives.
        positives: (n,), bool or 0/1.
        confidence: (n,), in place of scores.
        correct: (n,), in place of positives.
        sample_weight: (n,), how much each row counts.

    Returns:
        In [0, 1], 0.5 for scores that say nothing.

    >>> auroc([0.1, 0.4, 0.35, 0.8], [0, 0, 1, 1])
    0.75
    """
    if confidence is not None or correct is not None:
        if scores is not None or positives is not None:
            raise TypeError("confidence and correct take the place of scores and positives; give one or the other")
        given = read_inputs(confidence=confidence, correct=correct)
        scores, positives = given.scores, given.labels
    else:
        scores, positives = ranked_input(scores, positives)
    weights = np.ones(len(scores))
    if sample_weight is not None:
        weights = checked_weights(sample_weight, len(scores), "sample_weight")
    if (counted := positives[weights > 0]).all() or not counted.any():
        raise ValueError(f"positives must hold both outcomes, got only {int(counted[0])}; AUROC compares the two")
    return FromRanks(auroc_of).of_rows(scores, positives, weights)


def auroc_influence(scores: Array, positives: Array, weights: Array) -> tuple[float, Array]:
    """The weighted AUROC of scores (n,) and outcomes (n,) bool, and what each row adds to its error, (n,).

    A row adds its weight's share of its class times how far its placement among the other class is from the AUROC;
    DeLong, DeLong & Clarke-Pearson (1988), whose variance is the sum of the squares.
    """
    order = np.argsort(scores, kind="stable")
    start = runs(scores[order])
    place = np.empty(len(scores), dtype=np.int64)
    place[order] = np.repeat(np.arange(len(start)), np.diff(np.append(start, len(scores))))
    sums = [np.bincount(place, weights * side, len(start)) for side in (positives, ~positives)]
    won, lost = (own / own.sum() for own in sums)
    below, above = np.cumsum(lost) - lost / 2, won[::-1].cumsum()[::-1] - won / 2
    area = min(1.0, float(won @ below))
    placement = np.where(positives, below[place], above[place])
    total = np.where(positives, sums[0].sum(), sums[1].sum())
    return area, weights / total * (placement - area)


def ranked_input(scores: Any, positives: Any) -> tuple[Array, Array]:
    """Scores and outcomes (bool), checked: no NaN, and of one length."""
    values, outcome = as_array("scores", scores), as_array("positives", positives)
    if values.ndim != 1 or outcome.shape != values.shape:
        raise ValueError(f"scores and positives must be (n,), one of each, got {values.shape} and {outcome.shape}")
    if len(values) == 0:
        raise ValueError("scores must hold at least one positive and one negative, got none")
    values = values.astype(np.float64)
    if (wrong := np.isnan(values)).any():
        raise ValueError(
            f"scores must be numbers or infinite, got nan in row {first_row(wrong)}; leave the row out yourself"
        )
    if (wrong := (outcome != 0) & (outcome != 1)).any():
        at = first_row(wrong)
        raise ValueError(f"positives must be 0 or 1, got {float(outcome[at]):g} in row {at}")
    return values, outcome == 1


def runs(ordered: Array) -> Array:
    """Where each run of equal values begins."""
    return np.flatnonzero(np.append(True, ordered[1:] != ordered[:-1]))
