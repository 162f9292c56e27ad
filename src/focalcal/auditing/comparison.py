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

    from focalcal.auditing.rows import AuditRows

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
    changes = []
    for name, mine in new.losses.items():
        theirs = old.losses[name]
        if np.isfinite(mine).all() and np.isfinite(theirs).all():
            span = bootstrap_ci(mine - theirs, resamples=_RESAMPLES, seed=seed)
            changes.append(Change(name, float(mine.mean()), float(theirs.mean()), span.low, span.high))
    return [*changes, _ece_change(new, old, seed)]


def _ece_change(new: AuditRows, old: AuditRows, seed: int) -> Change:
    """The basic bootstrap interval: [2 d - q_high, 2 d - q_low] for quantiles q of resampled differences."""
    both = [Binned(rows.confidence, rows.correct.astype(np.float64), 15, ece_of) for rows in (new, old)]
    whole = Draw(np.ones((len(new.confidence), 1)))
    mine, theirs = (float(np.ravel(each(whole))[0]) for each in both)
    drawn: list[NDArray[np.float64]] = []
    for weights in row_weights(len(new.confidence), len(new.confidence), _RESAMPLES, seed):
        draw = Draw(weights)
        drawn.append(np.ravel(both[0](draw)) - np.ravel(both[1](draw)))
    low, high = np.quantile(np.concatenate(drawn), [0.025, 0.975])
    estimate = mine - theirs
    return Change("ece", mine, theirs, 2 * estimate - float(high), 2 * estimate - float(low))
