"""A label that was NaN is no label: cast to int64 it is -2**63 on most processors, which no metric may leave out."""

import inspect

import pytest
import torch

from focalcal import metrics
from focalcal.integrations import torchmetrics as adapters

MISSING = -(2**63)
PROBS = torch.tensor([[0.8, 0.2], [0.3, 0.7], [0.6, 0.4], [0.1, 0.9]])
LABELS = torch.tensor([0, 1, MISSING, MISSING])
FUNCTIONS = [
    *metrics.METRICS.values(),
    metrics.summary,
    metrics.reliability,
    metrics.murphy,
    metrics.CalibrationSketch.of,
    lambda *rows, **options: metrics.bootstrap(metrics.ece, *rows, **options),
]
ADAPTERS = [
    getattr(adapters, name)
    for name in adapters.__all__
    if "num_classes" in inspect.signature(getattr(adapters, name)).parameters
]
REFUSED = rf"labels must be from 0 to 1, got {MISSING} at flat position 2"


def test_every_function_names_the_label_and_the_range(engine):
    for function in FUNCTIONS:
        with pytest.raises(ValueError, match=REFUSED):
            function(PROBS, LABELS)
        with pytest.raises(ValueError, match=REFUSED.replace(", got", " or ignore_index = -100, got")):
            function(PROBS, LABELS, ignore_index=-100)
    for function in (metrics.nll, metrics.summary, metrics.CalibrationSketch.of):
        with pytest.raises(ValueError, match=REFUSED):
            function(logits=PROBS.log(), labels=LABELS)


def test_every_adapter_does(engine):
    assert adapters.ECE in ADAPTERS
    for adapter in ADAPTERS:
        for scores in ("probs", "logits"):
            with pytest.raises(ValueError, match=REFUSED):
                adapter(num_classes=2, scores=scores, **({"k": 1} if adapter is adapters.TopKAccuracy else {})).update(
                    PROBS, LABELS
                )


def test_it_can_be_named_as_the_label_to_leave_out(engine):
    for metric in metrics.METRICS.values():
        assert metric(PROBS, LABELS, ignore_index=MISSING) == pytest.approx(metric(PROBS[:2], LABELS[:2]))
