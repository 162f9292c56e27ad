import pytest
import torch
import torch.nn.functional as F

from focalcal.losses import (
    MultilabelBCELoss,
    MultilabelBrierLoss,
    MultilabelFocalCalibrationLoss,
    MultilabelFocalLoss,
    functional,
)


def test_bce_is_torchs():
    z, target = 3 * torch.randn(8, 14), torch.randint(0, 2, (8, 14))
    expected = F.binary_cross_entropy_with_logits(z, target.float())
    torch.testing.assert_close(MultilabelBCELoss()(z, target), expected)
    torch.testing.assert_close(MultilabelBCELoss()(z, target.bool()), expected)
    soft = torch.rand(8, 14)
    torch.testing.assert_close(MultilabelBCELoss()(z, soft), F.binary_cross_entropy_with_logits(z, soft))


@pytest.mark.parametrize("gamma", [0.0, 0.5, 2.0])
def test_each_label_is_a_two_class_problem(gamma):
    """sigmoid(z) is the softmax of (0, z): the multi-label losses are the single-label ones with K = 2."""
    z, target = 3 * torch.randn(30, dtype=torch.float64), torch.randint(0, 2, (30,))
    pair = torch.stack([torch.zeros_like(z), z], 1)
    torch.testing.assert_close(
        functional.multilabel_focal_calibration(z, target, gamma=gamma, lam=1.5),
        functional.focal_calibration(pair, target, gamma=gamma, lam=1.5),
    )


def test_fcl_is_focal_plus_lam_brier():
    z, target = torch.randn(5, 3), torch.randint(0, 2, (5, 3))
    whole = MultilabelFocalCalibrationLoss(2.0, 0.7)(z, target)
    parts = MultilabelFocalLoss(2.0)(z, target) + 0.7 * MultilabelBrierLoss()(z, target)
    torch.testing.assert_close(whole, parts)


@pytest.mark.parametrize("gamma", [0.3, 0.5, 2.0, 5.0])
def test_gradients_stay_exact_in_float32(gamma):
    z = torch.tensor([-60.0, -30.0, -17.0, 0.0, 17.0, 30.0, 60.0])
    grads = []
    for dtype in (torch.float32, torch.float64):
        leaf = z.to(dtype).requires_grad_()
        loss = functional.multilabel_focal_calibration(leaf, torch.ones(7, dtype=torch.long), gamma=gamma, lam=1.0)
        grads.append(torch.autograd.grad(loss.sum(), leaf)[0].double())
    assert torch.isfinite(grads[0]).all()
    torch.testing.assert_close(grads[0], grads[1], rtol=1e-4, atol=1e-37)


def test_unknown_labels_are_left_out_of_the_mean():
    z, target = torch.randn(6, 4), torch.randint(0, 2, (6, 4)).float()
    target[2, 1] = target[5, 3] = -1
    loss = MultilabelFocalCalibrationLoss(ignore_index=-1)
    known = target != -1
    expected = functional.multilabel_focal_calibration(z[known], target[known], gamma=2.0, lam=2.0).mean()
    torch.testing.assert_close(loss(z, target), expected)


def test_infinite_logits_with_a_certain_target():
    z = torch.tensor([torch.inf, -torch.inf])
    for target in (torch.tensor([1, 0]), torch.tensor([1.0, 0.0])):
        assert not functional.multilabel_focal_calibration(z, target, gamma=2.0, lam=1.0).any()


def test_a_weight_belongs_to_a_label():
    z, target = torch.randn(6, 2), torch.randint(0, 2, (6, 2))
    weight = torch.tensor([3.0, 1.0])
    each = functional.multilabel_brier(z, target)
    expected = (each * weight).sum() / (6 * weight.sum())
    torch.testing.assert_close(MultilabelBrierLoss(weight=weight)(z, target), expected)
