"""AdaECE and smECE from moments over equal cells of confidence, each with a bound on how far it can be off.

Moments are (sets, 5, cells): sums of 1, f, a, f^2 and f a over each cell, for confidences f and correctness a.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from focalcal.core.arrays import Array
from focalcal.metrics.scan import check_bins
from focalcal.metrics.smooth import STEPS, Smoother, intervals_for, node_sums, sensitivity, smooth_ece_of

if TYPE_CHECKING:
    from collections.abc import Callable

CELLS = 8000  # a multiple of the 1,000 node intervals of smECE


def adaptive_ece_from_cells(moments: Callable[[int], Array], n_bins: int = 15) -> Array:
    """AdaECE (sets,) from `moments(cells)`."""
    return adaptive_ece_of(moments(CELLS), n_bins)


def smooth_ece_from_cells(moments: Callable[[int], Array]) -> Array:
    """smECE (sets,) from `moments(cells)`, asked for as many cells as the width needs."""
    smoother = Smoother(lambda intervals, chosen: node_sums(moments(intervals)[chosen]))
    return smooth_ece_of(smoother, smoother.sets)[0]


def _splits(cumulative: Array, n_bins: int) -> tuple[Array, Array]:
    """For each inner edge of equal mass the cell that holds its order statistic, and that of the next one."""
    total = cumulative[..., -1:]
    below = np.minimum(np.floor(np.arange(1, n_bins) * total / n_bins), total - 1)
    after = np.minimum(below + 1, total - 1)
    ranks = np.concatenate([below, after], -1)
    cells = np.stack([np.searchsorted(ends, own, side="right") for ends, own in zip(cumulative, ranks, strict=True)])
    return cells[..., : n_bins - 1], cells[..., n_bins - 1 :]


def adaptive_ece_of(moments: Array, n_bins: int = 15) -> Array:
    """AdaECE (sets,) with the members of a cell kept together: all on the near side of an edge inside it."""
    count, residual = moments[:, 0], moments[:, 1] - moments[:, 2]
    return equal_mass_error(count.cumsum(-1), residual.cumsum(-1), check_bins(n_bins))


def equal_mass_error(count: Array, residual: Array, n_bins: int) -> Array:
    """AdaECE (sets,) from cumulative sums over cells, (sets or 1, cells)."""
    at_edge = np.take_along_axis(residual, _splits(count, n_bins)[0], -1)
    whole = residual[:, -1:]
    sums = np.diff(np.concatenate([np.zeros_like(whole), at_edge, whole], -1))
    return np.abs(sums).sum(-1) / count[:, -1]


def adaptive_ece_bound_of(moments: Array, n_bins: int = 15) -> float:
    """How far `adaptive_ece_of` can be off, derived in docs/math/sketch.md.

    An edge inside a cell may put part of it on the wrong side. Whatever part that is, its residuals add up to no
    more than those of the cell's wrong rows or of its right rows, and two bins change by that; with several edges in
    one cell the bins between them hold both kinds.
    """
    count, f, correct, _, products = moments
    cell, following = (part[0] for part in _splits(count.cumsum()[None], n_bins))
    inside, times = np.unique(cell[cell == following], return_counts=True)
    wrong, right = (f - products)[inside], (correct - products)[inside]
    larger = np.maximum(wrong, right)
    return float(np.where(times > 1, wrong + right + larger, 2 * larger).sum() / count.sum())


def spread(moments: Array, intervals: int) -> Array:
    """Moments over another number of intervals: exactly if cells nest in them, else with a cell's right rows and its
    wrong rows each at their mean.
    """
    sets = len(moments)
    if CELLS % intervals == 0:
        return moments.reshape(sets, 5, intervals, -1).sum(-1)
    count, f, correct, _, products = np.moveaxis(moments, 1, 0)
    result = np.zeros((sets, 5, intervals))
    for mass, total, outcome in ((correct, products, 1.0), (count - correct, f - products, 0.0)):
        occupied = np.flatnonzero(mass.any(0))
        m, t = mass[:, occupied], total[:, occupied]
        mean = np.divide(t, m, out=np.zeros_like(t), where=m > 0)
        index = np.clip(np.ceil(mean * intervals).astype(int) - 1, 0, intervals - 1)
        flat = (np.arange(sets)[:, None] * intervals + index).ravel()
        for row, value in enumerate((m, t, outcome * m, t * mean, outcome * t)):
            added = np.bincount(flat, value.ravel(), minlength=sets * intervals)
            result[:, row] += added.reshape(sets, intervals)
    return result


def smooth_ece_bound_of(moments: Array) -> float:
    """How far `smooth_ece_of` can be off after `spread`, derived in docs/math/sketch.md.

    At a width whose nodes do not align with the cells, rows at their cell's mean change the error by at most
    h / 4 (kink (E|f - a| + h) + count_kink error) + h^2 / 4 slope, with cells of width h and the `sensitivity` of the
    width. Where that could change which width is chosen, the errors at all widths that might be count too.
    """
    count = moments[0].sum()
    smoother, first = Smoother(lambda n, _: node_sums(spread(moments[None], n))), np.array([0])
    value, width = (float(part[0]) for part in smooth_ece_of(smoother, 1))
    residual = float((moments[1] - moments[4]).sum() + (moments[2] - moments[4]).sum()) / count
    h = 1 / CELLS

    def slack(s: float) -> float:
        if CELLS % intervals_for(s) == 0:
            return 1e-10  # rounding
        slope, kink, count_kink = sensitivity(s)
        moved = h / 4 * (kink * (residual + h) + count_kink * errors[round(s * STEPS)]) + h * h / 4 * slope
        return float(moved) + 1e-10

    chosen = round(width * STEPS)
    nearby = range(max(1, chosen - 16), min(STEPS, chosen + 16) + 1)
    errors = {step: float(smoother.error(step / STEPS, first)[0]) for step in nearby}

    def may_be_enough(step: int) -> bool:
        return step > 1 and step / STEPS >= errors[step] - slack(step / STEPS)

    def may_be_too_narrow(step: int) -> bool:
        return step <= 1 or step not in errors or step / STEPS < errors[step] + slack(step / STEPS)

    possible = [step for step in nearby if may_be_enough(step) and may_be_too_narrow(step - 1)]
    return max(abs(errors[step] - value) + slack(step / STEPS) for step in {*possible, chosen})
