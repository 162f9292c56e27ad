"""Wrong input to any calibrator raises, and says what to do."""

import numpy as np
import pytest
import scipy.sparse
import torch
from sklearn.exceptions import NotFittedError

from focalcal.posthoc import (
    CALIBRATORS,
    HistogramBinning,
    MatrixScaling,
    TemperatureScaling,
    VectorScaling,
)

Y = np.arange(12) % 3
Z = np.random.default_rng(0).normal(size=(12, 3)) + np.eye(3)[Y]
EVERY = sorted(CALIBRATORS)


def with_entry(value, row=5):
    logits = Z.copy()
    logits[row, 1] = value
    return logits


@pytest.mark.parametrize(
    ("logits", "labels", "error", "message"),
    [
        (with_entry(np.nan), Y, ValueError, "logits must be finite, got nan in row 5"),
        (with_entry(np.inf), Y, ValueError, "logits must be finite, got inf in row 5"),
        (
            with_entry(-np.inf, row=4),
            Y,
            ValueError,
            "labels must be possible, got class 1 in row 4, whose logit is -inf",
        ),
        (np.full_like(Z, -np.inf), Y, ValueError, "logits must leave a class possible, got only -inf in row 0"),
        (Z, np.where(Y == 2, 3, Y), ValueError, "labels must be from 0 to 2, got 3 at flat position 2"),
        (Z, Y - 1, ValueError, "got -1 at flat position 0"),
        (Z, Y[:-1], ValueError, r"labels must have shape \(12,\)"),
        (Z, np.zeros(12, dtype=int), ValueError, "at least two classes, got one class only, 0, in 12 rows"),
        (Z, Y + 0.5, ValueError, "labels must be whole numbers, .* got 0.5 at flat position 0"),
        (Z, Y > 0, TypeError, "labels must be integers or names"),
        (Z, None, ValueError, "labels must be given, got None"),
        (Z, list("abababababab"), ValueError, "classes must be 3 different names"),
        (Z[:0], Y[:0], ValueError, r"logits must hold at least one row, got shape \(0, 3\)"),
        (Z[:, :0], Y * 0, ValueError, "got 0 feature.*minimum of 2 is required.*stack"),
        (Z[:, 0], Y, ValueError, "labels must be from 0 to 1, got 2 at flat position 2"),
        (np.stack([Z, Z], 2), Y, ValueError, r"labels must have shape \(12, 2\) for logits of shape \(12, 3, 2\)"),
        (3.0, Y, ValueError, r"logits must be \(N, K\)"),
        (Z.astype(int), Y, TypeError, "logits must be floating point, got int64"),
        (Z.astype(complex), Y, ValueError, "Complex data not supported"),
        (np.array([{}] * 12), Y, TypeError, "logits must be an array of numbers"),
        (Z.astype(str), Y, TypeError, "logits must be an array of numbers"),
        (scipy.sparse.csr_matrix(Z), Y, TypeError, "logits must be dense, got a sparse"),
        (None, Y, TypeError, "logits must be an array of numbers"),
    ],
)
def test_fit_refuses(logits, labels, error, message):
    calibrator = TemperatureScaling()
    with pytest.raises(error, match=message):
        calibrator.fit(logits, labels)
    assert not hasattr(calibrator, "n_features_in_")


@pytest.mark.parametrize("name", EVERY)
def test_every_calibrator_checks_what_it_is_fitted_on(name):
    """Values, labels, shapes and types, one rule of each."""
    calibrator = CALIBRATORS[name]()
    with pytest.raises(ValueError, match="logits must be finite, got nan in row 5"):
        calibrator.fit(with_entry(np.nan), Y)
    with pytest.raises(ValueError, match="labels must be from 0 to 2, got -1 at flat position 0"):
        calibrator.fit(Z, Y - 1)
    with pytest.raises(ValueError, match=r"labels must have shape \(12,\)"):
        calibrator.fit(Z, Y[:-1])
    with pytest.raises(TypeError, match=r"logits must be floating point, got int64"):
        calibrator.fit(Z.astype(int), Y)
    assert not hasattr(calibrator, "n_features_in_")


@pytest.mark.parametrize("name", EVERY)
@pytest.mark.parametrize("method", ["predict_proba", "predict"])
def test_prediction_refuses(name, method):
    predict = getattr(CALIBRATORS[name]().fit(Z, Y), method)
    with pytest.raises(ValueError, match=f"X has 2 features, but {CALIBRATORS[name].__name__} is expecting 3"):
        predict(Z[:, :2])
    with pytest.raises(ValueError, match="got nan in row 5"):
        predict(with_entry(np.nan))
    with pytest.raises(ValueError, match="at least one row"):
        predict(Z[:0])
    with pytest.raises(ValueError, match="Reshape your data"):
        predict(Z[0])
    with pytest.raises(TypeError, match="floating point"):
        predict(Z.astype(int))


@pytest.mark.parametrize("name", [n for n in EVERY if n != "recovery"])
@pytest.mark.parametrize("method", ["predict_proba", "predict"])
def test_a_calibrator_must_be_fitted(name, method):
    with pytest.raises(NotFittedError, match=r"is not fitted yet; call fit\(logits, labels\) on held-out data first"):
        getattr(CALIBRATORS[name](), method)(Z)


@pytest.mark.parametrize(
    ("calibrator", "error", "message"),
    [
        (HistogramBinning(bins=0), ValueError, "bins must be a whole number >= 1 and <= 1000000, got 0"),
        (HistogramBinning(bins=2.5), ValueError, "bins must be a whole number >= 1 and <= 1000000, got 2.5"),
        (HistogramBinning(bins=True), ValueError, "bins must be a whole number"),
        (HistogramBinning(strategy="width"), ValueError, "strategy must be one of 'equal_width', 'equal_mass'"),
        (VectorScaling(spread_l2=-1), ValueError, "spread_l2 must be finite and >= 0, got -1"),
        (VectorScaling(bias_l2=float("nan")), ValueError, "bias_l2 must be finite"),
        (VectorScaling(max_iter=0), ValueError, "max_iter must be a whole number >= 1"),
        (MatrixScaling(off_diagonal_l2="1"), TypeError, "off_diagonal_l2 must be a number"),
        (MatrixScaling(tol=-1), ValueError, "tol must be finite and >= 0"),
    ],
)
def test_arguments_are_checked_at_fit(calibrator, error, message):
    with pytest.raises(error, match=message):
        calibrator.fit(Z, Y)


@pytest.mark.parametrize(
    ("weights", "message"),
    [
        (np.ones(11), r"sample_weight must have the labels' shape \(12,\), got \(11,\)"),
        (np.where(Y == 1, -1.0, 1.0), "sample_weight must be finite and >= 0, got -1.0 at flat position 1"),
        (np.where(Y == 2, np.nan, 1.0), "sample_weight must be finite and >= 0, got nan at flat position 2"),
        (np.zeros(12), "at least one row to fit on, got a weight of zero or ignore_index in all"),
        (Y == 2, "labels must hold at least two classes, got one class only, 2, in 4 rows"),
    ],
)
def test_weights_are_checked(weights, message):
    with pytest.raises(ValueError, match=message):
        TemperatureScaling().fit(Z, Y, weights)


def test_labels_of_any_integer_type():
    for dtype in (torch.uint8, torch.int8, torch.int16, torch.int32):
        TemperatureScaling().fit(torch.from_numpy(Z), torch.from_numpy(Y).to(dtype))
