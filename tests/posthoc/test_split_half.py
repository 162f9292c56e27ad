"""The split-half protocol."""

import dataclasses

import numpy as np
import pytest
import torch
from references.golden import single_label
from sklearn.dummy import DummyClassifier
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer

from focalcal.posthoc import HistogramBinning, SplitHalf, TemperatureScaling, VectorScaling, split_half


def nll(probs, labels):
    return -np.log(np.asarray(probs)[np.arange(len(labels)), np.asarray(labels)]).mean()


def error(probs, labels):
    return (np.asarray(probs).argmax(1) != np.asarray(labels)).mean()


METRICS = {"nll": nll, "error": error}


def test_halves_are_disjoint_equal_and_seeded():
    logits, labels = single_label()
    result = split_half(logits, labels, TemperatureScaling(), seed=3, metrics=METRICS)
    assert len(result.fit_rows) == len(result.evaluation_rows) == 1000
    assert sorted([*result.fit_rows, *result.evaluation_rows]) == list(range(2000))
    again = split_half(logits, labels, TemperatureScaling(), seed=3, metrics=METRICS)
    np.testing.assert_array_equal(again.fit_rows, result.fit_rows)
    assert again.after == result.after
    other = split_half(logits, labels, TemperatureScaling(), seed=4, metrics=METRICS)
    assert not np.array_equal(other.fit_rows, result.fit_rows)
    odd = split_half(logits[:101], labels[:101], TemperatureScaling(), seed=0, metrics=METRICS)
    assert (len(odd.fit_rows), len(odd.evaluation_rows)) == (50, 51)


@pytest.mark.parametrize("kind", ["tensor", "numpy"])
def test_both_values_are_of_the_evaluation_half_alone(kind):
    logits, labels = single_label()
    logits = 3 * logits
    given = (logits, labels) if kind == "tensor" else (logits.numpy(), labels.numpy())
    kinds = []

    def seen(probs, held):
        kinds.append((type(probs), type(held)))
        return 0.0

    result = split_half(*given, TemperatureScaling(), seed=0, metrics=METRICS | {"seen": seen})
    fit, held = result.fit_rows, result.evaluation_rows
    by_hand = TemperatureScaling().fit(logits[fit], labels[fit])
    assert result.calibrator.temperature_ == pytest.approx(by_hand.temperature_, rel=1e-12)
    assert result.before["nll"] == pytest.approx(nll(logits[held].softmax(1), labels[held]))
    assert result.after["nll"] == pytest.approx(nll(by_hand.predict_proba(logits[held]), labels[held]))
    assert result.after["nll"] < result.before["nll"]
    assert result.after["error"] == result.before["error"]
    expected = torch.Tensor if kind == "tensor" else np.ndarray
    assert set(kinds) == {(expected, expected)}


def test_the_calibrator_given_is_not_touched_and_the_result_is_frozen():
    logits, labels = single_label()
    calibrator = HistogramBinning(bins=7)
    result = split_half(logits, labels, calibrator, seed=0, metrics={"error": error})
    assert not hasattr(calibrator, "edges_")
    assert result.calibrator.bins == 7
    assert isinstance(result, SplitHalf)
    with pytest.raises(dataclasses.FrozenInstanceError):
        result.before = {}


@pytest.mark.parametrize("as_numpy", [False, True])
def test_any_estimator_of_probabilities(as_numpy):
    logits, labels = (v.numpy() if as_numpy else v for v in single_label())
    search = GridSearchCV(VectorScaling(), {"bias_l2": [0.01, 0.1]}, scoring="neg_log_loss", cv=2)
    result = split_half(logits, labels, search, seed=0)
    assert result.calibrator.best_params_["bias_l2"] in (0.01, 0.1)
    assert not hasattr(search, "best_params_")
    best = split_half(logits, labels, VectorScaling(**result.calibrator.best_params_), seed=0)
    assert result.after == pytest.approx(best.after)
    assert result.before == pytest.approx(best.before)
    pipeline = make_pipeline(FunctionTransformer(), TemperatureScaling())
    plain = split_half(logits, labels, TemperatureScaling(), seed=0)
    assert split_half(logits, labels, pipeline, seed=0).after == pytest.approx(plain.after)


def test_missing_columns_are_named():
    logits, labels = single_label()
    with pytest.raises(ValueError, match="calibrator must give probabilities of shape"):
        split_half(logits, labels % 3, DummyClassifier(), seed=0)


@pytest.mark.parametrize(
    ("name", "values", "error", "message"),
    [
        ("seed", [None, -1, 1.0, True, "0"], ValueError, "seed must be a whole number >= 0"),
        ("metrics", [{}, None, [nll], {"nll": 3}], TypeError, "metrics must map names to functions"),
        ("calibrator", [TemperatureScaling, "temperature", None], TypeError, "calibrator must be"),
    ],
)
def test_refusals(name, values, error, message):
    for value in values:
        with pytest.raises(error, match=message):
            split_half(*single_label(), **{"calibrator": TemperatureScaling(), "metrics": METRICS, name: value})
