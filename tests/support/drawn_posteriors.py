"""Posteriors for the tests of the theory: of every kind from hypothesis, or flat ones that are not too small."""

from typing import Any

import numpy as np
from hypothesis import strategies as st

from focalcal.theory.minimiser import minimise

GAMMAS = st.sampled_from([0.0, 0.3, 1.0, 2.0, 3.0, 5.0, 20.0]) | st.floats(0.0, 8.0)
LAMS = st.floats(-6.0, 6.0).map(lambda exponent: 10.0**exponent)


@st.composite
def posteriors(draw: st.DrawFn) -> np.ndarray:
    """2 to 8 classes with probabilities down to 1e-11 of the largest, and often some that are 0."""
    logs = draw(st.lists(st.floats(-25.0, 0.0) | st.just(-np.inf), min_size=2, max_size=8))
    mass = np.exp(np.array(logs))
    if mass.sum() == 0:
        mass[draw(st.integers(0, len(mass) - 1))] = 1.0
    return mass / mass.sum()


def flat_posteriors(classes: int, count: int, *, smallest: float, seed: int = 0) -> np.ndarray:
    """Uniform on the simplex, given that no class has less than `smallest`: shape (count, classes)."""
    drawn = np.random.default_rng(seed).dirichlet(np.ones(classes), size=(64 if classes < 50 else 8) * count)
    kept = drawn[drawn.min(-1) >= smallest][:count]
    assert len(kept) == count
    return kept


def distance(eta: Any, *, gamma: Any, lam: Any) -> Any:
    """|q* - eta|_2 of the solver."""
    solution = minimise(eta, gamma=gamma, lam=lam)
    solution.unwrap()
    return np.linalg.norm(solution.displacement, axis=-1)
