"""Every row is judged by what was fitted on the other folds."""

import numpy as np
import pytest

from focalcal.posthoc import HistogramBinning, TemperatureScaling
from focalcal.posthoc.cross_fit import cross_fit, cross_fitted_probs, row_folds

GENERATOR = np.random.default_rng(0)
LABELS = GENERATOR.integers(0, 3, 203)
LOGITS = GENERATOR.normal(size=(203, 3)) + np.eye(3)[LABELS]


@pytest.mark.parametrize("seed", [None, 4])
@pytest.mark.parametrize(("rows", "folds"), [(203, 5), (10, 10), (7, 2)])
def test_folds_are_disjoint_and_nearly_equal(rows, folds, seed):
    parts = row_folds(rows, folds, seed=seed)
    assert sorted(np.concatenate(parts).tolist()) == list(range(rows))
    sizes = [len(part) for part in parts]
    assert sizes == sorted(sizes, reverse=True)
    assert max(sizes) - min(sizes) <= 1
    assert (np.diff(np.concatenate(parts)) == 1).all() == (seed is None)


def test_nothing_is_fitted_on_the_rows_that_it_judges():
    for fold, others in cross_fit(203, lambda rows: rows, seed=0):
        assert not others[fold].any()
        assert others.sum() == 203 - len(fold)


@pytest.mark.parametrize("kind", ["logits", "probs"])
@pytest.mark.parametrize("calibrator", [TemperatureScaling(), HistogramBinning(5)], ids=repr)
def test_probabilities_are_those_of_clones_fitted_by_hand(calibrator, kind):
    scores = LOGITS if kind == "logits" else np.exp(LOGITS) / np.exp(LOGITS).sum(1, keepdims=True)
    found = cross_fitted_probs(calibrator, scores, LABELS, kind)
    assert not hasattr(calibrator, "n_features_in_")
    for fold in np.array_split(np.arange(203), 5):
        others = np.setdiff1d(np.arange(203), fold)
        by_hand = type(calibrator)(**calibrator.get_params()).fit(labels=LABELS[others], **{kind: scores[others]})
        np.testing.assert_allclose(found[fold], by_hand.predict_proba(**{kind: scores[fold]}))
