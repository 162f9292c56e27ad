"""Posteriors that the page offers, and solutions that its solver is checked by."""

from __future__ import annotations

from typing import Any

from focalcal.theory import minimise
from paper.theory.theory_study import posteriors

_PARAMETERS = ((0.0, 1.0), (0.5, 0.0), (2.0, 1.0), (3.0, 100.0), (8.0, 0.01))  # gamma, lam
_EXAMPLE = {"three classes: 0.7, 0.2, 0.1": [0.7, 0.2, 0.1]}


def example_posteriors() -> dict[str, list[float]]:
    """By name: a small one, then those of the theory study."""
    return _EXAMPLE | {name: eta.tolist() for name, eta in posteriors().items()}


def reference_solutions() -> list[dict[str, Any]]:
    """eta, gamma, lam and q* of every example at a few gamma and lam, the ends of their ranges among them."""
    return [
        {"eta": eta, "gamma": gamma, "lam": lam, "q": minimise(eta, gamma=gamma, lam=lam).q.tolist()}
        for eta in example_posteriors().values()
        for gamma, lam in _PARAMETERS
    ]
