"""Wealth over time: an e-process, which may be looked at after every step, and an e-detector, which says when.

A step is what lies between two looks at most: a period, or what came of it at one look. With bets c of stakes w_c and
e-values e_kc of step k, which are fixed before the step's outcomes are seen,

    e-process   M_n = sum_{j <= n} pi_j T_jn + 1 / (n + 1),   T_jn = sum_c w_c prod_{k=j}^n e_kc,   pi_j = 1 / (j (j+1))
    e-detector  R_n = sum_{j <= n} T_jn

Under "holds" M is a nonnegative supermartingale from 1, so that it ever reaches 1 / alpha with probability at most
alpha (Ville). New bets begin at every step, so that a long time in which all was well costs log n, not what old bets
have lost. R exceeds A for the first time after A steps on average, at least (Shin, Ramdas and Rinaldo, 2022).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from scipy.special import logsumexp

if TYPE_CHECKING:
    from jaxtyping import Float, Int
    from numpy.typing import NDArray


class Wealth:
    """Both processes, step by step, of one stream or of several side by side.

    >>> wealth = Wealth(np.array([0.5, 0.5]))
    >>> for _ in range(3):
    ...     wealth.add(np.log([2.0, 0.5]))
    >>> np.exp([wealth.process, wealth.detector]).round(2).tolist()
    [2.74, 7.44]
    """

    def __init__(self, stakes: Float[np.ndarray, " c"]) -> None:
        """With the stakes of the bets, which sum to 1 at most."""
        self._log_stakes = np.log(stakes)
        self._process = self._detector = np.full(len(stakes), -np.inf)
        self.steps = 0

    def add(self, log_e: Float[np.ndarray, "*s c"]) -> None:
        """A step with the logarithms of its e-values, one for each bet."""
        self.steps += 1
        entering = -np.log(self.steps * (self.steps + 1.0))
        self._process = np.logaddexp(self._process, entering) + log_e
        self._detector = np.logaddexp(self._detector, 0.0) + log_e

    @property
    def process(self) -> NDArray[np.float64]:
        """The logarithm of the e-process, one per stream."""
        placed = logsumexp(self._log_stakes + self._process, axis=-1)
        value: NDArray[np.float64] = np.logaddexp(placed, -np.log(self.steps + 1.0))
        return value

    @property
    def detector(self) -> NDArray[np.float64]:
        """The logarithm of the e-detector, one per stream."""
        value: NDArray[np.float64] = logsumexp(self._log_stakes + self._detector, axis=-1)
        return value


def change_weights(log_e: Float[np.ndarray, "t c"], stakes: Float[np.ndarray, " c"]) -> Float[np.ndarray, " t"]:
    """How much each first step after a change has to say for itself: T_jn of every j, divided by their sum.

    With fixed bets and every step as likely beforehand this is the posterior of the change.
    """
    from_there = np.cumsum(log_e[::-1], axis=0)[::-1]
    logs = logsumexp(np.log(stakes / stakes.sum()) + from_there, axis=1)
    weights: NDArray[np.float64] = np.exp(logs - logsumexp(logs))
    return weights


def central_range(weights: Float[np.ndarray, " t"], level: float = 0.95) -> tuple[int, int]:
    """The first and the last place of a range that leaves at most (1 - level) / 2 of the weights out on either side."""
    below: Int[np.ndarray, " t"] = np.cumsum(weights)
    tail = (1 - level) / 2
    return int(np.searchsorted(below, tail, side="right")), min(int(np.searchsorted(below, 1 - tail)), len(weights) - 1)
