"""Bins of reliability diagrams: of rows with weights and in clusters, before and after a calibrator, of rare events."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from focalcal.core.binning import BinSums
from focalcal.metrics.binned_errors import sums_between
from focalcal.metrics.proper import of_label
from focalcal.metrics.reliability import Reliability, reliability_of
from focalcal.metrics.scan import even_edges

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from focalcal.auditing.fixes import Fixes
    from focalcal.auditing.rows import AuditRows, Design

EVEN = even_edges(15)
_RARE_BINS = 12  # of a rare event


def bins_of(
    sure: NDArray[np.float64], right: NDArray[np.bool_], design: Design, edges: NDArray[np.float64] = EVEN
) -> Reliability:
    """Of weighted or clustered rows the bins count as many as tell as much."""
    if design.weights is None and design.clusters is None:
        return reliability_of(sums_between(sure, right, edges), edges)
    weights = design.weighing(sure - right)
    cells = np.searchsorted(edges, sure, side="left").clip(1, len(edges) - 1) - 1
    size = len(edges) - 1
    sums = (np.bincount(cells, weights * values, minlength=size) for values in (np.ones_like(sure), sure, right))
    return reliability_of(BinSums(*sums), edges)


def rare_edges(p: NDArray[np.float64], design: Design) -> NDArray[np.float64]:
    """Edges between which as many events are expected: a rare event's diagram has points where its events are."""
    order = np.argsort(p, kind="stable")
    reached = np.cumsum((p if design.weights is None else p * design.weights)[order])
    places = np.searchsorted(reached, reached[-1] * np.arange(1, _RARE_BINS) / _RARE_BINS)
    return np.unique(np.concatenate([[0.0], p[order][places], [1.0]]))


def calibrated_bins(fixes: Fixes | None, rows: AuditRows) -> Reliability | None:
    """The diagram after the recommended calibrator, of the predictions that the scores made: on other folds' fits."""
    if fixes is None or fixes.after is None or fixes.after.shape[0] != len(fixes.compared.places):
        return None
    places, after = fixes.compared.places, fixes.after
    sure = after[:, 1] if rows.predicted is None else of_label(after, rows.predicted[places])
    return bins_of(sure, rows.correct[places], fixes.compared.design)
