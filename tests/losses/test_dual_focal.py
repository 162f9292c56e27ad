import pytest
import torch
import torch.nn.functional as F

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


def test_gamma_zero_is_cross_entropy():
    z, labels = torch.randn(9, 4), torch.randint(0, 4, (9,))
    torch.testing.assert_close(DualFocalLoss(0)(z, labels), F.cross_entropy(z, labels))


@pytest.mark.parametrize("gamma", [0.3, 0.5, 2.5, 5.0])
def test_gradient_stays_exact_for_a_confident_example(gamma):
    """Where 1 - p_y in float32 would be 0: compare with float64, which still resolves it."""
    z = torch.tensor([[25.0, 0.0, -1.0], [14.0, 0.5, 0.0]])
    labels = torch.zeros(2, dtype=torch.long)
    grads = []
    for dtype in (torch.float32, torch.float64):
        leaf = z.to(dtype).requires_grad_()
        grads.append(torch.autograd.grad(DualFocalLoss(gamma)(leaf, labels), leaf)[0].double())
    torch.testing.assert_close(grads[0], grads[1], rtol=1e-4, atol=1e-37)
