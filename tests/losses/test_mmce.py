from typing import get_args

import pytest
import torch
import torch.nn.functional as F

from focalcal.losses import MMCELoss
from focalcal.losses.functional import mmce
from focalcal.losses.mmce import Variant


def written_out(logits, labels, variant, width=0.4):
    """The definitions with the full N x N kernel."""
    c, predicted = logits.softmax(1).max(1)
    a = (predicted == labels).to(c.dtype)
    kernel = torch.exp(-(c[:, None] - c).abs() / width)
    m, n = a.sum(), (1 - a).sum()
    if variant == "unweighted":
        return ((a - c)[:, None] * (a - c) * kernel).sum() / len(c) ** 2
    right, wrong = (1 - c) * a, c * (1 - a)
    sums = [
        (right[:, None] * right * kernel).sum() / m**2,
        (wrong[:, None] * wrong * kernel).sum() / n**2,
        (right[:, None] * wrong * kernel).sum() / (m * n),
    ]
    if variant == "as_coded":
        sums = [s / (d + 1e-5) for s, d in zip(sums, (m**2, n**2, m * n), strict=True)]
    return (sums[0] + sums[1] - 2 * sums[2] + 1e-10).sqrt()


@pytest.mark.parametrize("variant", get_args(Variant))
@pytest.mark.parametrize("width", [0.4, 0.05, 2.0, 0.02, 0.005])
def test_sorting_gives_the_value_and_gradient_of_the_full_kernel(variant, width):
    z = (2 * torch.randn(60, 5, dtype=torch.float64)).requires_grad_()
    labels = torch.where(torch.rand(60) < 0.5, z.argmax(1), torch.randint(0, 5, (60,)))
    fast, slow = mmce(z, labels, variant=variant, width=width), written_out(z, labels, variant, width)
    torch.testing.assert_close(fast, slow)
    torch.testing.assert_close(torch.autograd.grad(fast, z)[0], torch.autograd.grad(slow, z)[0])


@pytest.mark.parametrize("variant", get_args(Variant))
def test_equal_confidences_have_the_kernels_slope_of_zero_between_them(variant):
    z = torch.randn(12, 4, dtype=torch.float64).repeat(3, 1).requires_grad_()  # every confidence three times
    labels = torch.randint(0, 4, (36,))
    fast, slow = mmce(z, labels, variant=variant), written_out(z, labels, variant)
    torch.testing.assert_close(torch.autograd.grad(fast, z)[0], torch.autograd.grad(slow, z)[0])


@pytest.mark.parametrize("variant", get_args(Variant))
def test_the_loss_is_cross_entropy_plus_lam_times_the_measure(variant):
    z, labels = torch.randn(40, 4), torch.randint(0, 4, (40,))
    measure = mmce(z, labels, variant=variant)
    torch.testing.assert_close(MMCELoss(3.0, variant)(z, labels), F.cross_entropy(z, labels) + 3 * measure)
    torch.testing.assert_close(
        MMCELoss(3.0, variant, reduction="sum")(z, labels),
        F.cross_entropy(z, labels, reduction="sum") + 3 * 40 * measure,
    )
    torch.testing.assert_close(MMCELoss(0.0, variant)(z, labels), F.cross_entropy(z, labels))


@pytest.mark.parametrize("variant", get_args(Variant))
@pytest.mark.parametrize("case", ["one", "right", "wrong", "saturated", "saturated wrong", "tied", "one class"])
def test_never_nan(variant, case):
    z, labels = torch.randn(12, 3), torch.zeros(12, dtype=torch.long)
    if case == "one":
        z, labels = z[:1], labels[:1]
    elif case == "right":
        labels = z.argmax(1)
    elif case == "wrong":
        labels = z.argmin(1)
    elif case.startswith("saturated"):
        z = torch.zeros(12, 3)
        z[:, 0 if case == "saturated" else 1] = 1e4
        z[:3, 2] = 2e4
    elif case == "tied":
        z = torch.zeros(12, 3)
    else:
        z = torch.randn(12, 1)
    z.requires_grad_()
    value = MMCELoss(variant=variant)(z, labels)
    value.backward()
    assert torch.isfinite(value)
    assert torch.isfinite(z.grad).all()


def test_a_segmentation_batch_needs_no_quadratic_memory():
    z = torch.randn(2, 4, 128, 128, requires_grad=True)  # 32,768 positions: the kernel would take 4 GB
    value = MMCELoss()(z, torch.randint(0, 4, (2, 128, 128)))
    value.backward()
    assert torch.isfinite(z.grad).all()


def test_what_only_mmce_refuses():
    with pytest.raises(ValueError, match=r"belongs to the batch, .* got 'none'; use CrossEntropyLoss"):
        MMCELoss(reduction="none")
    with pytest.raises(TypeError, match=r"ignore_index must be a whole number of 64 bits or None, got 1\.5"):
        mmce(torch.zeros(4, 3), torch.zeros(4, dtype=torch.long), ignore_index=1.5)
