"""A weight is a number of copies; a position of dense logits is a row."""

import numpy as np
import pytest
import torch
from sklearn.base import clone

from focalcal.posthoc import CALIBRATORS, HistogramBinning, PosteriorRecovery, TemperatureScaling, split_half

GENERATOR = np.random.default_rng(0)
LABELS = GENERATOR.integers(0, 3, 240)
LOGITS = 2 * GENERATOR.normal(size=(240, 3)) + 2 * np.eye(3)[LABELS]
COPIES = GENERATOR.integers(0, 4, 240)  # none of some rows
EVERY = [kind() for kind in CALIBRATORS.values()]
EVERY += [PosteriorRecovery(2.0, 0.5, fit_temperature=True), HistogramBinning(5, strategy="equal_mass")]


@pytest.mark.parametrize("calibrator", EVERY, ids=repr)
def test_a_weight_is_a_number_of_copies(calibrator):
    repeated = clone(calibrator).fit(np.repeat(LOGITS, COPIES, 0), np.repeat(LABELS, COPIES))
    weighted = clone(calibrator).fit(LOGITS, LABELS, COPIES)
    np.testing.assert_allclose(weighted.predict_proba(LOGITS), repeated.predict_proba(LOGITS), rtol=1e-5, atol=1e-7)
    if not isinstance(calibrator, PosteriorRecovery) or calibrator.fit_temperature:
        assert (
            np.abs(calibrator.fit(LOGITS, LABELS).predict_proba(LOGITS) - weighted.predict_proba(LOGITS)).max() > 1e-4
        )
    assert weighted.score(LOGITS, LABELS, COPIES) == pytest.approx(
        repeated.score(np.repeat(LOGITS, COPIES, 0), np.repeat(LABELS, COPIES))
    )


def test_equal_masses_of_fractional_weights():
    """A tenth of every weight leaves bins of the same rows, but for the interpolation between neighbours."""
    whole = HistogramBinning(4, strategy="equal_mass").fit(LOGITS, LABELS, COPIES)
    tenth = HistogramBinning(4, strategy="equal_mass").fit(LOGITS, LABELS, COPIES / 10)
    np.testing.assert_allclose(tenth.edges_, whole.edges_, atol=0.02)


@pytest.mark.parametrize("calibrator", EVERY, ids=repr)
@pytest.mark.parametrize("positions", [(8,), (2, 4)])
def test_a_position_of_dense_logits_is_a_row(calibrator, positions):
    dense = np.moveaxis(LOGITS.reshape(30, *positions, 3), -1, 1)
    labels, weights = LABELS.reshape(30, *positions), COPIES.reshape(30, *positions)
    rows = clone(calibrator).fit(LOGITS, LABELS, COPIES)
    fitted = clone(calibrator).fit(dense, labels, weights)
    probs = fitted.predict_proba(dense)
    assert probs.shape == dense.shape
    assert fitted.predict(dense).shape == labels.shape
    np.testing.assert_allclose(np.moveaxis(probs, 1, -1).reshape(-1, 3), rows.predict_proba(LOGITS))
    assert fitted.predict(dense).ravel().tolist() == rows.predict(LOGITS).tolist()
    assert fitted.score(dense, labels) == pytest.approx(rows.score(LOGITS, LABELS))
    module = fitted.to_module()
    np.testing.assert_allclose(module(torch.from_numpy(dense)).numpy(), probs, atol=1e-12)


@pytest.mark.parametrize("calibrator", EVERY, ids=repr)
def test_ignored_positions_are_left_out(calibrator):
    dense, labels = torch.from_numpy(np.moveaxis(LOGITS.reshape(30, 8, 3), -1, 1)), torch.from_numpy(LABELS.copy())
    labels[::5] = 255
    kept = (labels != 255).numpy()
    fitted = clone(calibrator).fit(dense, labels.view(30, 8), ignore_index=255)
    expected = clone(calibrator).fit(LOGITS[kept], LABELS[kept])
    np.testing.assert_allclose(fitted.predict_proba(LOGITS), expected.predict_proba(LOGITS))
    accuracy = fitted.score(dense, labels.view(30, 8), ignore_index=255)
    assert accuracy == pytest.approx(expected.score(LOGITS[kept], LABELS[kept]))
    with pytest.raises(ValueError, match="labels must be from 0 to 2, got 255"):
        clone(calibrator).fit(dense, labels.view(30, 8))


def test_dense_probabilities_of_one_column():
    column = 1 / (1 + np.exp(-LOGITS[:, :1].reshape(30, 1, 8)))
    words = np.where(LABELS == 0, "road", "other").reshape(30, 8)
    fitted = TemperatureScaling().fit(probs=column, labels=words, positive="road")
    assert fitted.predict_proba(probs=column).shape == (30, 2, 8)
    assert set(fitted.predict(probs=column).flat) == {"road", "other"}


def test_halves_of_dense_rows_are_refused():
    """Positions of one example are no independent rows."""
    with pytest.raises(ValueError, match=r"logits must be \(N, K\), one row per example"):
        split_half(LOGITS.reshape(80, 3, 3), LABELS.reshape(80, 3), TemperatureScaling())
