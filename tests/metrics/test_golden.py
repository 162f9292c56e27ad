"""Values of published reference code on inputs given by formulas (tolerance 1e-6: parts of it run in float32).

Origins: ECE, AdaECE ("fc"), classwise ECE, MCE, NLL and Brier score from torrvision/focal_calibration; smECE from
apple/ml-calibration (relplot). The AdaECE with a closed first bin and the smECE with whole ends are our own rules.
"""

import numpy as np
import pytest
import torch
from references.golden import TOLERANCE, single_label

from focalcal import metrics

VALUES = [
    (metrics.ece, {}, 0.0649354),
    (metrics.adaptive_ece, {}, 0.0608977),
    (metrics.adaptive_ece, {"convention": "fc"}, 0.0609921),
    (metrics.classwise_ece, {}, 0.0213568),
    (metrics.mce, {}, 0.2701216),
    (metrics.nll, {}, 1.2003702477),
    (metrics.brier, {}, 0.6210952805),
    (metrics.error, {}, 0.48),
    (metrics.smooth_ece, {}, 0.0526495933),
    (metrics.smooth_ece, {"convention": "relplot"}, 0.0526495933),
    (metrics.smooth_ece, {"bandwidth": 0.05}, 0.0529884668),
]


@pytest.mark.parametrize(("metric", "options", "value"), VALUES)
@pytest.mark.parametrize("dtype", [torch.float64, torch.float32])
def test_single_label(metric, options, value, dtype, engine):
    logits, labels = single_label()
    assert metric(logits.softmax(1).to(dtype), labels, **options) == pytest.approx(value, abs=TOLERANCE)


def test_summary_holds_them_all(engine):
    logits, labels = single_label()
    found = metrics.summary(logits.softmax(1), labels).as_dict()
    for metric, options, value in VALUES:
        if not options:
            assert found[metric.__name__] == pytest.approx(value, abs=TOLERANCE)
    assert metrics.summary(logits=logits, labels=labels).as_dict() == pytest.approx(found, abs=1e-12)


def binary():
    i = np.arange(1, 1001)
    f = np.mod(0.6180339887498949 * i, 1.0)
    return f[:, None], (np.mod(0.7548776662466927 * i, 1.0) < f**1.3)[:, None].astype(int)


def test_binary_smooth_ece():
    probs, labels = binary()
    theirs = metrics.multilabel_smooth_ece(probs, labels, convention="relplot")
    assert theirs == pytest.approx(0.0628440856, abs=1e-9)
    # Probabilities all over [0, 1]: a thousandth of them lies in the intervals at the ends.
    assert metrics.multilabel_smooth_ece(probs, labels) == pytest.approx(theirs, abs=5e-5)
