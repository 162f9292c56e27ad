"""The matched scale: one number, made of the gradients of cross-entropy and of the loss."""

import math

import numpy as np
import pytest
import scipy.special
import torch
from hypothesis import given
from hypothesis import strategies as st
from references.gradients import value_and_gradient
from support.engines import ENGINES

from focalcal.losses import (
    LOSSES,
    BrierLoss,
    CrossEntropyLoss,
    FocalCalibrationLoss,
    FocalLoss,
    MultilabelBrierLoss,
    MultilabelFocalCalibrationLoss,
    MultilabelFocalLoss,
    functional,
    matched_scale,
)
from focalcal.losses.formula import Terms
from focalcal.losses.scale import _digamma

SCALED = [name for name, loss in LOSSES.items() if "scale" in loss._settings]


def test_the_focal_family_has_two_scales():
    assert {"fcl", "focal", "brier", "multilabel_fcl", "multilabel_focal", "multilabel_brier"} == set(SCALED)


def own_gradient(loss, own, classes):
    """Of the true logit, where the other classes share what p_y leaves; (n,) for p_y (n,)."""
    others = torch.log((1 - own) / (classes - 1)).unsqueeze(1).expand(-1, classes - 1)
    logits = torch.cat([own.log().unsqueeze(1), others], 1).requires_grad_()
    return torch.autograd.grad(loss(logits, torch.zeros(len(own), dtype=torch.long)), logits)[0][:, 0]


@pytest.mark.once
@given(gamma=st.floats(0, 8), lam=st.floats(0, 1000), classes=st.integers(2, 100))
def test_the_ratio_is_what_autograd_says(gamma, lam, classes):
    """At p = 1 / K, and of the means over p_y, by Gauss-Legendre quadrature."""
    nodes, weights = (torch.from_numpy(part) for part in np.polynomial.legendre.leggauss(60))
    start = torch.tensor([1 / classes], dtype=torch.float64)
    sums = [
        (own_gradient(loss, start, classes).item(), own_gradient(loss, (1 + nodes) / 2, classes) @ weights)
        for loss in (FocalCalibrationLoss(gamma, lam, reduction="sum"), CrossEntropyLoss(reduction="sum"))
    ]
    ratio = math.sqrt(sums[0][0] / sums[1][0] * sums[0][1] / sums[1][1])
    assert matched_scale(gamma, lam, classes) == pytest.approx(ratio, rel=1e-4)


@pytest.mark.parametrize("x", [2.0, 2.5, 3.7, 9.99, 10.0, 12.3, 50.0, 1000.0])
def test_the_digamma_function_is_as_accurate_as_it_says(x):
    assert _digamma(x) == pytest.approx(scipy.special.digamma(x), rel=0, abs=1e-13)


@pytest.mark.parametrize("labels", [1, 5])
def test_a_label_is_a_problem_of_two_classes_however_many_there_are(labels):
    logits, target = torch.randn(4, labels), torch.randint(0, 2, (4, labels))
    for loss, gamma, lam in (
        (MultilabelFocalCalibrationLoss(3, 4, scale="matched"), 3.0, 4.0),
        (MultilabelFocalLoss(3, scale="matched"), 3.0, 0.0),
    ):
        paper = MultilabelFocalCalibrationLoss(gamma, lam)
        torch.testing.assert_close(loss(logits, target), paper(logits, target) / matched_scale(gamma, lam, 2))
    brier = MultilabelBrierLoss(scale="matched")
    torch.testing.assert_close(brier(logits, target), MultilabelBrierLoss()(logits, target) * math.sqrt(1.5))


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("shape", [(6, 1), (6, 4), (3, 5, 2), (4, 1000)])
def test_a_scale_is_one_number_on_every_engine(engine, shape):
    logits, labels = 3 * torch.randn(shape), torch.randint(0, shape[1], (shape[0], *shape[2:]))
    ratio = matched_scale(2.5, 7.0, shape[1])
    value, gradient = value_and_gradient(logits, labels, Terms(gamma=2.5, lam=7.0), engine, reduction="sum")
    matched = value_and_gradient(logits, labels, Terms(gamma=2.5, lam=7.0, matched=True), engine, reduction="sum")
    torch.testing.assert_close(matched[0], value / ratio)
    torch.testing.assert_close(matched[1], gradient / ratio)


def test_of_functions_and_modules_alike():
    logits, labels = torch.randn(6, 4), torch.randint(0, 4, (6,))
    each = functional.focal_calibration(logits, labels, gamma=3.0, lam=2.0, scale="matched")
    torch.testing.assert_close(
        each, functional.focal_calibration(logits, labels, gamma=3.0, lam=2.0) / matched_scale(3.0, 2.0, 4)
    )
    torch.testing.assert_close(FocalCalibrationLoss(3, 2, scale="matched")(logits, labels), each.mean())
    torch.testing.assert_close(
        functional.focal(logits, labels, gamma=2.0, scale="matched"),
        functional.focal(logits, labels, gamma=2.0) / matched_scale(2.0, 0.0, 4),
    )
    torch.testing.assert_close(
        functional.brier(logits, labels, scale="matched"), 4.5**0.5 * functional.brier(logits, labels)
    )


def test_a_large_lam_is_the_brier_score():
    logits, labels = torch.randn(6, 4), torch.randint(0, 4, (6,))
    loss = FocalCalibrationLoss(3, 1e9, scale="matched")
    torch.testing.assert_close(loss(logits, labels), BrierLoss(scale="matched")(logits, labels))


def test_cross_entropy_has_ratio_one_and_one_class_too():
    assert matched_scale(0, 0, 7) == 1
    assert matched_scale(3, 2, 1) == 1


def test_the_scale_can_change_and_is_checked():
    loss = FocalCalibrationLoss(scale="matched")
    assert repr(loss) == "FocalCalibrationLoss(gamma=3, lam=1, scale='matched')"
    assert repr(FocalLoss(scale="paper")) == "FocalLoss(gamma=3)"
    logits, labels = torch.randn(6, 4), torch.randint(0, 4, (6,))
    loss.scale = "paper"
    torch.testing.assert_close(loss(logits, labels), FocalCalibrationLoss()(logits, labels))
    with pytest.raises(ValueError, match=r"gamma = 1e\+06 leaves no gradient at the uniform prediction of 4 classes"):
        FocalLoss(1e6, scale="matched")(logits, labels)
    with pytest.raises(ValueError, match="classes must be a whole number >= 1 and <= 1000000000, got 0"):
        matched_scale(3, 1, 0)
