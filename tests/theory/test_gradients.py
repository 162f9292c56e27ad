"""The true-logit gradients in closed form, against autograd of the losses that train, and their scaling."""

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from support.engines import ENGINES

from focalcal.losses import BrierLoss, CrossEntropyLoss, FocalLoss
from focalcal.theory.gradients import anchor_share, l2_gradient_range, scaling_exponents, true_logit_gradients

EPS = np.array([0.999999, 0.9, 0.5, *(10.0**-n for n in range(1, 13))])
GAMMAS = [0.0, 0.5, 1.0, 2.0, 3.0, 5.0]
FIELDS = ("focal", "l2", "l1", "ce")
NEAR = {"rtol": 1e-12, "atol": 0}


def logits_of(shares):
    """float64 logits, a row for each of EPS: softmax is 1 - eps for class 0 and eps times each share for the others."""
    lead = np.log1p(-EPS) - np.log(EPS)
    return torch.from_numpy(np.column_stack([lead, np.tile(np.log(shares), (len(EPS), 1))]))


def at_true_logit(loss, logits, engine="auto"):
    """The gradient of each row's own loss in its true logit."""
    loss.engine = engine
    leaf = logits.clone().requires_grad_()
    value = loss(leaf, torch.zeros(len(leaf), dtype=torch.int64))
    return torch.autograd.grad(value, leaf)[0][:, 0].numpy()


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("classes", [2, 10, 1000])
def test_the_training_losses_have_these_gradients(classes, engine):
    logits = logits_of(np.full(classes - 1, 1 / (classes - 1)))
    for gamma in GAMMAS:
        found = true_logit_gradients(EPS, gamma=gamma, classes=classes)
        focal = FocalLoss(gamma, reduction="sum")
        np.testing.assert_allclose(at_true_logit(focal, logits, engine), found.focal, **NEAR)
    np.testing.assert_allclose(at_true_logit(BrierLoss(reduction="sum"), logits, engine), found.l2, **NEAR)
    np.testing.assert_allclose(at_true_logit(CrossEntropyLoss(reduction="sum"), logits, engine), found.ce, **NEAR)


def test_the_l1_anchor():
    leaf = logits_of(np.full(9, 1 / 9)).requires_grad_()
    (gradient,) = torch.autograd.grad(2 * leaf.softmax(1)[:, 1:].sum(), leaf)
    np.testing.assert_allclose(gradient[:, 0], true_logit_gradients(EPS, gamma=1).l1, **NEAR)


@pytest.mark.parametrize("concentration", [0.05, 1.0, 20.0])
def test_the_l2_range_holds_every_way_to_share(concentration):
    weakest, strongest = l2_gradient_range(EPS, classes=6)
    for row in np.random.default_rng(0).dirichlet(np.full(5, concentration), size=20):
        gradient = at_true_logit(BrierLoss(reduction="sum"), logits_of(np.maximum(row, 1e-300)))
        assert ((strongest * (1 + 1e-12) <= gradient) & (gradient <= weakest * (1 - 1e-12))).all()
        np.testing.assert_allclose(gradient, -2 * (1 - EPS) * EPS**2 * (1 + (row**2).sum()), **NEAR)


@given(eps=st.floats(1e-40, 1 - 1e-12), gamma=st.floats(0, 6), classes=st.integers(2, 1000))
def test_descent_raises_the_true_logit(eps, gamma, classes):
    found = true_logit_gradients(eps, gamma=gamma, classes=classes)
    assert all(getattr(found, name) < 0 for name in FIELDS)
    weakest, strongest = l2_gradient_range(eps, classes=classes)
    assert strongest <= weakest < 0


@given(eps=st.floats(1e-12, 0.999), gamma=st.floats(0, 6))
def test_focal_at_gamma_zero_is_cross_entropy(eps, gamma):
    found = true_logit_gradients(eps, gamma=0)
    assert found.focal == pytest.approx(found.ce, rel=1e-12, abs=0)
    # Between 1 and 1 + gamma times eps^(gamma + 1): the constants behind the Theta.
    ratio = -true_logit_gradients(eps, gamma=gamma).focal / eps ** (gamma + 1)
    assert 1 - 1e-12 <= ratio <= (1 + gamma) * (1 + 1e-12)


@pytest.mark.parametrize("gamma", [*GAMMAS, 10.0])
@pytest.mark.parametrize("classes", [2, 10, 1000])
def test_exponents(gamma, classes):
    found = scaling_exponents(gamma=gamma, classes=classes)
    assert [getattr(found, name) for name in FIELDS] == pytest.approx([gamma + 1, 2, 1, 1], abs=1e-5)


def test_share_is_the_ratio_of_the_gradients():
    eps = EPS[:, None]
    gamma, lam = np.array([0.0, 0.5, 1, 2, 5]), 0.7
    found = true_logit_gradients(eps, gamma=gamma, classes=7)
    expected = lam * found.l2 / (found.focal + lam * found.l2)
    np.testing.assert_allclose(anchor_share(eps, gamma=gamma, lam=lam, classes=7), expected, rtol=1e-12)


@pytest.mark.parametrize("eps", [1e-12, 1e-100, 1e-300])  # the last two gradients are below the smallest float64
def test_limits_of_the_share(eps):
    c = 10 / 9
    assert anchor_share(eps, gamma=2, lam=1) == pytest.approx(1, abs=1e-11)
    assert anchor_share(eps, gamma=1, lam=0.5) == pytest.approx(0.5 * c / (1 + 0.5 * c), abs=1e-11)
    assert anchor_share(eps, gamma=0, lam=1) == pytest.approx(0, abs=1e-11)
    assert anchor_share(eps, gamma=5, lam=0) == 0  # where the focal gradient underflows, too


def test_share_beyond_float64():
    # focal 1 / eps = 1e300, anchor 2 * 10/9 * 1e308
    assert anchor_share(1e-300, gamma=0, lam=1e308) == pytest.approx(1, abs=1e-8)
    assert anchor_share(1e-300, gamma=0, lam=1e300) == pytest.approx(20 / 29, rel=1e-12, abs=0)
    assert anchor_share(5e-324, gamma=0, lam=1) == 0
    assert anchor_share([0.5, 1e-300], gamma=1e308, lam=1e-300).tolist() == [1, 1]
