"""CORP: the reliability curve by isotonic regression, with consistency bands and a score decomposition without bins."""

from __future__ import annotations

import math
from dataclasses import dataclass, fields
from typing import Any, Unpack

import numpy as np
from scipy.special import xlogy

from focalcal.core.arrays import Array
from focalcal.core.checks import whole_number
from focalcal.core.display import Displayed, text_table
from focalcal.metrics.reliability import check_level, weighed_outcomes
from focalcal.predictions.inputs import InputOptions, read_inputs

_POINTS = 1000  # of the bands


@dataclass(frozen=True)
class CorpParts:
    """score = msc - dsc + unc of a mean Brier or log score.

    Attributes:
        score: the mean, over rows.
        msc: miscalibration: what the isotonic map of these very rows gains; >= 0, and above 0 by chance.
        dsc: discrimination: what that map gains on always saying the base rate.
        unc: uncertainty: the score of the base rate.
        chance: the mean msc of labels drawn from the probabilities, a calibrated model's.

    >>> parts = corp(confidence=[0.2, 0.2, 0.6, 0.6, 0.9, 0.9], correct=[0, 0, 1, 0, 1, 0]).brier
    >>> round(parts.unc, 4), parts.msc >= 0
    (0.2222, True)
    """

    score: float
    msc: float
    dsc: float
    unc: float
    chance: float


@dataclass(frozen=True, eq=False, repr=False)
class Corp(Displayed):
    """An isotonic reliability curve: one entry per flat step in `lower`, `upper`, `count`, `confidence`, `accuracy`.

    Attributes:
        lower, upper: the least and the largest probability of the step.
        count: the rows of each step.
        confidence: the mean probability of its rows.
        accuracy: how often the event happened among them.
        points: probabilities at which the bands are known; `low` and `high` are where a calibrated model's curve lies
            at each of them with probability `level`.
        low: the lower end of the band.
        high: the upper one.
        brier, nll: the decomposition of the mean of (p - y)^2, and of the mean of -log p or -log(1 - p), in nats.
        level: of the bands.

    >>> corp(confidence=[0.2, 0.2, 0.6, 0.6, 0.9, 0.9], correct=[0, 0, 1, 0, 1, 0]).lower
    array([0.2, 0.6])
    """

    lower: Array
    upper: Array
    count: Array
    confidence: Array
    accuracy: Array
    points: Array
    low: Array
    high: Array
    brier: CorpParts
    nll: CorpParts
    level: float

    def curve(self, probs: Any) -> Array:
        """The recalibrated probabilities of others: linear between steps, constant beyond them."""
        ends = np.stack([self.lower, self.upper], 1).ravel()
        return np.interp(np.asarray(probs, dtype=np.float64), ends, np.repeat(self.accuracy, 2))

    def frame(self) -> dict[str, list[Any]]:
        """One row per step; `low` and `high` are those of the bands at its mean probability."""
        columns = {"lower": self.lower, "upper": self.upper, "rows": self.count.astype(np.int64)}
        columns |= {"confidence": self.confidence, "accuracy": self.accuracy}
        columns |= {name: np.interp(self.confidence, self.points, getattr(self, name)) for name in ("low", "high")}
        return {name: values.tolist() for name, values in columns.items()}

    def as_dict(self) -> dict[str, float]:
        """The two decompositions, `brier_msc` and so on."""
        both = {"brier": self.brier, "nll": self.nll}
        return {
            f"{name}_{field.name}": getattr(parts, field.name)
            for name, parts in both.items()
            for field in fields(parts)
        }

    def __str__(self) -> str:
        """Both decompositions and the steps."""
        lines = [
            f"{name:>5} {parts.score:.4f} = MSC {parts.msc:.4f} ({parts.chance:.4f} by chance) "
            f"- DSC {parts.dsc:.4f} + UNC {parts.unc:.4f}"
            for name, parts in (("Brier", self.brier), ("NLL", self.nll))
        ]
        return "\n".join([*lines, text_table(self.frame())])


def corp(
    probs: Any = None,
    labels: Any = None,
    *,
    logits: Any = None,
    class_index: int | None = None,
    level: float = 0.95,
    resamples: int = 500,
    seed: int = 0,
    ignore_index: int | None = None,
    **inputs: Unpack[InputOptions],
) -> Corp:
    """Confidence against accuracy by isotonic regression; with `class_index`, p_k of that class against its share.

    The curve is the rising function of p that is nearest to the outcomes (pool adjacent violators), which is optimal
    for the Brier and the log score at once; it has no bins to choose. Dimitriadis, Gneiting and Jordan (2021). Bands
    are of consistency: rows are drawn with replacement, their outcomes from their probabilities, `resamples` times;
    of more than 1,000 distinct probabilities they know cells of equally many rows.

    `msc` is fitted on the rows that it judges, so that it is no metric to compare models by: `focalcal.headroom` is the
    same for maps fitted on other rows.

    Args:
        probs: (N, K), or in any other form of `focalcal.predictions.read_inputs`, `Predictions` among them.
        labels: (N,), class indices or names.
        logits: in place of probs.
        class_index: the class whose probability is looked at, None for the confidence.
        level: of the intervals.
        resamples: of the bootstrap.
        seed: of the bootstrap.
        ignore_index: rows with this label are left out.
        inputs: those of `focalcal.predictions.read_inputs`.

    Returns:
        The curve, its bands, and the decompositions of both scores.

    >>> found = corp(confidence=[0.2, 0.2, 0.6, 0.6, 0.9, 0.9], correct=[0, 0, 1, 0, 1, 0])
    >>> found.accuracy.tolist(), found.upper.tolist()
    ([0.0, 0.5], [0.2, 0.9])
    >>> round(found.brier.msc - found.brier.dsc + found.brier.unc - found.brier.score, 12)
    0.0
    """
    check_level(level)
    whole_number("resamples", resamples, least=20, most=10**6, remedy="500 is usual")
    whole_number("seed", seed, least=0, most=2**63 - 1, remedy="0 is usual")
    given = read_inputs(probs, labels, logits=logits, ignore_index=ignore_index, **inputs)
    sure, right, weights = weighed_outcomes(given, class_index=class_index, ignore_index=ignore_index)
    return corp_of(
        sure, right, np.ones(len(sure)) if weights is None else weights, level=level, resamples=resamples, seed=seed
    )


def corp_of(sure: Array, right: Array, weights: Array, *, level: float, resamples: int, seed: int) -> Corp:
    """`corp` of probabilities, outcomes and weights, (n,) each; bands are of Kish's effective number of rows."""
    p, place = np.unique(np.clip(sure.astype(np.float64), 0, 1), return_inverse=True)
    count, events = np.bincount(place, weights), np.bincount(place, weights * right)
    rising = _rising(events / count, count)
    first, rows = rising.blocks[:-1], rising.weights
    effective = round(weights.sum() ** 2 / np.square(weights).sum())
    points, low, high, chance = _bands(p, count, effective, level, resamples, seed)
    brier, nll = (
        _parts(score, p, rising.x, count, events, by_chance)
        for score, by_chance in zip((_brier, _nll), chance, strict=True)
    )
    return Corp(
        lower=p[first],
        upper=p[rising.blocks[1:] - 1],
        count=rows,
        confidence=np.add.reduceat(p * count, first) / rows,
        accuracy=rising.x[first],
        points=points,
        low=low,
        high=high,
        brier=brier,
        nll=nll,
        level=level,
    )


def _brier(p: Array, count: Array, events: Array) -> float:
    """The mean of (p - y)^2 over `count` rows at each p, of which `events` have y = 1."""
    return float((events * (1 - p) ** 2 + (count - events) * p**2).sum() / count.sum())


def _nll(p: Array, count: Array, events: Array) -> float:
    """The mean of -log p or -log(1 - p); inf where p is 0 or 1 and the other happened."""
    return float(-(xlogy(events, p) + xlogy(count - events, 1 - p)).sum() / count.sum())


def _parts(score: Any, p: Array, mapped: Array, count: Array, events: Array, chance: float) -> CorpParts:
    base = np.full_like(p, events.sum() / count.sum())
    raw, calibrated, constant = (score(values, count, events) for values in (p, mapped, base))
    return CorpParts(raw, raw - calibrated, constant - calibrated, constant, chance)


def _rising(rate: Array, weights: Array) -> Any:
    """The weighted isotonic regression, by the pooling of adjacent violators."""
    from scipy.optimize import isotonic_regression  # here: it takes as long to import as all metrics

    return isotonic_regression(rate, weights=weights)


def _bands(
    p: Array, count: Array, effective: int, level: float, resamples: int, seed: int
) -> tuple[Array, Array, Array, tuple[float, float]]:
    """Points, the curve's two quantiles at each, and the mean MSC of both scores, all of a calibrated model."""
    rows = count.sum()
    cells = np.arange(len(p)) if len(p) <= _POINTS else np.floor((np.cumsum(count) - count / 2) / rows * _POINTS)
    filled, cell = np.unique(cells.astype(np.int64), return_inverse=True)
    size = np.bincount(cell, count)
    points = np.bincount(cell, p * count) / size
    generator = np.random.default_rng(seed)
    curves, chance = np.empty((resamples, len(filled))), np.zeros(2)
    for curve in curves:
        drawn = generator.multinomial(effective, size / rows)
        events = generator.binomial(drawn, points)
        some = drawn > 0
        own, at = drawn[some].astype(np.float64), events[some].astype(np.float64)
        rising = _rising(at / own, own).x
        chance += [score(points[some], own, at) - score(rising, own, at) for score in (_brier, _nll)]
        curve[:] = np.interp(points, points[some], rising)
    low, high = np.quantile(curves, [(1 - level) / 2, (1 + level) / 2], axis=0)
    mean = chance / resamples
    return points, low, high, (float(mean[0]), float(mean[1]) if math.isfinite(mean[1]) else math.inf)
