"""Bootstrap intervals: the vectorised resamples are resamples, and the intervals hold what they promise."""

from functools import partial

import numpy as np
import pytest
import torch

from focalcal import metrics
from focalcal.metrics.bootstrap import _Plan
from focalcal.metrics.bootstrap_statistics import row_weights
from focalcal.metrics.event_metrics import FromEvent
from focalcal.predictions import read_inputs

ALL = list(metrics.METRICS.values())
CALIBRATION_ERRORS = [metric for metric in ALL if metric.by_chance]


def network(rows, classes=5, temperature=1.3, seed=0):
    generator = torch.Generator().manual_seed(seed)
    logits = torch.randn(rows, classes, generator=generator) * 2
    noise = -torch.log(-torch.log(torch.rand(rows, classes, generator=generator)))
    return logits.softmax(1), (logits / temperature + noise).argmax(1)


def tolerance_of(metric, probs, labels):
    """AdaECE keeps the members of a sketch's cell together, and a spline its knots; everything else is exact."""
    if metric.name in ("ici", "e50", "e90", "emax"):
        return 0.02
    if metric is not metrics.adaptive_ece:
        return 1e-9
    return metrics.CalibrationSketch.of(probs, labels).adaptive_ece_bound() + 1e-9


@pytest.mark.parametrize("metric", ALL, ids=lambda m: m.__name__)
def test_a_vectorised_resample_is_the_metric_of_the_drawn_rows(metric):
    probs, labels = network(300, classes=2 if isinstance(metric.source, FromEvent) else 7)
    plan = _Plan({"asked": metric}, read_inputs(probs, labels), None, 15, None)
    draw = next(plan.resampled_rows(4, seed=3))
    (values,) = next(plan.values(iter([draw])))
    for at in range(4):
        rows = np.repeat(np.arange(300), draw.weights[:, at].astype(int))
        assert len(rows) == 300
        tolerance = tolerance_of(metric, probs[rows], labels[rows])
        assert values[at] == pytest.approx(metric(probs[rows], labels[rows]), abs=tolerance)


@pytest.mark.parametrize("metric", CALIBRATION_ERRORS, ids=lambda m: m.__name__)
def test_drawn_labels_give_the_metric_of_those_labels(metric):
    probs, labels = network(300, classes=2 if isinstance(metric.source, FromEvent) else 7)
    plan = _Plan({"asked": metric}, read_inputs(probs, labels), None, 15, None)
    draw = next(plan.drawn_labels(4, seed=3))
    (values,) = next(plan.values(iter([draw])))
    choices = probs.numpy().argmax(1), probs.numpy().argmin(1)
    for at in range(4):
        # Where only right and wrong are drawn: the predicted class, or another.
        drawn = draw.labels[:, at] if draw.labels is not None else np.where(draw.correct[:, at], *choices)
        assert values[at] == pytest.approx(metric(probs, drawn), abs=tolerance_of(metric, probs, drawn))


def test_labels_are_drawn_from_the_probabilities():
    probs = np.tile([0.1, 0.2, 0.7], (50, 1))
    plan = _Plan({"asked": metrics.classwise_ece}, read_inputs(probs, np.zeros(50, dtype=int)), None, 15, None)
    drawn = np.concatenate([draw.labels for draw in plan.drawn_labels(400, 0)], axis=1)
    assert np.bincount(drawn.ravel()) / drawn.size == pytest.approx([0.1, 0.2, 0.7], abs=0.01)


@pytest.mark.parametrize(("rows", "resamples"), [(1, 1000), (2500, 1000), (2**20, 3), (2**21, 3)])
def test_no_batch_of_resamples_takes_more_memory_than_a_million_weights_or_one_resample(rows, resamples):
    sizes = [weights.size for weights in row_weights(10, rows, resamples, seed=0)]
    assert sum(sizes) == 10 * resamples
    assert all(rows * size // 10 <= max(2**20, rows) for size in sizes)


def test_auroc_resamples():
    generator = np.random.default_rng(0)
    scores, positive = np.round(generator.random(200), 1), generator.random(200) < 0.4
    plan = _Plan({"asked": metrics.auroc}, read_inputs(confidence=scores, correct=positive), None, 15, None)
    draw = next(plan.resampled_rows(3, seed=1))
    (values,) = next(plan.values(iter([draw])))
    for at in range(3):
        rows = np.repeat(np.arange(200), draw.weights[:, at].astype(int))
        assert values[at] == pytest.approx(metrics.auroc(scores[rows], positive[rows]))
    found = metrics.bootstrap(metrics.auroc, scores, positive, resamples=200)
    assert found.low < found.estimate < found.high


def test_several_metrics_share_the_resamples():
    probs, labels = network(400)
    both = metrics.bootstrap([metrics.ece, metrics.brier], probs, labels, resamples=60)
    assert list(both) == ["ece", "brier"]
    alone = metrics.bootstrap(metrics.brier, probs, labels, resamples=60)
    assert (both["brier"].low, both["brier"].high) == pytest.approx((alone.low, alone.high))
    assert both["ece"].estimate == pytest.approx(metrics.ece(probs, labels))


def test_another_function_is_called_for_each_resample():
    probs, labels = network(200)

    def own(p, y):
        return metrics.brier(p, y)

    theirs = metrics.bootstrap(own, probs, labels, resamples=40)
    ours = metrics.bootstrap(metrics.brier, probs, labels, resamples=40)
    assert (theirs.low, theirs.high) == pytest.approx((ours.low, ours.high))
    for given, expected in ((torch.as_tensor(probs), torch.Tensor), (np.asarray(probs), np.ndarray)):
        kinds = set()
        metrics.bootstrap(lambda p, y: kinds.update({type(p), type(y)}) or 0.5, given, labels, resamples=2)  # noqa: B023
        assert kinds == {expected}


def test_ignored_pixels_take_no_part_and_images_are_resampled_whole():
    probs, labels = network(240)
    images = probs.T.reshape(5, 4, 60).permute(1, 0, 2).contiguous()
    maps = labels.reshape(4, 60).clone()
    keep = labels != 2
    kept = probs[keep], labels[keep]
    options = {"ignore_index": 2, "resamples": 30}
    found = metrics.bootstrap(metrics.ece, images, maps, **options)
    assert found.estimate == pytest.approx(metrics.ece(*kept))
    same = metrics.bootstrap(metrics.ece, *kept, clusters=(np.arange(240) // 60)[keep.numpy()], resamples=30)
    assert (found.low, found.high, found.chance) == pytest.approx((same.low, same.high, same.chance))
    alone = metrics.bootstrap(metrics.ece, images, maps, clusters=np.arange(240).reshape(4, 60), **options)
    rows = metrics.bootstrap(metrics.ece, *kept, resamples=30)
    assert (alone.low, alone.high) == pytest.approx((rows.low, rows.high))
    with pytest.raises(ValueError, match="clusters must be at least two, got one"):
        metrics.bootstrap(metrics.ece, images[:1], maps[:1])
    with pytest.raises(ValueError, match=r"clusters must have shape \(240,\)"):
        metrics.bootstrap(metrics.ece, probs, labels, clusters=[1, 2])


def test_rows_that_are_copies_of_each_other_need_clusters():
    """Every row eight times: taken for independent the interval is too short by sqrt(8)."""
    probs, labels = network(300)
    copies = probs.repeat_interleave(8, 0), labels.repeat_interleave(8)
    honest = metrics.bootstrap(metrics.brier, *copies, clusters=np.arange(2400) // 8)
    naive = metrics.bootstrap(metrics.brier, *copies)
    single = metrics.bootstrap(metrics.brier, probs, labels)
    assert honest.high - honest.low == pytest.approx(single.high - single.low, rel=0.15)
    assert honest.high - honest.low > 2.3 * (naive.high - naive.low)


def test_options_names_and_own_metrics():
    probs, labels = network(200)
    asked = {"top-3": partial(metrics.top_k_accuracy, k=3), "l2": partial(metrics.debiased_ece, norm="l2")}
    found = metrics.bootstrap(asked, probs, labels, resamples=40)
    assert found["top-3"].estimate == pytest.approx(metrics.top_k_accuracy(probs, labels, k=3))
    assert found["l2"].estimate == pytest.approx(metrics.debiased_ece(probs, labels, norm="l2"))
    fc = metrics.bootstrap(partial(metrics.adaptive_ece, convention="fc"), probs, labels, resamples=20)
    assert fc.estimate == pytest.approx(metrics.adaptive_ece(probs, labels, convention="fc"))
    negative = metrics.bootstrap(lambda p, y: -metrics.nll(p, y), probs, labels, resamples=40)
    assert negative.low < negative.estimate < negative.high < 0
    labels = labels.clone()
    labels[:50] = -1
    kept = metrics.bootstrap(lambda p, y: metrics.error(p, y), probs, labels, resamples=40, ignore_index=-1)
    assert kept.estimate == pytest.approx(metrics.error(probs[50:], labels[50:]))
    with pytest.raises(ValueError, match="several functions of one name"):
        metrics.bootstrap([lambda p, y: 0.0, lambda p, y: 1.0], probs, labels)


def test_no_end_lies_where_the_metric_cannot():
    scores = np.concatenate([np.linspace(0.5, 1, 15), np.linspace(0, 0.52, 60)])
    found = metrics.bootstrap(metrics.auroc, scores, np.arange(75) < 15)
    assert found.low < found.estimate < found.high <= 1
    perfect = metrics.bootstrap(metrics.error, np.eye(3)[[0, 1, 2] * 30], np.array([0, 1, 2] * 30))
    assert perfect.estimate == perfect.low == 0
    assert 0.02 < perfect.high < 0.06  # no error in 90 rows does not mean no errors


@pytest.mark.slow
@pytest.mark.parametrize("temperature", [1.0, 1.1, 1.6])
def test_intervals_cover_the_truth(temperature):
    """95 % intervals of 60 samples; fewer than 51 hits would happen to true ones in 1 of 1,500 tries."""
    errors = [metric for metric in CALIBRATION_ERRORS if not isinstance(metric.source, FromEvent)]
    asked = [*errors, metrics.brier, metrics.error, metrics.aurc]
    truth = {metric.__name__: metric(*network(400_000, temperature=temperature, seed=99)) for metric in asked}
    hits = dict.fromkeys(truth, 0)
    for seed in range(60):
        found = metrics.bootstrap(asked, *network(1000, temperature=temperature, seed=seed), resamples=150)
        for name, interval in found.items():
            hits[name] += interval.low <= truth[name] <= interval.high
    assert min(hits.values()) >= 51, hits


def test_calibrated_by_chance_begins_at_zero_and_miscalibrated_does_not():
    calibrated = metrics.bootstrap(metrics.ece, *network(2000, temperature=1.0))
    assert calibrated.low == 0
    assert calibrated.chance == pytest.approx(calibrated.estimate, rel=0.6)
    off = metrics.bootstrap(metrics.ece, *network(2000, temperature=2.0))
    assert off.low > off.chance
    assert "by chance" in str(off)


def answers(rows, labels=3, seed=0):
    generator = np.random.default_rng(seed)
    probs = generator.random((rows, labels))
    return probs, (generator.random((rows, labels)) < probs**1.3).astype(int)


@pytest.mark.parametrize("name", metrics.MULTILABEL_METRICS)
def test_multilabel_intervals(name):
    metric = metrics.MULTILABEL_METRICS[name]
    probs, labels = answers(400)
    labels[:50, 1] = -1
    mean = metrics.multilabel_bootstrap(metric, probs, labels, resamples=80, ignore_index=-1)
    each = metrics.multilabel_bootstrap(metric, probs, labels, resamples=80, ignore_index=-1, average=None)
    assert mean.estimate == pytest.approx(metric(probs, labels, ignore_index=-1))
    assert [i.estimate for i in each] == pytest.approx(metric(probs, labels, ignore_index=-1, average=None).tolist())
    assert mean.low <= mean.estimate <= mean.high
    # Three labels together are better known than one.
    assert mean.high - mean.low < max(i.high - i.low for i in each)


def test_metrics_of_one_kind_are_not_taken_for_the_other():
    probs, labels = answers(30)
    with pytest.raises(TypeError, match="use multilabel_bootstrap"):
        metrics.bootstrap(metrics.multilabel_ece, probs, labels)
    with pytest.raises(TypeError, match=r"metric must be one of multilabel_error, .*, got 'ece'"):
        metrics.multilabel_bootstrap(metrics.ece, probs, labels)


def test_an_infinite_log_likelihood_stays_infinite():
    probs = np.array([[1.0, 0.0]] * 20)
    labels = np.array([0] * 19 + [1])
    found = metrics.bootstrap(metrics.nll, probs, labels, resamples=50)
    assert found.estimate == found.high == np.inf


def test_what_is_no_metric():
    with pytest.raises(TypeError, match="metric must be a metric function"):
        metrics.bootstrap("ece", *network(20))
    with pytest.raises(ValueError, match="ask for it alone"):
        metrics.bootstrap([metrics.auroc, metrics.ece], *network(20))
