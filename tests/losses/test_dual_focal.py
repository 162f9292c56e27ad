import pytest
import torch

from focalcal import _native
from focalcal.losses import DualFocalLoss
from focalcal.losses.functional import dual_focal


def test_the_rival_is_the_best_class_ranked_below_the_label():
    z = torch.tensor([[1.0, 3.0, 0.5, -1.0]], dtype=torch.float64)
    p = z.softmax(1)[0]
    for label, rival in ((1, p[0]), (0, p[2]), (2, p[3]), (3, 0.0)):  # the last has none below it
        expected = -((1 - p[label] + rival) ** 5) * p[label].log()
        torch.testing.assert_close(dual_focal(z, torch.tensor([label]), gamma=5.0)[0], expected)


def test_a_tied_class_is_not_below():
    z = torch.zeros(1, 3, dtype=torch.float64)
    expected = -((2 / 3) ** 2) * torch.log(torch.tensor([1 / 3], dtype=torch.float64))
    torch.testing.assert_close(dual_focal(z, torch.tensor([0]), gamma=2.0), expected)


@pytest.mark.skipif(not _native.available(), reason="the native kernel was not built here")
@pytest.mark.parametrize("shape", [(40, 7), (40, 103), (2, 7, 5, 9)])
@pytest.mark.parametrize("tied", [False, True])
def test_the_kernel_agrees_with_the_formula(shape, tied):
    z = 2 * torch.randn(shape, dtype=torch.float64)
    z = (z.round() if tied else z).requires_grad_()  # rounded: several classes are the rival, and share
    labels = torch.randint(0, shape[1], (shape[0], *shape[2:]))
    native, formula = DualFocalLoss(2.5), DualFocalLoss(2.5)
    native.engine, formula.engine = "native", "formula"
    torch.testing.assert_close(native(z, labels), formula(z, labels))
    grads = [torch.autograd.grad(loss(z, labels), z)[0] for loss in (native, formula)]
    torch.testing.assert_close(grads[0], grads[1])
