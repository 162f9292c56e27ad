"""Theorem 5.1: the Bayes decision is kept, and a wrong one costs a strict gap."""

import mpmath as mp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import minimize as scipy_minimize

from focalcal.theory import consistency
from focalcal.theory.consistency import decision_gap, decreasing_differences, keeps_decision
from focalcal.theory.minimiser import minimise
from focalcal.theory.potential import conditional_risk, phi

GAMMAS = st.one_of(st.sampled_from([0.0, 0.5, 1.0]), st.floats(0.0, 20.0))
LAMS = st.one_of(st.just(0.0), st.floats(-3.0, 4.0).map(lambda power: 10.0**power))


def least_risk(eta, gamma, lam):
    return conditional_risk(minimise(eta, gamma=gamma, lam=lam).unwrap(), eta, gamma=gamma, lam=lam)


@settings(max_examples=50)
@given(seed=st.integers(0, 10_000), classes=st.integers(1, 30), gamma=GAMMAS, lam=LAMS)
def test_the_decision_is_kept(seed, classes, gamma, lam):
    eta = np.random.default_rng(seed).dirichlet(np.ones(classes) * 0.3, 20)
    assert keeps_decision(eta, gamma=gamma, lam=lam).all()


@pytest.mark.parametrize("gamma", [0.0, 0.5, 3.0, 50.0])
@pytest.mark.parametrize("lam", [0.0, 1.0, 1e6])
def test_ties_vertices_and_near_ties_keep_theirs(gamma, lam):
    hair = np.spacing(0.4)
    rows = [[0.4, 0.4, 0.2, 0.0], [0.25] * 4, [1.0, 0, 0, 0], [0.4 + hair, 0.4, 0.2, 0.0], [0.4 + 1e-9, 0.4, 0.2, 0.0]]
    rows = np.array(rows) / np.sum(rows, 1, keepdims=True)
    assert keeps_decision(rows, gamma=gamma, lam=lam).all()


@pytest.mark.parametrize("wrong", [[0.3, 0.4, 0.3], [0.4, 0.4, 0.2], [0.4, 0.2, 0.4]])
def test_a_solver_that_changed_the_decision_would_be_caught(monkeypatch, wrong):
    class Wrong:
        def unwrap(self):
            return np.array(wrong)

    monkeypatch.setattr(consistency, "minimise", lambda *_, **__: Wrong())
    assert not keeps_decision([0.5, 0.3, 0.2], gamma=2.0, lam=1.0)


@given(u=st.floats(1e-12, 1 - 1e-12), gamma=GAMMAS, lam=LAMS)
def test_differences_decrease(u, gamma, lam):
    found = decreasing_differences(u, gamma=gamma, lam=lam)
    assert found < 0 or (lam == 0 and (1 - u) ** gamma < 1e-300)
    h = 1e-6 * min(u, 1 - u)

    def mixed(at):  # d g / d a, g(u; a) = a phi(u) + lam u^2 - 2 lam a u
        return phi(at, gamma) - 2 * lam * at

    if 1e-3 < u < 1 - 1e-3:
        assert (mixed(u + h) - mixed(u - h)) / (2 * h) == pytest.approx(found, rel=1e-4, abs=1e-6 * (1 + lam))


@settings(max_examples=40)
@given(seed=st.integers(0, 10_000), classes=st.integers(2, 12), gamma=GAMMAS, lam=LAMS)
def test_every_rival_is_averaged_with(seed, classes, gamma, lam):
    """The runner-up is the cheapest, and the gap the difference of two minima."""
    eta = np.random.default_rng(seed).dirichlet(np.ones(classes))
    top = eta.argmax()
    others = []
    for j in set(range(classes)) - {top}:
        averaged = eta.copy()
        averaged[[top, j]] = (eta[top] + eta[j]) / 2
        others.append(averaged)
        q = minimise(averaged, gamma=gamma, lam=lam).unwrap()
        assert q[top] == pytest.approx(q[j], rel=1e-12, abs=0)
    risks = least_risk(np.array(others), gamma, lam)
    gap = decision_gap(eta, gamma=gamma, lam=lam)
    assert gap > 0
    assert gap == pytest.approx(risks.min() - least_risk(eta, gamma, lam), rel=1e-9, abs=1e-14 * (1 + 4 * lam))


@pytest.mark.parametrize("seed", range(5))
def test_against_constrained_optimisation(seed):
    generator = np.random.default_rng(seed)
    classes, gamma, lam = generator.integers(2, 6), generator.choice([0.0, 0.5, 2.0, 4.0]), generator.choice([0.0, 1.0])
    eta = generator.dirichlet(np.ones(classes))
    top = eta.argmax()

    def risk(q):
        return np.sum(eta * -((1 - q) ** gamma) * np.log(q)) + lam * np.sum((q - eta) ** 2 + eta * (1 - eta))

    def solved(constraints, start):
        total = {"type": "eq", "fun": lambda q: q.sum() - 1}
        bounds = [(1e-9, 1 - 1e-9)] * classes
        options = {"ftol": 1e-15, "maxiter": 1000}
        with np.errstate(all="ignore"):
            return scipy_minimize(risk, start, bounds=bounds, constraints=[total, *constraints], options=options).fun

    start = np.full(classes, 1 / classes)
    wrong = [solved([{"type": "ineq", "fun": lambda q, j=j: q[j] - q[top]}], start) for j in range(classes) if j != top]
    assert decision_gap(eta, gamma=gamma, lam=lam) == pytest.approx(min(wrong) - solved([], start), abs=2e-7)


def in_fifty_digits(eta, gamma, lam):
    """V(averaged) - V(eta) by Newton's method in mpmath, from the float64 solution."""
    with mp.workdps(60):
        gamma, lam = mp.mpf(gamma), mp.mpf(lam)

        def risk(e):
            total = mp.fsum(e)
            e = [v / total for v in e]
            start = minimise([float(v) for v in e], gamma=float(gamma), lam=float(lam))

            def stationary(*x):
                q, nu = x[:-1], x[-1]
                slope = [gamma * (1 - u) ** (gamma - 1) * mp.log(u) - (1 - u) ** gamma / u for u in q]
                each = [a * s + 2 * lam * (u - a) - nu for a, s, u in zip(e, slope, q, strict=True)]
                return [*each, mp.fsum(q) - 1]

            *q, _ = mp.findroot(stationary, [*map(float, start.q), float(start.multiplier)], tol=1e-100, maxsteps=30)
            focal = mp.fsum(-a * (1 - u) ** gamma * mp.log(u) for a, u in zip(e, q, strict=True))
            return focal + lam * (mp.fsum(u * u - 2 * a * u for a, u in zip(e, q, strict=True)) + 1)

        e = sorted(map(mp.mpf, map(float, eta)), reverse=True)
        return float(risk([(e[0] + e[1]) / 2] * 2 + e[2:]) - risk(e))


@pytest.mark.parametrize("half", [1e-2, 1e-5, 1e-8, 1e-11, 1e-13])
@pytest.mark.parametrize(("gamma", "lam"), [(0.5, 0.0), (2.0, 1.0), (5.0, 100.0)])
def test_small_gaps_keep_their_digits(half, gamma, lam):
    eta = np.array([0.4 + half, 0.4 - half, 0.2])
    found = decision_gap(eta, gamma=gamma, lam=lam)
    assert found == pytest.approx(in_fifty_digits(eta, gamma, lam), rel=1e-12 + 1e-14 / half, abs=0)


def test_the_figures_of_the_document():
    """docs/math/decision_gap.md."""
    for half in (1e-6, 1e-7, 1e-8):
        found = decision_gap([0.4 + half, 0.4 - half, 0.2], gamma=2.0, lam=1.0) / half**2
        assert found == pytest.approx(2.7285468, abs=2e-7)
    eta = [0.4 + 1e-14, 0.4 - 1e-14, 0.2]
    exact = in_fifty_digits(eta, 2.0, 1.0)
    assert round(exact / 1e-28, 3) == 2.724
    assert decision_gap(eta, gamma=2.0, lam=1.0) == pytest.approx(exact, rel=0.08, abs=0)


def test_a_tie_has_no_gap_and_one_class_no_wrong_decision():
    assert decision_gap([1.0], gamma=2.0, lam=1.0) == np.inf
    assert keeps_decision([1.0], gamma=2.0, lam=1.0)
    rows = [[0.4, 0.4, 0.2], [1 / 3, 1 / 3, 1 / 3], [0.2, 0.4, 0.4]]
    np.testing.assert_array_equal(decision_gap(rows, gamma=2.0, lam=1.0), 0.0)


@pytest.mark.parametrize("gamma", [0.0, 0.5, 2.0])
@pytest.mark.parametrize("lam", [0.0, 1.0, 100.0])
def test_the_gap_of_a_vertex_is_the_risk_of_the_coin(gamma, lam):
    found = decision_gap([1.0, 0.0, 0.0], gamma=gamma, lam=lam)
    assert found == pytest.approx(
        conditional_risk([0.5, 0.5, 0.0], [1.0, 0.0, 0.0], gamma=gamma, lam=lam), rel=1e-14, abs=0
    )


@pytest.mark.parametrize("smallest", [1e-150, 1e-200, 1e-310])
@pytest.mark.parametrize(("gamma", "lam"), [(0.0, 0.0), (2.0, 0.0), (2.0, 1.0)])
def test_tiny_classes_do_not_matter(smallest, gamma, lam):
    for rest in ([1.0], [0.51, 0.49], [0.9, 0.1]):
        expected = decision_gap([*rest, 0.0], gamma=gamma, lam=lam)
        assert decision_gap([*rest, smallest], gamma=gamma, lam=lam) == pytest.approx(expected, rel=1e-12, abs=0)
