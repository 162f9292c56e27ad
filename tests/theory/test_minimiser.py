"""The population minimiser: certified by its figures, by SLSQP, by 50-digit arithmetic and by what it must satisfy."""

import mpmath
import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from paper.theory.cross_check import slsqp, stationarity_of
from references.exact_minimiser import exact_minimiser

from focalcal.theory.minimiser import SolverError, Status, l1_anchor_minimisers, minimise, minimise_l1
from focalcal.theory.potential import conditional_risk, phi_curvature, phi_slope

POSTERIORS = {
    "moderate": [0.7, 0.2, 0.1],
    "two classes": [0.9, 0.1],
    "peaked": [0.9999999, 6e-8, 4e-8],
    "almost a vertex": [1.0, 1e-300],
    "wide": [0.6, 0.4 - 1e-9, 1e-9, 1e-200],
}


def weights(classes: st.SearchStrategy):
    """Unnormalised posteriors over up to fifteen orders of magnitude, some entries zero."""
    entry = st.one_of(st.just(0.0), st.floats(-15, 0).map(lambda power: 10.0**power))
    return classes.flatmap(lambda k: arrays(np.float64, k, elements=entry)).filter(lambda w: w.sum() > 0)


@pytest.mark.parametrize(
    ("name", "gamma", "lam"),
    [*(("moderate", *pair) for pair in ((1.0, 0.0), (0.3, 1.0))), *((name, 20.0, 32768.0) for name in POSTERIORS)],
)
def test_fifty_digits_agree(name, gamma, lam):
    eta = np.array(POSTERIORS[name])
    solution = minimise(eta, gamma=gamma, lam=lam)
    exact, multiplier = exact_minimiser(eta, gamma, lam)
    assert solution.status == Status.CONVERGED
    largest = max(abs(d) for d in exact)
    # Each displacement to nearly all digits, relative to itself or to the rounding of the input.
    for found, true, e in zip(solution.displacement, exact, eta, strict=True):
        assert abs(found - true) <= 1e-10 * abs(true) + 1e-14 * min(largest, mpmath.mpf(float(e)))
    assert solution.multiplier == pytest.approx(float(multiplier), rel=1e-11, abs=0)


@pytest.mark.parametrize("classes", [2, 5, 10])
def test_slsqp_agrees_from_every_start(classes):
    rng = np.random.default_rng(classes)
    for eta in rng.dirichlet(np.full(classes, 2.0), size=3):
        for gamma in (0.5, 2.0, 5.0):
            for lam in (0.0, 1.0, 64.0):
                q = slsqp(eta, gamma=gamma, lam=lam)
                found = minimise(eta, gamma=gamma, lam=lam)
                np.testing.assert_allclose(found.q, q, atol=2e-6)
                ours, theirs = (conditional_risk(p, eta, gamma=gamma, lam=lam) for p in (found.q, q / q.sum()))
                assert ours <= theirs + 1e-14 * (1 + lam)
                assert found.stationarity < stationarity_of(q, eta, gamma=gamma, lam=lam)


def test_slsqp_on_all_coordinates_leaves_absent_classes_empty():
    eta = np.array([0.6, 0.3, 0.1, 0.0, 0.0])
    for gamma, lam in ((2.0, 0.5), (3.0, 1.0), (1.0, 10.0)):
        found = minimise(eta, gamma=gamma, lam=lam)
        assert (found.q[3:] == 0).all()
        np.testing.assert_allclose(found.q, slsqp(eta, gamma=gamma, lam=lam), atol=1e-6)
        np.testing.assert_allclose(found.q[:3], minimise(eta[:3], gamma=gamma, lam=lam).q, rtol=1e-11)
        assert found.multiplier < 0  # the KKT inequality 0 - nu >= 0 where eta_k = 0


@given(weights(st.integers(1, 30)), st.floats(0, 30), st.one_of(st.just(0.0), st.floats(-6, 9).map(lambda p: 10.0**p)))
@example(np.array([0.8, 0.1998, 1e-4, 1e-4]), 19.0, 0.1)
@example(np.array([0.99, 0.008989, 1e-3, 1e-6, 1e-5]), 15.0, 0.01)
def test_figures_as_anybody_would_compute_them(weight, gamma, lam):
    """Not trusting the solver's own figures: both are computed again, from what is returned, in 60 digits."""
    eta = weight / weight.sum()
    solution = minimise(eta, gamma=gamma, lam=lam)
    assert solution.converged
    assert (solution.q[eta == 0] == 0).all()
    assert abs(solution.q.sum() - 1) < 1e-12
    support = np.flatnonzero(eta > 0)
    if len(support) == 1:
        assert solution.q[support] == 1
        return
    with mpmath.workdps(60):
        d = [mpmath.mpf(float(v)) for v in solution.displacement]
        e = [mpmath.mpf(float(v)) for v in eta / eta.sum()]
        top = int(np.argmax(eta))
        others = mpmath.fsum(e[k] + d[k] for k in support if k != top)
        nu = mpmath.mpf(float(solution.multiplier))
        worst = 0
        for k in support:
            q = 1 - others if k == top else e[k] + d[k]
            not_q = others if k == top else 1 - q
            slope = -(not_q**gamma) * (-gamma * (mpmath.log1p(-others) if k == top else mpmath.log(q)) / not_q + 1 / q)
            sides = (e[k] * slope, 2 * mpmath.mpf(lam) * d[k], -nu)
            worst = max(worst, abs(sum(sides)) / sum(map(abs, sides)))
        assert worst <= 1e-12
        total = mpmath.fsum(map(abs, d))
        assert total == 0 or abs(mpmath.fsum(d)) / total <= 1e-12


@given(weights(st.integers(2, 12)), st.floats(0, 8), st.floats(0, 50), st.randoms(use_true_random=False))
def test_relabelling_the_classes_relabels_the_minimiser(weight, gamma, lam, random):
    eta = weight / weight.sum()
    order = list(range(len(eta)))
    random.shuffle(order)
    here, there = (minimise(e, gamma=gamma, lam=lam) for e in (eta, eta[order]))
    np.testing.assert_allclose(here.q[order], there.q, rtol=1e-11, atol=1e-300)


@given(weights(st.integers(2, 8)), st.floats(0, 6), st.floats(0, 20), st.integers(0, 2**31))
def test_nothing_nearby_or_far_away_is_lower(weight, gamma, lam, seed):
    eta = weight / weight.sum()
    q = minimise(eta, gamma=gamma, lam=lam).q
    q = q / q.sum()
    least = conditional_risk(q, eta, gamma=gamma, lam=lam)
    rng = np.random.default_rng(seed)
    for share in (1.0, 0.1, 1e-3):
        others = (1 - share) * q + share * rng.dirichlet(np.ones(len(eta)), size=8)
        assert (conditional_risk(others, eta, gamma=gamma, lam=lam) >= least - 1e-14 * (1 + lam)).all()


@given(st.floats(0, 12), st.floats(1e-6, 1 - 1e-6))
def test_the_risk_is_strictly_convex(gamma, u):
    """docs/math/unique_minimiser.md: the bound by which phi'' is positive for gamma < 1 as well."""
    curvature = phi_curvature(u, gamma)
    assert curvature > 0
    bound = (1 - u) ** (gamma - 2) * (gamma * (1 + gamma) * (1 - u) / u + (1 - u) ** 2 / u**2)
    if 0 < gamma < 1:
        assert curvature >= bound * (1 - 1e-9)


@given(weights(st.integers(1, 20)), st.floats(0, 1e6))
def test_cross_entropy_and_brier_are_proper(weight, lam):
    eta = weight / weight.sum()
    solution = minimise(eta, gamma=0.0, lam=lam)
    np.testing.assert_allclose(solution.displacement, 0.0, atol=1e-15)
    assert solution.multiplier == pytest.approx(-1.0, abs=1e-12)


@pytest.mark.parametrize("eta", [[1.0], [1.0, 0.0, 0.0], [0.0, 1.0], [[1.0], [1.0]]])
def test_a_vertex_stays_where_it_is(eta):
    for gamma in (0.0, 0.5, 3.0):
        solution = minimise(eta, gamma=gamma, lam=2.0)
        np.testing.assert_array_equal(solution.q, eta)
        np.testing.assert_array_equal(solution.multiplier, phi_slope(1.0, gamma))
        assert np.all(solution.status == Status.CONVERGED)


def test_any_gamma_and_lam_on_hard_posteriors():
    gamma = np.array([0, 1e-12, 1e-3, 0.1, 0.5, 0.999, 1, 1.5, 2, 3, 5, 10, 50, 1000])[:, None]
    lam = np.array([0, 5e-324, 1e-300, 1e-6, 0.1, 1, 10, 1e6, 1e10, 1e20, 1e100, 1e300, 1.7e308])
    hard = [
        [1.0, 5e-324, 1e-320],
        [1.0, 1e-300],
        [0.5, 0.5 - 1e-9, 1e-9],
        [1 - 1e-12, 5e-13, 5e-13],
        [0.6, 0.3, 0.1, 0.0],
    ]
    for weight in hard:
        solution = minimise(np.array(weight) / np.sum(weight), gamma=gamma, lam=lam)
        assert solution.converged.all(), (weight, np.argwhere(~solution.converged))
        assert solution.feasibility.max() < 1e-15


@pytest.mark.parametrize("entry", [5e-324, 1e-322, 1e-310, 1e-300])
def test_a_subnormal_entry_grows_to_what_it_must_be(entry):
    """For eta = (1, e), gamma = 2 and lam = 0 stationarity is 3 (1 - q_1)^2 = e / q_2, so q_2 = (e / 3)^(1/3)."""
    solution = minimise([1.0, entry], gamma=2.0, lam=0.0)
    assert solution.q[1] == pytest.approx(np.cbrt(entry * 1e300 / 3) * 1e-100, rel=1e-10, abs=0)
    assert solution.status == Status.CONVERGED


@pytest.mark.parametrize("solve", [minimise, minimise_l1])
def test_ordinary_posteriors_at_any_gamma(solve):
    """Spread over one, four or twelve orders of magnitude; none may stall, nor take many steps."""
    rng = np.random.default_rng(5)
    for classes in (2, 3, 4, 10, 30):
        weight = 10.0 ** -rng.uniform(0, rng.choice([1, 4, 12], size=(500, 1)), size=(500, classes))
        gamma, lam = 10 ** rng.uniform(0, 3, 500), 10 ** rng.uniform(-4, 5, 500)
        solution = solve(weight / weight.sum(1, keepdims=True), gamma=gamma, lam=lam)
        assert solution.converged.all()
        assert solution.steps.max() < 100


def test_what_did_not_converge_says_so():
    solution = minimise([0.7, 0.2, 0.1], gamma=2.0, lam=1.0, max_steps=1)
    assert not solution.converged
    assert "raise max_steps" in solution.status
    assert "not converged" in repr(solution)
    assert "converged: 3 of 3" in repr(minimise(np.full((3, 2), 0.5), gamma=2.0, lam=1.0))
    assert solution.stationarity > 1e-12
    with pytest.raises(SolverError, match="raise max_steps"):
        solution.unwrap()
    hopeless = minimise([0.7, 0.2, 0.1], gamma=1e12, lam=0.0)
    assert hopeless.status == Status.NO_DIGITS
    batch = minimise([[0.7, 0.3], [0.5, 0.5]], gamma=2.0, lam=1.0, max_steps=1)
    with pytest.raises(SolverError, match=r"posterior \(0,\)"):
        batch.unwrap()


@given(weights(st.integers(2, 10)), st.floats(0, 6), st.floats(0, 1e4))
def test_the_absolute_anchor_is_stationary(weight, gamma, lam):
    eta = weight / weight.sum()
    solution = minimise_l1(eta, gamma=gamma, lam=lam)
    assert solution.converged
    support = eta > 0
    if support.sum() > 1 and solution.q.max() < 1 - 1e-6:
        sides = eta[support] * (phi_slope(solution.q[support], gamma) - 2 * lam)
        np.testing.assert_allclose(sides, solution.multiplier, rtol=1e-7)


def test_the_absolute_anchor_goes_to_the_vertex():
    eta = np.array([0.5, 0.3, 0.2])
    lam = 10.0 ** np.arange(0, 7)
    q = minimise_l1(eta, gamma=2.0, lam=lam).q
    assert (np.diff(q[:, 0]) > 0).all()
    np.testing.assert_allclose((1 - q[-1, 0]) * lam[-1], (0.3 / 0.2 + 0.2 / 0.3) / 2, rtol=1e-3)  # eta_k / (2 lam gap)
    quadratic = minimise(eta, gamma=2.0, lam=lam).q
    assert np.abs(quadratic[-1] - eta).max() < 1e-6
    np.testing.assert_array_equal(l1_anchor_minimisers(eta), [True, False, False])
    np.testing.assert_array_equal(l1_anchor_minimisers([0.4, 0.2, 0.4]), [True, False, True])
