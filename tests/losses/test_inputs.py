"""What a loss takes beside plain indices; what every loss refuses is in tests/contracts/test_refusals_of_losses.py."""

import numpy as np
import pytest
import torch
from support.every_loss import LOSSES, SOFT
from torch.nn import functional as F

from focalcal.losses import FocalCalibrationLoss, FocalLoss

Z = torch.randn(4, 3)
Y = torch.tensor([0, 1, 2, 0])


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.float16, torch.bfloat16])
def test_rounded_probabilities_are_taken(dtype):
    target = torch.tensor([[0.998, 0.002, 0.0], [1 / 3, 1 / 3, 1 / 3], [0.3333, 0.3333, 0.3333]]).to(dtype)
    spoilt = target.clone()
    spoilt[1, 0] = torch.nan
    for name in SOFT:
        assert torch.isfinite(LOSSES[name]()(Z[:3], target)), name
        assert torch.isnan(LOSSES[name]()(Z[:3], spoilt)), name  # propagates, as in F.cross_entropy


def test_a_target_of_zeros_ignores_its_example():
    target = torch.tensor([[0.2, 0.3, 0.5], [0.0, 0.0, 0.0]])
    for name in ("ce", "focal", "brier", "fcl"):
        each = LOSSES[name](reduction="none")(Z[:2], target)
        assert each[1] == 0
        assert each[0] > 0
    torch.testing.assert_close(LOSSES["ce"]()(Z[:2], target), F.cross_entropy(Z[:2], target))


@pytest.mark.parametrize("weight", [[1, 2, 3], np.array([1.0, 2.0, 3.0]), np.array([1, 2, 3]), torch.tensor([1, 2, 3])])
def test_weights_may_be_lists_and_arrays(weight):
    expected = FocalLoss(weight=torch.tensor([1.0, 2.0, 3.0]))(Z, Y)
    torch.testing.assert_close(FocalLoss(weight=weight)(Z, Y), expected)


def test_a_class_can_be_ignored():
    """ignore_index may be a class, as in segmentation's background."""
    kept = torch.tensor([1, 2])
    torch.testing.assert_close(FocalCalibrationLoss(ignore_index=0)(Z, Y), FocalCalibrationLoss()(Z[kept], Y[kept]))
    torch_path = FocalCalibrationLoss(ignore_index=0)
    torch_path.engine = "torch"
    torch.testing.assert_close(torch_path(Z, Y), FocalCalibrationLoss()(Z[kept], Y[kept]))
