"""Rows of an array a piece at a time: what is computed from a piece stays in the cache, and its overhead small."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from torch import Tensor

_AT_ONCE = 1 << 19  # elements


def row_chunks(scores: Tensor) -> Iterator[tuple[int, Tensor]]:
    """(first row, rows) of consecutive pieces."""
    step = max(1, _AT_ONCE // max(1, scores[:1].numel()))
    return ((start, scores[start : start + step]) for start in range(0, len(scores), step))
