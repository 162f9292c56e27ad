"""The one rule for probabilities, wherever they are taken: rounding is not damage, and is mentioned once."""

import inspect
import math
import warnings

import numpy as np
import pytest
import torch
from support.metric_engines import ENGINES, use
from torchmetrics import metric as wrapped

from focalcal import metrics, theory
from focalcal.core.checks import ProbabilityWarning, off_simplex
from focalcal.integrations import torchmetrics as adapters
from focalcal.metrics.event_metrics import FromEvent
from focalcal.predictions import Predictions

LOGITS = 3 * torch.randn(200, 30, generator=torch.Generator().manual_seed(0))
PROBS = LOGITS.softmax(1)
LABELS = torch.randint(0, 30, (200,), generator=torch.Generator().manual_seed(1))


def adapted(adapter):
    def value(probs, labels):
        metric = adapter(num_classes=probs.shape[1])
        metric.update(probs, labels)
        return metric.compute()

    return value


def loaded(suffix):
    def value(probs, labels):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ProbabilityWarning)
            Predictions(probs=probs, labels=labels, split="test").save(f"given{suffix}")
        return float(np.square(Predictions.load(f"given{suffix}").probs).sum())

    return value


METRICS = {name: one for name, one in metrics.METRICS.items() if not isinstance(one.source, FromEvent)}
ADAPTERS = {
    name: adapted(getattr(adapters, name))
    for name in adapters.__all__
    if "num_classes" in inspect.signature(getattr(adapters, name)).parameters
}
TAKERS = {
    **METRICS,
    "summary": metrics.summary,
    "murphy": metrics.murphy,
    "reliability": metrics.reliability,
    "sketch": metrics.CalibrationSketch.of,
    "bootstrap": lambda *rows: metrics.bootstrap([metrics.ece, metrics.top_k_accuracy], *rows, resamples=20),
    "rows by rows": lambda *rows: metrics.bootstrap(lambda p, y: metrics.brier(p, y), *rows, resamples=20),
    **ADAPTERS,
    "Predictions": lambda p, y: Predictions(probs=p, labels=y, split="test"),
    ".npz": loaded(".npz"),
    ".csv": loaded(".csv"),
    "minimise": lambda p, y: theory.minimise(p, gamma=2.0, lam=1.0),
    "recover": lambda p, y: theory.recover(p, gamma=2.0, lam=1.0),
}


@pytest.fixture(autouse=True, params=ENGINES)
def _engine(request, monkeypatch, tmp_path):
    use(request.param, monkeypatch)
    monkeypatch.chdir(tmp_path)


def with_row(*, total=1.0, least=None):
    """Row 7 with another sum, and its class 3 with an entry of that value."""
    probs = PROBS.double()
    if least is not None:
        probs[7, 3] = 0
        total -= least
    probs[7] *= total / probs[7].sum()
    probs[7, 3] = probs[7, 3] if least is None else least
    return probs


def test_rounding_is_taken_and_mentioned_once():
    for name, take in TAKERS.items():
        take(PROBS.double(), LABELS)  # a softmax in float32, now float64: silent, since warnings are errors here
        for total, miss in ((1.0005, "0.0005"), (0.99998, "2e-05")):
            with pytest.warns(ProbabilityWarning, match=f"miss a sum of 1 by up to {miss}, ") as caught:
                take(with_row(total=total), LABELS)
            assert len(caught) == 1, name
            assert caught[0].filename == (wrapped.__file__ if name in ADAPTERS else __file__), name  # that called it


def test_more_is_damage():
    for take in TAKERS.values():
        for row, found in (
            ({"total": 1.002}, "a sum of 1.002"),
            ({"total": 0.998}, "a sum of 0.998"),
            ({"least": -2e-5}, "-2e-05"),
        ):
            with pytest.raises(ValueError, match=rf"summing to 1 within 0.001.*got {found}\S* (in row|at index) 7;"):
                take(with_row(**row), LABELS)


@pytest.mark.parametrize("least", [-1e-17, -9e-6])
def test_what_rounding_leaves_below_zero_is_zero_to_a_logarithm(least):
    """As one minus the sum of the others leaves it; the entry is that of row 7's label."""
    labels, probs = LABELS.clone(), with_row(least=least)
    labels[7] = 3
    for take in TAKERS.values():
        take(probs, labels)
    assert not any(math.isnan(metric(probs, labels)) for metric in METRICS.values())
    assert metrics.nll(probs, labels) == metrics.summary(probs, labels).nll == TAKERS["NLL"](probs, labels) == math.inf
    assert metrics.bootstrap(metrics.nll, probs, labels, resamples=20).estimate == math.inf
    assert theory.minimise(probs, gamma=2.0, lam=1.0).q[7, 3] == 0


def test_values_are_used_as_they_are():
    probs = torch.tensor([[0.7003, 0.3], [0.2, 0.8]], dtype=torch.float64)
    with pytest.warns(ProbabilityWarning):
        assert metrics.nll(probs, [0, 1]) == pytest.approx(-(math.log(0.7003) + math.log(0.8)) / 2, rel=1e-12)
    with pytest.warns(ProbabilityWarning):
        assert metrics.brier(probs, [0, 1]) == pytest.approx((0.2997**2 + 0.3**2 + 2 * 0.2**2) / 2, rel=1e-12)
    with pytest.warns(ProbabilityWarning):
        assert metrics.confidence_gap(probs, [0, 1]) == pytest.approx(1.5003 / 2 - 1, rel=1e-12)


def test_a_confidence_above_one_has_the_last_bin():
    probs = torch.tensor([[1.0005, 0.0], [0.0, 1.0]], dtype=torch.float64).repeat(50, 1)
    with pytest.warns(ProbabilityWarning):
        found = metrics.summary(probs, [0, 1] * 50)
    assert found.reliability.count.tolist() == [0] * 14 + [100]
    for name in ("ece", "adaptive_ece", "smooth_ece", "mce", "confidence_gap", "brier", "nll"):
        assert abs(getattr(found, name)) < 1e-3, name


def test_printed_digits_and_half_precision_change_a_metric_by_no_more_than_their_rounding():
    exact = metrics.summary(PROBS, LABELS).as_dict()
    for rounded in (PROBS.double().round(decimals=4), PROBS.half(), PROBS.bfloat16()):
        with pytest.warns(ProbabilityWarning):
            found = metrics.summary(rounded, LABELS).as_dict()
        for name in ("error", "brier", "ece", "classwise_ece", "confidence_gap"):
            assert found[name] == pytest.approx(exact[name], abs=0.01), name


def test_an_ignored_row_is_neither_refused_nor_mentioned():
    labels = LABELS.clone()
    labels[7] = -100
    for total in (1.0005, 1.3):
        for metric in METRICS.values():
            assert math.isfinite(metric(with_row(total=total), labels, ignore_index=-100))


def test_several_labels_a_row_may_miss_the_ends_by_rounding():
    probs = np.array([[1 + 2e-16, -1e-17], [0.5, 1 + 9e-6], [0.2, 0.3]])
    for labels in (np.array([[1, 0], [1, 1], [0, 0]]), np.array([[0, 1], [1, 1], [0, 0]])):
        for name, metric in metrics.MULTILABEL_METRICS.items():
            if name != "auroc":
                assert not math.isnan(metric(probs, labels)), name
        assert Predictions(probs=probs, labels=labels, split="test", multilabel=True).n == 3
        adapter = adapters.MultilabelNLL(num_labels=2)
        adapter.update(probs, labels)
        assert float(adapter.compute()) == pytest.approx(metrics.multilabel_nll(probs, labels))
    assert metrics.multilabel_nll(probs, labels) == math.inf
    with pytest.raises(ValueError, match=r"got 1\.0001 in row 0, column 0"):
        metrics.multilabel_ece(np.array([[1.0001]]), np.array([[1]]))


def test_the_rule_is_the_same_for_arrays_and_tensors():
    least, total = np.array([0.0, -9e-6, -2e-5, np.nan, 0, 0]), np.array([1.0, 1.0009, 1.0, 1.0, 0.998, np.inf])
    expected = [False, False, True, True, True, True]
    assert off_simplex(least, total).tolist() == expected
    assert off_simplex(torch.tensor(least), torch.tensor(total)).tolist() == expected
