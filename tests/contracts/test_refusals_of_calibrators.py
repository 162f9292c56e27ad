"""What every entry of CALIBRATORS refuses, and how: the argument, the rule, the value received and the remedy."""

import inspect
import re

import numpy as np
import pytest
import scipy.sparse
from sklearn.exceptions import NotFittedError
from support.refusals import assert_refused

from focalcal.posthoc import CALIBRATORS

Y = np.arange(12) % 3
Z = np.random.default_rng(0).normal(size=(12, 3)) + np.eye(3)[Y]
MASKED = ["temperature"]  # takes logits of -inf: classes that are impossible
NEEDS_NO_FIT = ["recovery"]


def changed(value, row=5):
    logits = Z.copy()
    logits[row, 1] = value
    return logits


def case(logits, labels, message, error=ValueError, weights=None):
    return (logits, labels, weights), error, message


_RANGE = "labels must be from 0 to 2, got {} at flat position {}; check the labels and the number of columns"
_WEIGHT = "sample_weight must be finite and >= 0, got {} at flat position {}; a row of weight 0 is left out"
_SHAPE = r"logits must be \(N, K\) or \(N, K, d1, ...\), .* got shape \(\). Reshape your data"
FITS = {
    "nan": case(changed(np.nan), Y, "logits must be finite, got nan in row 5; find out where"),
    "inf": case(changed(np.inf), Y, "logits must be finite, got inf in row 5; find out where"),
    "integers": case(Z.astype(int), Y, "logits must be floating point, got int64; convert them", TypeError),
    "complex": case(Z.astype(complex), Y, "Complex data not supported: logits must be real, got complex128; use"),
    "objects": case(np.array([{}] * 12), Y, "logits must be an array of numbers or a tensor, got object", TypeError),
    "words": case(Z.astype(str), Y, "logits must be an array of numbers or a tensor, got <U32", TypeError),
    "sparse": case(scipy.sparse.csr_matrix(Z), Y, r"logits must be dense, .*csr_matrix; use logits.toarray", TypeError),
    "nothing": case(None, Y, "logits must be an array of numbers or a tensor, got object from NoneType", TypeError),
    "a number": case(3.0, Y, _SHAPE),
    "no row": case(Z[:0], Y[:0], r"logits must hold at least one row, got shape \(0, 3\)"),
    "no column": case(Z[:, :0], Y * 0, "got 0 feature.*minimum of 2 is required.*stack"),
    "one column": case(Z[:, 0], Y, "labels must be from 0 to 1, got 2 at flat position 2"),
    "a map": case(np.stack([Z, Z], 2), Y, r"labels must have shape \(12, 2\) for logits of shape \(12, 3, 2\), got"),
    "label 3": case(Z, np.where(Y == 2, 3, Y), _RANGE.format(3, 2)),
    "label -1": case(Z, Y - 1, _RANGE.format(-1, 0)),
    "half a label": case(Z, Y + 0.5, "labels must be whole numbers, .* got 0.5 at flat position 0; leave out"),
    "booleans": case(Z, Y > 0, "labels must be integers or names, .* got booleans; whether", TypeError),
    "no labels": case(Z, None, "labels must be given, got None"),
    "labels missing": case(
        Z, Y[:-1], r"labels must have shape \(12,\) for logits of shape \(12, 3\), got \(11,\); give"
    ),
    "one class": case(Z, Y * 0, "labels must hold at least two classes, got one class only, 0, in 12 rows; .*: fit on"),
    "two names": case(Z, list("abababababab"), "classes must be 3 different names, .* got 2: 'a', 'b'; pass classes="),
    "weights missing": case(
        Z, Y, r"sample_weight must have the labels' shape \(12,\), got \(11,\)", weights=np.ones(11)
    ),
    "negative weights": case(Z, Y, _WEIGHT.format("-1.0", 1), weights=np.where(Y == 1, -1.0, 1.0)),
    "a weight of nan": case(Z, Y, _WEIGHT.format("nan", 2), weights=np.where(Y == 2, np.nan, 1.0)),
    "no weight": case(Z, Y, "at least one row to fit on, got a weight of zero or", weights=np.zeros(12)),
    "weights of one class": case(Z, Y, "at least two classes, got one class only, 2, in 4 rows", weights=Y == 2),
}


@pytest.mark.parametrize("title", FITS)
def test_a_fit(title):
    given, error, message = FITS[title]
    made = {name: calibrator() for name, calibrator in CALIBRATORS.items()}
    assert_refused(made, lambda name: made[name].fit(*given), error, message)
    assert not [name for name, calibrator in made.items() if hasattr(calibrator, "n_features_in_")]


def test_a_fit_with_impossible_classes():
    others = [name for name in CALIBRATORS if name not in MASKED]
    rule = "logits must be finite, got -inf in row 4; find out where"
    assert_refused(others, lambda name: CALIBRATORS[name]().fit(changed(-np.inf, row=4), Y), ValueError, rule)
    rule = "labels must be possible, got class 1 in row 4, whose logit is -inf; leave the row out"
    assert_refused(MASKED, lambda name: CALIBRATORS[name]().fit(changed(-np.inf, row=4), Y), ValueError, rule)
    rule = "logits must leave a class possible, got only -inf in row 0; leave the row out"
    assert_refused(MASKED, lambda name: CALIBRATORS[name]().fit(np.full_like(Z, -np.inf), Y), ValueError, rule)


@pytest.fixture(scope="module")
def fitted():
    return {name: calibrator().fit(Z, Y) for name, calibrator in CALIBRATORS.items()}


@pytest.mark.parametrize("method", ["predict_proba", "predict"])
@pytest.mark.parametrize(
    ("logits", "error", "message"),
    [
        (Z[:, :2], ValueError, "X has 2 features, but {} is expecting 3 features as input; fit another"),
        (changed(np.nan), ValueError, "logits must be finite, got nan in row 5; find out"),
        (Z[:0], ValueError, r"logits must hold at least one row, got shape \(0, 3\)"),
        (Z[0], ValueError, r"got shape \(3,\). Reshape your data"),
        (Z.astype(int), TypeError, "logits must be floating point, got int64; convert them"),
    ],
)
def test_a_prediction(fitted, method, logits, error, message):
    for name, calibrator in fitted.items():
        rule = message.format(type(calibrator).__name__)
        assert_refused([name], lambda name: getattr(fitted[name], method)(logits), error, rule)


@pytest.mark.parametrize("method", ["predict_proba", "predict"])
def test_a_prediction_before_the_fit(method):
    names = [name for name in CALIBRATORS if name not in NEEDS_NO_FIT]
    rule = r"is not fitted yet; call fit\(logits, labels\) on held-out data first, or load"
    assert_refused(names, lambda name: getattr(CALIBRATORS[name](), method)(Z), NotFittedError, rule)


NOT_NEGATIVE = (-1, float("nan"), 10**400, "1", True, None, [3.0], np.ones(2))
NO_COUNT = (0, -1, 2.5, True, "15", None, float("nan"), np.ones(2))
_NUMBER = r"(finite and >= 0, got .*; choose|one number, got .*; pass|a number, got .*; pass)"
# What an option may not be, and the rule.
OPTIONS = {
    **dict.fromkeys(("spread_l2", "bias_l2", "off_diagonal_l2", "tol", "gamma", "lam"), (NOT_NEGATIVE, _NUMBER)),
    "temperature": (
        (0, -1, float("nan"), 10**400, "1", True, [3.0], np.ones(2)),
        "(above 0, got .*; leave|.*number, got .*; pass|finite and)",
    ),
    "max_iter": (NO_COUNT, "a whole number >= 1, got .*; (500|1000) is plenty"),
    "bins": (NO_COUNT, "a whole number >= 1 and <= 1000000, got .*; 15 is usual"),
    "knots": ((*NO_COUNT, 2, 1001), "a whole number >= 3 and <= 1000, got .*; 6 is usual"),
    "strategy": (("width", None, np.ones(2)), "one of 'equal_width', 'equal_mass', got"),
    "folds": ((*NO_COUNT, 1), "a whole number >= 2, got .*; 10 is usual"),
    "strength": (NOT_NEGATIVE, f'("auto" or a number >= 0, got .*; leave|{_NUMBER})'),
    **dict.fromkeys(("fit_temperature", "mix"), (("no", 1, None, np.ones(2)), "True or False, got")),
}


def test_every_option_has_its_check():
    assert {name for made in CALIBRATORS.values() for name in inspect.signature(made).parameters} == OPTIONS.keys()


@pytest.mark.parametrize("option", OPTIONS)
def test_options(option):
    names = [name for name, made in CALIBRATORS.items() if option in inspect.signature(made).parameters]
    values, rule = OPTIONS[option]
    for value in values:
        assert_refused(
            names,
            lambda name, wrong=value: CALIBRATORS[name](**{option: wrong}).fit(Z, Y),
            (TypeError, ValueError),
            f"{re.escape(option)} must be {rule}",
        )
