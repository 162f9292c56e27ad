"""Solutions of the exact solver that the theory page carries, so that its own solver can check itself."""

from __future__ import annotations

from dataclasses import dataclass

from focalcal.theory.minimiser import minimise
from focalcal.theory.study import posteriors

_PARAMETERS = ((0.0, 1.0), (0.5, 0.0), (2.0, 1.0), (3.0, 100.0), (8.0, 0.01))  # gamma, lam
_EXAMPLE = {"three classes: 0.7, 0.2, 0.1": [0.7, 0.2, 0.1]}


@dataclass(frozen=True)
class ReferenceSolution:
    """q* of a posterior at gamma and lam."""

    eta: list[float]
    gamma: float
    lam: float
    q: list[float]


def example_posteriors() -> dict[str, list[float]]:
    """By name: a small one, then those of the theory study."""
    return _EXAMPLE | {name: eta.tolist() for name, eta in posteriors().items()}


def reference_solutions() -> list[ReferenceSolution]:
    """Of every example at a few gamma and lam, the ends of their ranges among them."""
    return [
        ReferenceSolution(eta, gamma, lam, minimise(eta, gamma=gamma, lam=lam).q.tolist())
        for eta in example_posteriors().values()
        for gamma, lam in _PARAMETERS
    ]
