"""The rows of an event in cells of equal log odds, of which every fit on the log odds is a function."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import sparse

from focalcal.core.arrays import Array
from focalcal.metrics.bootstrap_statistics import Draw
from focalcal.metrics.event_rows import bounded
from focalcal.predictions.inputs import Inputs

FINEST = 1 << 16  # cells for one fit; of more rows the log odds of a cell are their mean, which moves a fit by 1e-7
COARSEST = 1 << 10  # cells for many fits


class EventCells:
    """Of the rows `x` (log odds, bounded), `outcome`, `own` (weights); of the cells `log_odds`, `p` and `weights`."""

    def __init__(self, given: Inputs, most: int = FINEST) -> None:
        assert given.log_odds is not None
        self.x = x = bounded(given.log_odds)
        rows = len(x)
        self.own = np.ones(rows) if given.weights is None else given.weights
        self.outcome = given.labels.astype(np.float64)
        self.place = place = _places(x, self.own, most)
        self.weights = np.bincount(place, self.own)
        if not self.weights.all():  # cells of the finest grid that hold nothing, or rows of no weight
            filled = np.cumsum(self.weights > 0) - 1
            self.place = place = filled.clip(min=0)[place]
            self.weights = self.weights[self.weights > 0]
        self.log_odds = np.bincount(place, self.own * x) / self.weights
        self.p = np.bincount(place, self.own * given.scores) / self.weights
        self._matrix = sparse.csr_array((np.ones(rows), (place, np.arange(rows))), shape=(len(self.weights), rows))

    def sums(self, draw: Draw) -> tuple[Array, Array]:
        """How many rows and how many events each cell has, (cells, resamples)."""
        count: Array = self._matrix @ draw.weights
        events: Array = self._matrix @ draw.right(self.outcome)
        return count, events


def _places(x: Array, weights: Array, most: int) -> Any:
    """The cell of each row: one per distinct value where they are few, else of equal width, then of equal mass."""
    if len(x) <= FINEST:
        values, place = np.unique(x, return_inverse=True)
        if len(values) <= most:
            return place
    else:
        width = np.ptp(x) / FINEST or 1.0
        place = np.minimum((x - x.min()) / width, FINEST - 1).astype(np.int64)
        if most >= FINEST:
            return place
    mass = np.bincount(place, weights)
    merged = np.floor((mass.cumsum() - mass / 2) / mass.sum() * most).astype(np.int64)
    _, merged = np.unique(merged, return_inverse=True)
    return merged[place]
