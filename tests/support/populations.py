"""Discrete populations: one small enough to compute by hand, and random ones with and without ties."""

from fractions import Fraction

import numpy as np
from hypothesis import strategies as st

# Weights 1/2, 1/4, 1/4; yhat = 0, 1, 0; S = .7, .7, .5; eta_yhat = .6, .8, .25.
PROBS = np.array([[0.7, 0.2, 0.1], [0.1, 0.7, 0.2], [0.5, 0.25, 0.25]])
ETA = np.array([[0.6, 0.3, 0.1], [0.1, 0.8, 0.1], [0.25, 0.5, 0.25]])
WEIGHTS = [0.5, 0.25, 0.25]
BY_HAND = (PROBS, ETA, WEIGHTS)


@st.composite
def grids(draw):
    """Counts of probs, eta (n, k) and weights (n,): many ties, zeros and confidences at the edges of bins."""
    states, classes, steps = draw(st.integers(1, 12)), draw(st.integers(2, 5)), draw(st.sampled_from([4, 10, 15, 30]))
    generator = np.random.default_rng(draw(st.integers(0, 2**31)))
    probs, eta = (generator.multinomial(steps, np.ones(classes) / classes, size=states) for _ in range(2))
    weights = generator.integers(0, 4, size=states)
    weights[generator.integers(states)] += 1
    return probs, eta, weights


@st.composite
def spreads(draw):
    """probs, eta (n, k) and weights (n,) without ties."""
    states, classes = draw(st.integers(1, 12)), draw(st.integers(2, 6))
    generator = np.random.default_rng(draw(st.integers(0, 2**31)))
    alpha = np.full(classes, draw(st.sampled_from([0.2, 1.0, 5.0])))
    probs, eta = generator.dirichlet(alpha, size=states), generator.dirichlet(alpha, size=states)
    return probs, eta, generator.dirichlet(np.ones(states))


def shares(counts):
    """Distributions over the last axis in proportion to counts."""
    return counts / counts.sum(-1, keepdims=True)


def fractions(counts):
    """The same without rounding, as lists."""
    if counts.ndim == 2:
        return [fractions(row) for row in counts]
    return [Fraction(int(c), int(counts.sum())) for c in counts]


def populations():
    """Of both kinds, as (probs, eta, weights)."""
    return st.one_of(grids().map(lambda counts: [shares(c) for c in counts]), spreads())
