"""Two models on the same rows: which one is better calibrated?"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from focalcal.metrics.binned_errors import ece_of
from focalcal.metrics.bootstrap_statistics import Binned, Draw, row_weights
from focalcal.stats import bootstrap_ci

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from focalcal.auditing.rows import AuditRows, Design

_RESAMPLES = 1000


@dataclass(frozen=True)
class Change:
    """A metric of the new model, of the old one, and the 95 % interval of new minus old, paired by row."""

    metric: str
    new: float
    old: float
    low: float
    high: float

    @property
    def finding(self) -> str:
        """ "better", "worse" or "no difference shown"; every metric here is better when lower."""
        return "better" if self.high < 0 else "worse" if self.low > 0 else "no difference shown"


def compare_models(new: AuditRows, old: AuditRows, seed: int = 0) -> list[Change]:
    """Changes of NLL, Brier score, error and ECE. Rows must be the same in both, in the same order."""
    changes, design = [], new.design
    for name, mine in new.losses.items():
        theirs = old.losses[name]
        if np.isfinite(mine).all() and np.isfinite(theirs).all():
            span = bootstrap_ci(_by_unit(mine - theirs, design), resamples=_RESAMPLES, seed=seed)
            changes.append(Change(name, design.mean(mine), design.mean(theirs), span.low, span.high))
    return [*changes, _ece_change(new, old, seed)]


def _by_unit(differences: NDArray[np.float64], design: Design) -> NDArray[np.float64]:
    """One value per independent unit, whose mean is that of the rows by their weights."""
    values = differences if design.weights is None else differences * (design.weights / design.weights.mean())
    if design.clusters is None:
        return values
    sums = np.bincount(design.clusters, values).astype(np.float64)
    return sums * (len(sums) / len(values))


def _ece_change(new: AuditRows, old: AuditRows, seed: int) -> Change:
    """The basic bootstrap interval: [2 d - q_high, 2 d - q_low] for quantiles q of resampled differences."""
    rows, design = len(new.confidence), new.design
    both = [Binned(rows.confidence, rows.correct.astype(np.float64), 15, ece_of) for rows in (new, old)]
    own = np.ones((rows, 1)) if design.weights is None else design.weights[:, None]
    mine, theirs = (float(np.ravel(each(Draw(own)))[0]) for each in both)
    drawn: list[NDArray[np.float64]] = []
    units = rows if design.clusters is None else int(design.clusters.max()) + 1
    for weights in row_weights(units, rows, _RESAMPLES, seed):
        draw = Draw((weights if design.clusters is None else weights[design.clusters]) * own)
        drawn.append(np.ravel(both[0](draw)) - np.ravel(both[1](draw)))
    low, high = np.quantile(np.concatenate(drawn), [0.025, 0.975])
    estimate = mine - theirs
    return Change("ece", mine, theirs, 2 * estimate - float(high), 2 * estimate - float(low))
