"""Values of published reference code on inputs given by formulas (tolerance 1e-6: parts of it run in float32).

Origins: ECE, AdaECE ("fc"), classwise ECE, MCE, NLL and Brier score from torrvision/focal_calibration; smECE from
apple/ml-calibration (relplot). The AdaECE with a closed first bin and the smECE with whole ends are our own rules.
"""

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
