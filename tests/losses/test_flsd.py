import pytest
import torch

from focalcal.losses import FLSDLoss, FocalLoss
from focalcal.losses.functional import flsd, focal


def test_gamma_five_below_a_fifth_and_three_from_it_on():
    p = torch.tensor([0.05, 0.19, 0.21, 0.9], dtype=torch.float64)
    z = torch.stack([p.log(), (1 - p).log()], 1)
    labels = torch.zeros(4, dtype=torch.long)
    each = flsd(z, labels)
    torch.testing.assert_close(each[:2], focal(z[:2], labels[:2], gamma=5.0))
    torch.testing.assert_close(each[2:], focal(z[2:], labels[2:], gamma=3.0))


@pytest.mark.parametrize(("threshold", "gamma"), [(0.0, 3.0), (1.0, 5.0)])
def test_one_sided_thresholds_are_plain_focal(threshold, gamma):
    z, labels = torch.randn(20, 4), torch.randint(0, 4, (20,))
    torch.testing.assert_close(FLSDLoss(threshold=threshold)(z, labels), FocalLoss(gamma)(z, labels))


def test_the_gammas_can_be_scheduled():
    z, labels, loss = torch.randn(20, 4), torch.randint(0, 4, (20,)), FLSDLoss()
    assert (loss.gamma_hard, loss.gamma_easy, loss.threshold) == (5.0, 3.0, 0.2)
    loss.gamma_hard = loss.gamma_easy = 1.0
    torch.testing.assert_close(loss(z, labels), FocalLoss(1.0)(z, labels))
