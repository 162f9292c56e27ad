"""scikit-learn's `CalibratedClassifierCV` behind a classifier that gives float32 probabilities alone, as XGBoost does.

Its sigmoid is one of p, since there is no `decision_function`; ours is Platt's, one of the log odds, whatever the
classifier has. Its isotonic regression takes float32 values that are less than 1e-6 apart for one. XGBoost 3.2 gives
the same differences; docs/guide/other_libraries.md has its numbers.
"""

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.calibration import CalibratedClassifierCV
from sklearn.frozen import FrozenEstimator

from focalcal.metrics import nll
from focalcal.posthoc import IsotonicCalibration, PlattScaling

RNG = np.random.default_rng(0)


class Given(ClassifierMixin, BaseEstimator):
    """A trained classifier whose outputs are its inputs: the probabilities in some dtype."""

    def __init__(self, dtype="float32"):
        self.dtype = dtype

    def fit(self, X, y):
        self.classes_ = np.unique(y)
        return self

    def predict_proba(self, X):
        return X.astype(self.dtype)

    def predict(self, X):
        return self.classes_[X.argmax(1)]


class WithMargin(Given):
    """The same with the log odds beside them, as LightGBM has them."""

    def decision_function(self, X):
        return np.log(X[:, 1].astype(float)) - np.log1p(-X[:, 1].astype(float))


def theirs(classifier, probs, labels, method):
    model = CalibratedClassifierCV(FrozenEstimator(classifier.fit(probs, labels)), method=method)
    return model.fit(probs, labels).predict_proba(probs)


def rows(classes, n=3000, scale=6.0):
    """Probabilities in float32, many of them below 1e-6, and labels that are less certain."""
    logits = scale * RNG.normal(size=(n, classes))
    odds = np.exp(logits - logits.max(1, keepdims=True))
    probs = (odds / odds.sum(1, keepdims=True)).astype("float32")
    calm = np.exp(logits / 3 - (logits / 3).max(1, keepdims=True))
    calm /= calm.sum(1, keepdims=True)
    return probs, (calm.cumsum(1) < RNG.random((n, 1))).sum(1).clip(max=classes - 1)


def test_platt_is_of_the_log_odds_whatever_the_classifier_has():
    probs, labels = rows(2, scale=2.0)
    ours = PlattScaling().fit(probs=probs, labels=labels).predict_proba(probs=probs)
    of_odds = theirs(WithMargin(), probs, labels, "sigmoid")
    np.testing.assert_allclose(ours, of_odds, atol=2e-5)  # L-BFGS stops at a gradient of 1e-6
    of_probs = theirs(Given(), probs, labels, "sigmoid")
    logit = np.log(of_probs[:, 1] / of_probs[:, 0])
    line = np.polyfit(probs[:, 1].astype(float), logit, 1)
    np.testing.assert_allclose(logit, np.polyval(line, probs[:, 1].astype(float)), atol=1e-4)  # a sigmoid of p
    assert abs(of_probs - ours).max() > 0.05
    assert nll(ours, labels) < nll(of_probs, labels) - 0.005  # the labels are Bernoulli of logits / 3


def test_isotonic_keeps_float32_values_apart_that_scikit_learn_takes_for_one():
    probs, labels = rows(30)
    single = IsotonicCalibration().fit(probs=probs, labels=labels).predict_proba(probs=probs)
    wide = probs.astype("float64")
    double = IsotonicCalibration().fit(probs=wide, labels=labels).predict_proba(probs=wide)
    np.testing.assert_allclose(single, double, atol=1e-5)
    np.testing.assert_allclose(double, theirs(Given("float64"), probs, labels, "isotonic"), atol=1e-5)
    assert abs(single - theirs(Given("float32"), probs, labels, "isotonic")).max() > 1e-3
