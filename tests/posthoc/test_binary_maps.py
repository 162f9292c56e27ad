"""Venn-Abers, centred isotonic and quadratic calibration, each against something independent."""

import numpy as np
import pytest
from golden.inputs import positive_class
from scipy.optimize import minimize
from sklearn.isotonic import IsotonicRegression
from sklearn.linear_model import LogisticRegression

from focalcal.posthoc import CentredIsotonic, QuadraticScaling, VennAbers

SCORES = np.array([0.0, 0.005, 0.1, 0.255, 0.5, 0.777, 0.99, 1.0])


def rows(n=500):
    p, y = positive_class(600)
    return p[:n].round(2).clip(0.01, 0.99), y[:n]


def _with_row(p, y, w, score, label):
    fitted = IsotonicRegression(y_min=0, y_max=1, out_of_bounds="clip")
    fitted.fit(np.append(p, score), np.append(y, label), sample_weight=np.append(w, 1.0))
    return fitted.predict([score])[0]


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("digits", [1, 9])
def test_venn_abers_is_two_isotonic_regressions_with_one_row_more(digits, weighted):
    """By the definition: scikit-learn fits 2 (n + 1) rows for every score, ties and gaps alike."""
    rng = np.random.default_rng(digits)
    p = rng.random(60).round(digits).clip(0.05, 0.95)
    y = (rng.random(60) < p**2).astype(int)
    w = rng.integers(1, 4, 60).astype(float) if weighted else np.ones(60)
    fitted = VennAbers().fit(probs=p, labels=y, sample_weight=w, clip=0.01)
    scores = np.concatenate([p[:20], rng.random(20), [0.001, 0.999]])
    low, high = np.array([[_with_row(p, y, w, s, label) for s in scores] for label in (0, 1)])
    found = fitted.predict_proba(probs=np.stack([1 - scores, scores], 1))[:, 1]
    np.testing.assert_allclose(found, high / (1 - low + high), atol=1e-9)


def test_venn_abers_is_never_certain():
    """Separable rows: isotonic regression says 0 and 1, one row of 41 more or less says 1 / 22 or so."""
    scores = np.linspace(0.01, 0.99, 40)
    fitted = VennAbers().fit(probs=scores, labels=(scores > 0.5).astype(int))
    found = fitted.predict_proba(probs=np.stack([1 - SCORES, SCORES], 1))[:, 1]
    assert 1 / 30 < found.min() <= 1 / 21
    assert 1 - found.max() == pytest.approx(found.min())


def test_centred_isotonic_has_a_point_for_every_step():
    """Scikit-learn's steps, each at the mean of its scores; rising strictly in between."""
    p, y = rows()
    fitted = CentredIsotonic().fit(probs=p, labels=y)
    steps = IsotonicRegression().fit_transform(p, y)
    levels = [level for level in np.unique(steps) if 0 < level < 1]
    points = [p[steps == level].mean() for level in levels]
    probed = np.interp((np.array(points[:-1]) + points[1:]) / 2, points, levels)
    for at, wanted in ((np.array(points), levels), ((np.array(points[:-1]) + points[1:]) / 2, probed)):
        found = fitted.predict_proba(probs=np.stack([1 - at, at], 1))[:, 1]
        np.testing.assert_allclose(found, wanted, atol=1e-9)
    assert len(np.unique(fitted.predict_proba(probs=np.unique(p)))) > 5 * len(levels), "no ties to speak of"


def odds_rows(n=3000, bend=0.3, seed=0):
    rng = np.random.default_rng(seed)
    z = rng.normal(size=n)
    y = (rng.random(n) < 1 / (1 + np.exp(-(0.2 + 1.5 * z + bend * z**2)))).astype(int)
    return np.stack([np.zeros(n), z], 1), y


def test_quadratic_scaling_is_logistic_regression_on_two_powers():
    weak, truth = odds_rows(bend=0.1)
    bent = QuadraticScaling().fit(weak, truth)
    other = LogisticRegression(C=np.inf, tol=1e-10, max_iter=10_000).fit(
        np.stack([weak[:, 1], weak[:, 1] ** 2], 1), truth
    )
    assert (bent.a_[1], bent.b_[1], bent.c_[1]) == pytest.approx((other.intercept_[0], *other.coef_[0]), abs=1e-5)
    assert (bent.a_[0], bent.b_[0], bent.c_[0]) == pytest.approx((-bent.a_[1], bent.b_[1], -bent.c_[1]), abs=1e-9)


@pytest.mark.parametrize("bend", [-1.0, 0.9])
def test_quadratic_scaling_never_falls(bend):
    """Where the best parabola would fall, the best rising one, as a general solver finds it."""
    logits, y = odds_rows(bend=bend)
    z = logits[:, 1]
    fitted = QuadraticScaling().fit(logits, y)
    ladder = np.stack([np.zeros(400), np.linspace(-30, 30, 400)], 1)
    assert (np.diff(fitted.predict_proba(ladder)[:, 1]) >= -1e-12).all()
    free = LogisticRegression(C=np.inf, max_iter=10_000).fit(np.stack([z, z**2], 1), y).coef_[0]
    assert min(free[0] + 2 * free[1] * end for end in (z.min(), z.max())) < 0, "the constraint binds"

    def loss(w):
        margin = w[0] + w[1] * z + w[2] * z**2
        return np.mean(np.logaddexp(0, margin) - y * margin)

    slopes = [{"type": "ineq", "fun": lambda w, end=end: w[1] + 2 * w[2] * end} for end in (z.min(), z.max())]
    solved = minimize(loss, [0.0, 1.0, 0.0], constraints=slopes, method="SLSQP", options={"ftol": 1e-12})
    assert loss((fitted.a_[1], fitted.b_[1], fitted.c_[1])) == pytest.approx(solved.fun, abs=1e-6)
