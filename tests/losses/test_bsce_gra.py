import pytest
import torch
import torch.nn.functional as F
from hypothesis import given
from hypothesis import strategies as st

from focalcal.losses.functional import bsce_gra


@given(gamma=st.floats(0, 6), seed=st.integers(0, 99))
def test_cross_entropy_and_its_gradient_times_a_power_of_the_brier_score(gamma, seed):
    """The definition, and the authors' published code: the norm of e_y - p to the power gamma, detached."""
    generator = torch.Generator().manual_seed(seed)
    z = (3 * torch.randn(7, 5, generator=generator, dtype=torch.float64)).requires_grad_()
    labels = torch.randint(0, 5, (7,), generator=generator)
    gap = z.detach().softmax(1) - F.one_hot(labels, 5)
    weight = gap.norm(dim=1) ** gamma
    each = bsce_gra(z, labels, gamma=gamma)
    torch.testing.assert_close(each, weight * F.cross_entropy(z.detach(), labels, reduction="none"))
    (gradient,) = torch.autograd.grad(each.sum(), z)
    torch.testing.assert_close(gradient, weight[:, None] * gap)


@pytest.mark.parametrize("gamma", [1.0, 4.0])
def test_a_fitted_posterior_comes_out_flatter(gamma):
    """Where the expected gradient is zero p_k is proportional to eta_k |p - e_k|^gamma."""
    eta = torch.tensor([0.7, 0.2, 0.1], dtype=torch.float64)
    z, every = torch.zeros(3, 3, dtype=torch.float64), torch.arange(3)
    for _ in range(1000):
        leaf = z.clone().requires_grad_()
        (gradient,) = torch.autograd.grad((eta * bsce_gra(leaf, every, gamma=gamma)).sum(), leaf)
        z = z - 4 * gradient.sum(0)  # the three rows are one state, seen with each of its labels
    p = z[0].softmax(0)
    torch.testing.assert_close(p, F.normalize(eta * (p - torch.eye(3)).norm(dim=1) ** gamma, p=1, dim=0))
    assert p[0] < eta[0] - 0.05
    assert p.argmax() == 0
