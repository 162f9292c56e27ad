"""Rows of an array a piece at a time: what is computed from a piece stays in the cache, and its overhead small."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

_AT_ONCE = 1 << 19  # elements


def row_chunks(scores: Any) -> Iterator[tuple[int, Any]]:
    """(first row, rows) of consecutive pieces of an array or a tensor."""
    step = max(1, _AT_ONCE // max(1, math.prod(scores.shape[1:])))
    return ((start, scores[start : start + step]) for start in range(0, len(scores), step))
