"""Does the score rank what it should rank? Ties count as what they are: no order at all."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.special import digamma

from focalcal.core.arrays import Array, as_array
from focalcal.core.checks import between_zero_and_one, first_row
from focalcal.predictions.field_checks import checked_weights
from focalcal.predictions.inputs import read_inputs


def auroc(
    scores: Any = None, positives: Any = None, *, confidence: Any = None, correct: Any = None, sample_weight: Any = None
) -> float:
    """The chance that a random positive scores above a random negative, ties counting a half (midranks).

    `scores` (n,) of any scale, higher for positives; `positives` (n,) bool or 0/1. For shift detection: the maximum
    softmax probability as score, in-distribution rows as positives. `confidence` and `correct` may take their place.
    `sample_weight` (n,) is how much each row counts.
    """
    if confidence is not None or correct is not None:
        if scores is not None or positives is not None:
            raise TypeError("confidence and correct take the place of scores and positives; give one or the other")
        given = read_inputs(confidence=confidence, correct=correct)
        scores, positives = given.scores, given.labels
    else:
        scores, positives = ranked_input(scores, positives)
    if sample_weight is None:
        return binary_auroc(scores, positives)
    weights = checked_weights(sample_weight, len(scores), "sample_weight")
    counted = positives[weights > 0]
    if (counted == counted[0]).all():
        return binary_auroc(scores[weights > 0], counted)  # which says what is wrong
    return auroc_influence(scores, positives, weights)[0]


def binary_auroc(scores: Array, positives: Array) -> float:
    """`auroc` of scores (n,) and outcomes (n,) bool, both of which must occur."""
    if (positives == positives[0]).all():
        raise ValueError(f"positives must hold both outcomes, got only {int(positives[0])}; AUROC compares the two")
    values, outcome = scores.astype(np.float64), positives.astype(np.float64)
    order = np.argsort(values, kind="stable")
    start = runs(values[order])
    size = np.diff(np.append(start, len(values)))
    wins = np.add.reduceat(outcome[order], start)
    below = start - np.append(0, np.cumsum(wins)[:-1])  # negatives with a smaller score
    positive = outcome.sum()
    return float((wins * (below + (size - wins) / 2)).sum() / (positive * (len(values) - positive)))


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


def binary_aurc(confidence: Array, correct: Array) -> float:
    """Area under the risk-coverage curve: the mean over i of the error among the i most confident rows.

    Rows of equal confidence are taken in the mean over their orders. Geifman, Uziel & El-Yaniv (2019).
    In a run of m equal confidences with e errors, after s rows with E errors, the i-th risk is on average
    (E + e i / m) / (s + i); summed over the run that is e + (E - e s / m) (H_{s+m} - H_s), H the harmonic numbers.
    """
    sureness, wrong = confidence, 1.0 - correct
    order = np.argsort(-sureness, kind="stable")
    start = runs(sureness[order])
    size = np.diff(np.append(start, len(order)))
    errors = np.add.reduceat(wrong[order], start)
    before = np.cumsum(errors) - errors
    harmonic = np.append(0.0, np.cumsum(1 / np.arange(1, len(order) + 1)))
    rise = harmonic[start + size] - harmonic[start]
    return float((errors + (before - errors * start / size) * rise).sum() / len(order))


def binary_confidence_auroc(confidence: Array, correct: Array) -> float:
    """The chance that a right prediction is more confident than a wrong one, ties counting a half.

    Failure detection by the confidence alone; 1/2 where all predictions are right, or all wrong: nothing to rank.
    """
    return 0.5 if (correct == correct[0]).all() else binary_auroc(confidence, correct)


def binary_e_aurc(confidence: Array, correct: Array) -> float:
    """AURC less that of the same predictions in the best order, all wrong ones last; 0 is that order.

    Geifman, Uziel & El-Yaniv (2019). The best order's is exact, (e - r (H_n - H_r)) / n of r right and e wrong rows,
    where they take its limit, (1 - acc) + acc log(acc).
    """
    best = optimal_aurc(np.count_nonzero(correct), len(correct))
    return float(max(0.0, binary_aurc(confidence, correct) - best))


def optimal_aurc(right: Any, rows: Any) -> Any:
    """AURC of the best order of so many right rows among all; numbers or arrays."""
    return (rows - right - right * (digamma(rows + 1.0) - digamma(right + 1.0))) / rows


def binary_augrc(confidence: Array, correct: Array) -> float:
    """Area under the generalised risk-coverage curve: the mean over thresholds of the share of all rows that is both
    accepted and wrong.

    Traub et al. (2024): (1 - AUROC) acc (1 - acc) + (1 - acc)^2 / 2, AUROC that of the confidence for being right. A
    threshold's mistakes count by how many there are, not by their share of what is accepted, as in AURC.
    """
    return float(generalised_risk(binary_confidence_auroc(confidence, correct), correct.mean()))


def generalised_risk(auroc: Any, accuracy: Any) -> Any:
    """AUGRC of both, numbers or arrays."""
    return (1 - auroc) * accuracy * (1 - accuracy) + (1 - accuracy) ** 2 / 2


def binary_coverage(confidence: Array, correct: Array, accuracy: float = 0.95, weights: Array | None = None) -> float:
    """The largest share of rows that a threshold on the confidence accepts and that is right often enough.

    Often enough is `accuracy`, 0.95 unless told; rows of equal confidence are accepted together; 0 if no threshold
    will do.
    """
    between_zero_and_one("accuracy", accuracy, remedy="0.95 is usual")
    order = np.argsort(-confidence, kind="stable")
    ends = np.append(runs(confidence[order])[1:], len(order))
    wrong = ~correct[order] if weights is None else np.where(correct, 0.0, weights)[order]
    accepted = ends if weights is None else np.cumsum(weights[order])[ends - 1]
    enough = 1 - np.cumsum(wrong)[ends - 1] / accepted >= accuracy
    return float((accepted * enough).max() / accepted[-1])
