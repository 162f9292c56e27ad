"""The isotonic reliability curve: by another library, by scikit-learn, and on populations whose answer is known."""

import numpy as np
import pytest
from golden.inputs import positive_class, probabilities
from references.corp import DISTINCT, ROUNDED
from sklearn.isotonic import IsotonicRegression

from focalcal.metrics import brier, corp, multilabel_brier


def rows(rounded=False):
    p, y = positive_class(1000)
    return (p.round(1).clip(0.05, 0.95) if rounded else p.clip(0.001, 0.999)), y


def calibrated(n, seed, power=1.0):
    rng = np.random.default_rng(seed)
    p = rng.random(n)
    return p, rng.random(n) < p**power


@pytest.mark.parametrize(("rounded", "wanted"), [(False, DISTINCT), (True, ROUNDED)])
def test_the_parts_are_those_of_model_diagnostics(rounded, wanted):
    p, y = rows(rounded)
    found = corp(confidence=p, correct=y, resamples=20)
    for name, values in wanted.items():
        parts = getattr(found, name)
        assert (parts.score, parts.msc, parts.dsc, parts.unc) == pytest.approx(values, abs=1e-12)
        assert parts.score == pytest.approx(parts.msc - parts.dsc + parts.unc, abs=1e-14)


def test_the_curve_is_scikit_learns():
    p, y = rows()
    found = corp(confidence=p, correct=y, resamples=20)
    np.testing.assert_allclose(found.curve(p), IsotonicRegression().fit(p, y).predict(p), atol=1e-12)
    assert (np.diff(found.accuracy) > 0).all()
    assert found.count.sum() == 1000
    assert found.count @ found.accuracy == pytest.approx(y.sum())
    assert found.count @ found.confidence == pytest.approx(p.sum())


@pytest.mark.parametrize("rounded", [False, True])
def test_a_calibrated_curve_is_inside_its_bands(rounded):
    """About as often as the level says, at one point, over samples."""
    inside = []
    for seed in range(40):
        p, y = calibrated(400, seed)
        p = p.round(1).clip(0.05, 0.95) if rounded else p
        y = np.random.default_rng(1000 + seed).random(400) < p
        found = corp(confidence=p, correct=y, resamples=100, level=0.9)
        at = found.curve(found.points)
        inside.append(np.mean((at >= found.low - 1e-12) & (at <= found.high + 1e-12)))
    assert 0.85 < np.mean(inside) < 0.96


def test_msc_of_calibrated_rows_is_what_chance_gives_and_of_others_is_the_distance():
    fair = [corp(confidence=p, correct=y, resamples=50) for p, y in (calibrated(500, s) for s in range(30))]
    for name in ("brier", "nll"):
        values = [getattr(found, name) for found in fair]
        assert np.mean([v.msc for v in values]) == pytest.approx(np.mean([v.chance for v in values]), rel=0.12)
    p, y = calibrated(200_000, 0, power=2.0)  # E[Y | p] = p^2: (p - p^2)^2 is 1/30 on average, the divergence known too
    found = corp(confidence=p, correct=y, resamples=20)
    assert found.brier.msc == pytest.approx(1 / 30, abs=1e-3)
    t = (np.arange(100_000) + 0.5) / 100_000
    divergence = t**2 * np.log(t**2 / t) + (1 - t**2) * np.log((1 - t**2) / (1 - t))
    assert found.nll.msc == pytest.approx(divergence.mean(), abs=3e-3)
    assert found.brier.chance < 1e-3


def test_events_of_several_classes():
    probs, labels = probabilities(800, 4)
    top = corp(probs, labels, resamples=20)
    again = corp(confidence=probs.max(1), correct=probs.argmax(1) == labels, resamples=20)
    assert top.as_dict() == again.as_dict()
    each = [corp(probs, labels, class_index=k, resamples=20).brier.score for k in range(4)]
    assert sum(each) == pytest.approx(brier(probs, labels))
    single = multilabel_brier(probs[:, 1:2], (labels == 1)[:, None].astype(int))
    assert each[1] == pytest.approx(single)


def test_edges():
    """Certain and wrong is an infinite NLL and MSC; one outcome, one probability and one row are no errors."""
    found = corp(confidence=[0.0, 1.0, 1.0, 0.5], correct=[0, 1, 0, 1], resamples=20)
    assert found.nll.score == found.nll.msc == np.inf
    assert np.isfinite(found.brier.msc)
    alike = corp(confidence=[0.7] * 10, correct=[1] * 10, resamples=20)
    assert alike.accuracy.tolist() == [1.0]
    assert alike.brier.unc == alike.brier.dsc == 0
    assert corp(confidence=[0.7], correct=[1], resamples=20).count.tolist() == [1]
    with pytest.raises(ValueError, match="level must lie between 0 and 1"):
        corp(confidence=[0.7], correct=[1], level=95)
    with pytest.raises(ValueError, match="resamples must"):
        corp(confidence=[0.7], correct=[1], resamples=1)
