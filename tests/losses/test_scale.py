"""The matched scale: cross-entropy's first step, the minimiser of the paper's scale."""

import pytest
import torch
import torch.nn.functional as F
from hypothesis import given
from hypothesis import strategies as st
from references.gradients import value_and_gradient
from support.engines import ENGINES

from focalcal.losses import (
    LOSSES,
    BrierLoss,
    FocalCalibrationLoss,
    FocalLoss,
    MultilabelBrierLoss,
    MultilabelFocalCalibrationLoss,
    MultilabelFocalLoss,
    functional,
    matched_scale,
)
from focalcal.losses.formula import Terms

SCALED = [name for name, loss in LOSSES.items() if "scale" in loss._settings]


def first_step(loss, target, shape):
    logits = torch.zeros(shape, dtype=torch.float64, requires_grad=True)
    return torch.autograd.grad(loss(logits, target), logits)[0]


def test_the_focal_family_has_two_scales():
    assert {"fcl", "focal", "brier", "multilabel_fcl", "multilabel_focal", "multilabel_brier"} == set(SCALED)


@given(gamma=st.floats(0, 8), lam=st.floats(0, 1000), classes=st.integers(2, 300))
def test_the_first_step_is_that_of_cross_entropy(gamma, lam, classes):
    """In every entry, for class indices and for class probabilities."""
    for target in (torch.tensor([0, classes - 1]), torch.rand(2, classes, dtype=torch.float64).softmax(1)):
        expected = first_step(F.cross_entropy, target, (2, classes))
        for loss in (FocalCalibrationLoss(gamma, lam, scale="matched"), FocalLoss(gamma, scale="matched")):
            torch.testing.assert_close(first_step(loss, target, (2, classes)), expected, rtol=1e-9, atol=1e-12)
        torch.testing.assert_close(first_step(BrierLoss(scale="matched"), target, (2, classes)), expected)


@pytest.mark.parametrize("labels", [1, 5])
def test_and_that_of_binary_cross_entropy_for_any_number_of_labels(labels):
    target = torch.randint(0, 2, (4, labels)).double()
    expected = first_step(F.binary_cross_entropy_with_logits, target, (4, labels))
    for loss in (
        MultilabelFocalCalibrationLoss(3, 4, scale="matched"),
        MultilabelFocalLoss(3, scale="matched"),
        MultilabelBrierLoss(scale="matched"),
    ):
        torch.testing.assert_close(first_step(loss, target, (4, labels)), expected)


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
    torch.testing.assert_close(functional.brier(logits, labels, scale="matched"), 2 * functional.brier(logits, labels))


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
    logits, labels = torch.randn(6, 4), torch.randint(0, 4, (6,))
    loss.scale = "paper"
    torch.testing.assert_close(loss(logits, labels), FocalCalibrationLoss()(logits, labels))
    for name in SCALED:
        with pytest.raises(ValueError, match="scale must be one of 'paper', 'matched', got 'mached'"):
            LOSSES[name](scale="mached")
    with pytest.raises(ValueError, match="classes must be a whole number >= 1, got 0"):
        matched_scale(3, 1, 0)
    for logits in ("logits", torch.tensor(1.0), torch.zeros(3, 0)):
        with pytest.raises((TypeError, ValueError), match="logits must"):
            FocalCalibrationLoss(scale="matched")(logits, labels)
