import pytest
import torch
import torch.nn.functional as F

from focalcal.losses import LabelSmoothingLoss
from focalcal.losses.functional import label_smoothing


@pytest.mark.parametrize("epsilon", [0.0, 0.05, 0.3])
def test_others_is_cross_entropy_with_the_literatures_target(epsilon):
    z, labels = torch.randn(9, 6, dtype=torch.float64), torch.randint(0, 6, (9,))
    target = torch.full((9, 6), epsilon / 5, dtype=torch.float64).scatter_(1, labels[:, None], 1 - epsilon)
    expected = F.cross_entropy(z, target, reduction="none")
    torch.testing.assert_close(label_smoothing(z, labels, epsilon=epsilon), expected)
    torch.testing.assert_close(LabelSmoothingLoss(epsilon)(z, labels), expected.mean())


@pytest.mark.parametrize("shape", [(40, 7), (40, 300), (2, 7, 5, 9)])
def test_the_kernel_agrees_with_torch(shape):
    z = (3 * torch.randn(shape, dtype=torch.float64)).requires_grad_()
    labels = torch.randint(0, shape[1], (shape[0], *shape[2:]))
    ours, reference = LabelSmoothingLoss(0.2, "all")(z, labels), F.cross_entropy(z, labels, label_smoothing=0.2)
    torch.testing.assert_close(ours, reference)
    torch.testing.assert_close(torch.autograd.grad(ours, z)[0], torch.autograd.grad(reference, z)[0])


def test_all_is_torchs():
    z, labels = torch.randn(9, 6), torch.randint(0, 6, (9,))
    weight = torch.rand(6)
    ours = LabelSmoothingLoss(0.1, "all", weight=weight)(z, labels)
    torch.testing.assert_close(ours, F.cross_entropy(z, labels, weight, label_smoothing=0.1))


def test_bad_arguments():
    with pytest.raises(ValueError, match="spread must be"):
        label_smoothing(torch.randn(3, 2), torch.zeros(3, dtype=torch.long), spread="foo")
    with pytest.raises(ValueError, match="epsilon must be"):
        label_smoothing(torch.randn(3, 2), torch.zeros(3, dtype=torch.long), epsilon=-0.1)
    with pytest.raises(ValueError, match="epsilon must be below 1"):
        LabelSmoothingLoss(1.0)
    with pytest.raises(ValueError, match="spread must be one of 'others', 'all', got 'some'"):
        LabelSmoothingLoss(spread="some")
    with pytest.raises(ValueError, match=r"at most \(K - 1\) / K = 0.5 for K = 2"):
        LabelSmoothingLoss(0.6)(torch.randn(3, 2), torch.zeros(3, dtype=torch.long))
    with pytest.raises(ValueError, match="K = 1"):
        LabelSmoothingLoss()(torch.randn(3, 1), torch.zeros(3, dtype=torch.long))
