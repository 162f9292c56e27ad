"""Labels drawn from known class probabilities."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray


def drawn_labels(posterior: NDArray[np.float64], draws: np.random.Generator) -> NDArray[np.int64]:
    """(N,): a label a row, class k with probability posterior[:, k]; inverts the cumulative distribution."""
    cumulative = posterior.cumsum(1)
    threshold = draws.random((len(posterior), 1)) * cumulative[:, -1:]  # below the sum, whatever it was rounded to
    return np.asarray((cumulative <= threshold).sum(1), np.int64)
