"""What holds for every metric of (probs, labels)."""

import copy
import inspect
import pickle
from functools import partial

import numpy as np
import pandas
import pytest
import torch

from focalcal import Predictions, metrics
from focalcal.metrics import METRICS
from focalcal.metrics.event_metrics import FromEvent

ALL = pytest.mark.parametrize("name", METRICS)
OF_AN_EVENT = {name for name, metric in METRICS.items() if isinstance(metric.source, FromEvent)}
DEPENDS_ON_ROWS = {"debiased_ece"}  # the correction for chance knows how many rows there are


@pytest.fixture
def rows(request):
    """Seven classes; of a metric of one event two."""
    generator = np.random.default_rng(0)
    classes = 2 if request.node.callspec.params["name"] in OF_AN_EVENT else 7
    probs = generator.dirichlet(np.full(classes, 0.5), size=600)
    return probs, (generator.random((600, 1)) > (probs**1.3).cumsum(1)).sum(1).clip(max=classes - 1)


@ALL
def test_it_is_a_float_and_inputs_stay_as_they_are(name, rows):
    probs, labels = rows[0].copy(), rows[1].copy()
    value = METRICS[name](probs, labels)
    assert type(value) is float
    assert np.array_equal(probs, rows[0])
    assert np.array_equal(labels, rows[1])


@ALL
def test_the_order_of_the_rows_does_not_matter(name, rows):
    order = np.random.default_rng(1).permutation(600)
    assert METRICS[name](rows[0][order], rows[1][order]) == pytest.approx(METRICS[name](*rows), abs=1e-12)


@ALL
def test_the_names_of_the_classes_do_not_matter(name, rows):
    order = np.random.default_rng(1).permutation(rows[0].shape[1])
    renamed = np.argsort(order)[rows[1]]
    event = {"positive": int(np.argsort(order)[1])} if name in OF_AN_EVENT else {}
    assert METRICS[name](rows[0][:, order], renamed, **event) == pytest.approx(METRICS[name](*rows), abs=1e-12)


@ALL
def test_every_row_twice_changes_nothing(name, rows):
    doubled = METRICS[name](np.repeat(rows[0], 2, 0), np.repeat(rows[1], 2))
    if name in DEPENDS_ON_ROWS:
        assert doubled != METRICS[name](*rows)
    else:  # order statistics and the sum over ranks move a little
        tolerance = 0.02 if name in ("adaptive_ece", "aurc", "e_aurc") else 1e-4 if name == "smooth_ece" else 1e-12
        assert doubled == pytest.approx(METRICS[name](*rows), abs=tolerance)


ORDER = ("adaptive_ece", "aurc", "e_aurc", "smooth_ece")  # order statistics and sums over ranks move a little


@ALL
def test_weights_are_rows_repeated_and_only_their_ratios_matter(name, rows):
    probs, labels = rows
    metric, weights = METRICS[name], np.random.default_rng(3).integers(0, 4, 600)
    value = metric(probs, labels, sample_weight=weights)
    repeated = metric(np.repeat(probs, weights, 0), np.repeat(labels, weights))
    if name in DEPENDS_ON_ROWS:
        assert value != repeated
    else:
        assert value == pytest.approx(repeated, abs=0.01 if name in ORDER else 1e-9)
    assert metric(probs, labels, sample_weight=1e-7 * weights) == pytest.approx(value, abs=1e-9)
    kept = weights > 0
    assert metric(probs[kept], labels[kept], sample_weight=weights[kept]) == pytest.approx(value, abs=1e-9)
    held = Predictions(probs=probs, labels=labels, split="test", weights=weights)
    assert metric(held) == pytest.approx(value, abs=1e-12)
    alike = metric(logits=np.log(probs), labels=labels, sample_weight=np.full(600, 0.3))
    assert alike == pytest.approx(metric(probs, labels), abs=1e-9)
    interval = metrics.bootstrap(metric, probs, labels, sample_weight=weights, resamples=100)
    assert interval.estimate == pytest.approx(value, abs=1e-12)
    again = metrics.bootstrap(metric, probs, labels, sample_weight=weights * 3.7, resamples=100)
    assert (again.low, again.high) == pytest.approx((interval.low, interval.high), abs=1e-3)
    if metric.in_summary:
        found = metrics.summary(probs, labels, sample_weight=weights)
        assert found.values[name] == pytest.approx(value, abs=1e-12)
        assert found.rows == kept.sum()


@ALL
def test_weights_go_with_pixels_and_ignored_rows(name, rows):
    probs, labels = rows
    images = np.moveaxis(probs.reshape(6, 10, 10, -1), -1, 1)
    weights = np.array([1.0, 0.0, 2.5, 1.0, 0.5, 4.0])
    marked = np.where(np.arange(600) % 7 == 0, -1, labels)
    value = METRICS[name](images, marked.reshape(6, 10, 10), sample_weight=weights, ignore_index=-1)
    keep = marked >= 0
    each = np.repeat(weights, 100)[keep]
    assert value == pytest.approx(METRICS[name](probs[keep], labels[keep], sample_weight=each), abs=1e-12)


@ALL
def test_tensors_arrays_and_dtypes_agree(name, rows):
    probs, labels = torch.from_numpy(rows[0]), torch.from_numpy(rows[1])
    expected = METRICS[name](*rows)
    assert METRICS[name](probs, labels) == pytest.approx(expected, abs=1e-12)
    assert METRICS[name](probs.float(), labels.int()) == pytest.approx(
        expected, abs=1e-3 if name == "adaptive_ece" else 1e-5
    )


@ALL
def test_ignored_rows_are_as_if_absent(name, rows):
    probs, labels = rows
    marked = np.concatenate([labels, np.full(50, 255)])
    more = np.concatenate([probs, np.full((50, probs.shape[1]), np.nan)])
    assert METRICS[name](more, marked, ignore_index=255) == pytest.approx(METRICS[name](*rows), abs=1e-12)


@ALL
def test_maps_are_their_pixels(name, rows):
    probs, labels = rows
    images = np.moveaxis(probs.reshape(6, 10, 10, -1), -1, 1)
    assert METRICS[name](images, labels.reshape(6, 10, 10)) == pytest.approx(METRICS[name](*rows), abs=1e-12)


@ALL
def test_a_sure_and_right_classifier_has_the_best_value(name):
    if name in OF_AN_EVENT:
        best = {"oe": 1.0, "slope": np.inf, "intercept": np.nan, "observed_rate": 0.5, "predicted_rate": 0.5}
        value = METRICS[name](np.array([0.0, 1.0]), [0, 1])
        assert value == pytest.approx(best.get(name, 0.0), abs=1e-9, nan_ok=True)
        return
    probs, labels = np.eye(6), np.arange(6)
    best = METRICS[name].limits[1] if METRICS[name].better == "higher" else 0.0
    if name == "confidence_auroc":
        best = 0.5  # without a mistake there is nothing to rank
    assert METRICS[name](probs, labels) == pytest.approx(best, abs=1e-12)


@ALL
def test_values_lie_within_the_limits_of_the_table(name, rows):
    low, high = METRICS[name].limits
    for labels in (rows[1], rows[0].argmin(1), rows[0].argmax(1)):
        value = METRICS[name](rows[0], labels)
        assert low <= value <= high or (name == "intercept" and np.isnan(value)), "separated: no intercept"


@ALL
def test_it_passes_for_a_function(name):
    """Public under its name, pickled by it, documented and inspected as functions are."""
    metric = METRICS[name]
    assert getattr(metrics, name) is metric
    assert name in metrics.__all__
    assert pickle.loads(pickle.dumps(metric)) is copy.deepcopy(metric) is metric
    assert metric.__name__ == name
    assert metric.__doc__[0].isupper()
    assert {"probs", "labels", "ignore_index", *metric.source.options} <= set(inspect.signature(metric).parameters)
    with pytest.raises(TypeError, match=f"{name} has no option 'bins'; it has probs, labels, logits"):
        metric(np.eye(2), [0, 1], bins=10)


@ALL
def test_predictions_tables_and_names_give_the_same(name, rows):
    probs, labels = rows
    metric, expected = METRICS[name], pytest.approx(METRICS[name](*rows), abs=1e-9)
    assert metric(Predictions(probs=probs, labels=labels, split="test")) == expected
    assert metric(Predictions(logits=np.log(probs), labels=labels, split="test")) == expected
    names = [f"class {at}" for at in range(probs.shape[1])]
    table = pandas.DataFrame(probs, columns=names)
    assert metric(table, pandas.Series([names[at] for at in labels], dtype="category")) == expected
    assert metric(3 * probs, np.eye(probs.shape[1])[labels], normalize=True) == expected


@ALL
def test_one_column_is_two_classes(name):
    generator = np.random.default_rng(2)
    p = generator.random(300)
    labels = generator.random(300) < p
    expected = METRICS[name](np.stack([1 - p, p], 1), labels.astype(int))
    assert METRICS[name](p, labels) == pytest.approx(expected, abs=1e-12)
    assert METRICS[name](p, np.where(labels, "yes", "no"), positive="yes") == pytest.approx(expected, abs=1e-12)
    assert METRICS[name](logits=np.log(p / (1 - p)), labels=labels) == pytest.approx(expected, abs=1e-9)


@ALL
def test_confidences_are_enough_or_refused(name, rows):
    metric, (probs, labels) = METRICS[name], rows
    outcomes = {"confidence": probs.max(1), "correct": probs.argmax(1) == labels}
    if name in OF_AN_EVENT:  # that the prediction is right is an event too
        outcomes = {"confidence": probs[:, 1], "correct": labels == 1}
    if metric.source.needs_classes:
        for call in (metric, partial(metrics.bootstrap, metric)):
            with pytest.raises(ValueError, match=f"{name} needs the probabilities of all classes"):
                call(**outcomes)
        return
    if name in ("brier", "nll"):  # of the event of being right, as those of one sigmoid output
        rows = outcomes["confidence"][:, None], outcomes["correct"][:, None]
        expected, several = metrics.MULTILABEL_METRICS[name](*rows), metrics.multilabel_bootstrap
        all_classes = several(metrics.MULTILABEL_METRICS[name], *rows, resamples=20)
    else:
        expected, all_classes = metric(*rows), metrics.bootstrap(metric, *rows, resamples=20)
    assert metric(**outcomes) == pytest.approx(expected, abs=1e-12)
    alone = metrics.bootstrap(metric, **outcomes, resamples=20)
    assert (alone.low, alone.high) == pytest.approx((all_classes.low, all_classes.high), abs=1e-9)


@ALL
def test_impossible_classes_may_have_logits_of_minus_infinity(name, rows):
    """The metric is that of the probabilities with a 0 there; where the label was impossible, the NLL is infinite."""
    logits = np.log(rows[0])
    last = logits.shape[1] - 1
    logits[:, last] = np.where(rows[1] == last, logits[:, last], -np.inf)
    probs = np.exp(logits) / np.exp(logits).sum(1, keepdims=True)
    assert METRICS[name](logits=logits, labels=rows[1]) == pytest.approx(
        METRICS[name](probs, rows[1]), abs=1e-9, nan_ok=True
    )


@ALL
def test_summary_sketch_and_intervals_follow_from_the_table(name, rows):
    metric, value = METRICS[name], METRICS[name](*rows)
    assert metric.in_summary == (name in metrics.summary(*rows).values)
    if metric.in_summary:
        assert getattr(metrics.summary(*rows), name) == pytest.approx(value, abs=1e-12)
    sketch = metrics.CalibrationSketch.of(*rows)
    assert bool(metric.source.holds) == hasattr(sketch, name)
    if metric.source.holds:
        bound = sketch.adaptive_ece_bound() if name == "adaptive_ece" else 1e-9
        assert getattr(sketch, name)() == pytest.approx(value, abs=bound)
    interval = metrics.bootstrap(metric, *rows, resamples=20)
    assert interval.estimate == pytest.approx(value, abs=1e-12)
    assert (interval.chance is not None) == metric.by_chance


def test_chance_is_all_that_a_calibrated_model_shows():
    """Labels drawn from the probabilities: what is left of a calibration error is what `chance` says."""
    generator = np.random.default_rng(0)
    probs = generator.dirichlet(np.full(5, 0.5), size=2000)
    labels = (generator.random((2000, 1)) > probs.cumsum(1)).sum(1).clip(max=4)
    for metric in METRICS.values():
        if metric.by_chance and metric is not metrics.debiased_ece:  # which takes chance off, sometimes all of it
            event = {"positive": 2} if metric.name in OF_AN_EVENT else {}
            interval = metrics.bootstrap(metric, probs, labels, resamples=50, **event)
            assert interval.low == 0
            assert 0.3 * interval.chance < interval.estimate < 3 * interval.chance
