"""Calibrators that map each class's probability by itself and then divide by the sum."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any

import numpy as np

from focalcal.core.numerics import log_probs_and_complements, namespace, softmax
from focalcal.posthoc.calibrator import Calibrator

_CERTAIN = -1e3  # as certain as can be


class OneVsRestCalibrator(Calibrator):
    """K binary maps, class k against the rest, normalised (Zadrozny and Elkan, 2002).

    A row in which every class is mapped to 0 keeps its softmax: nothing else is known about it.
    """

    @abstractmethod
    def _class_probs(self, logits: Any, **learnt: Any) -> Any:
        """Each class's own calibrated probability (n, K), before normalisation."""

    def _map(self, logits: Any, **learnt: Any) -> Any:
        xp = namespace(logits)
        each = self._class_probs(logits, **learnt)
        largest = xp.max(each, axis=1, keepdims=True)
        relative = each / xp.where(largest > 0, largest, 1.0)  # before the sum, which may be too small to divide by
        return xp.where(largest > 0, relative / xp.sum(relative, axis=1, keepdims=True), softmax(logits))


def bounded_logs(logits: Any) -> tuple[Any, Any]:
    """log p_k and log(1 - p_k), none below -1000: a row of enormous logits does not outweigh all others in a fit."""
    xp = namespace(logits)
    log_p, log_not_p = log_probs_and_complements(logits)
    return xp.clip(log_p, _CERTAIN, None), xp.clip(log_not_p, _CERTAIN, None)


def below(points: Any, values: Any) -> Any:
    """How many of a class's rising points (K, m) lie below each of its values (n, K), as (n, K)."""
    xp = namespace(values)
    if xp is np:
        if len(values) == 1:  # one comparison is quicker than K searches
            return (points < values.T).sum(1)[None, :]
        places = [np.searchsorted(line, column) for line, column in zip(points, values.T, strict=True)]
        return np.stack(places, 1)
    # Binary search in functions that every library and ONNX have: searchsorted takes one line at a time, or is missing.
    classes, count = points.shape
    if count == 0:
        return xp.zeros_like(values, dtype=xp.int64)
    ends = xp.reshape(points, (-1,))
    first = xp.arange(classes, device=values.device) * count
    found = xp.zeros_like(values, dtype=xp.int64)
    step = 1 << (count.bit_length() - 1)
    while step:
        last = found + (step - 1)  # the place of the point that would be the last one below
        there = xp.clip(last, 0, count - 1)
        is_below = _entries(ends, first + there) < values
        found = xp.where((last < count) & is_below, found + step, found)
        step //= 2
    return found


def by_class(table: Any, places: Any) -> Any:
    """The entries of a table (K, m) at each class's own places (n, K)."""
    xp = namespace(table)
    classes, count = table.shape
    first = (xp.arange(classes) if xp is np else xp.arange(classes, device=table.device)) * count
    return _entries(xp.reshape(table, (-1,)), first + places)


def _entries(values: Any, places: Any) -> Any:
    """values[places], for places of two dimensions."""
    xp = namespace(values)
    return xp.reshape(xp.take(values, xp.reshape(places, (-1,)), axis=0), places.shape)


def interpolated(points: Any, heights: Any, values: Any) -> Any:
    """Each column's piecewise linear function through its rising points (K, m), constant beyond them; values (n, K)."""
    xp = namespace(values)
    above = below(points, values)
    left, right = xp.clip(above - 1, 0, None), xp.clip(above, None, points.shape[1] - 1)
    start = by_class(points, left)
    width = by_class(points, right) - start
    part = xp.where(width > 0, (values - start) / xp.where(width > 0, width, 1.0), 0.0)
    low, high = by_class(heights, left), by_class(heights, right)
    return xp.where(part < 0.5, low + part * (high - low), high - (1 - part) * (high - low))  # exact at either end
