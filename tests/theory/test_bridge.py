"""The training losses, minimised over free logits on the population risk, land where the theory says.

A saturated model has one free logit vector for each posterior. In logits a stationary point is an interior q whose risk
has a constant gradient, which by strict convexity is the one minimiser: a small gradient is all the proof needed.

Left out: FLSD-53 and AdaFocal, which hold gamma constant in the gradient, so that what they descend is not a function
whose minimum could be compared; MMCE, whose penalty couples the examples of a batch; and Dual Focal, whose loss at a
label depends on the best rival, so that its risk is not a sum of functions of one q_k.
"""

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from focalcal.losses import (
    BrierLoss,
    CrossEntropyLoss,
    FocalCalibrationLoss,
    FocalLoss,
    LabelSmoothingLoss,
    MultilabelBCELoss,
    MultilabelBrierLoss,
    MultilabelFocalCalibrationLoss,
    MultilabelFocalLoss,
)
from focalcal.theory.minimiser import minimise
from focalcal.theory.potential import conditional_risk
from focalcal.theory.recovery import recover

CLASSES = st.sampled_from([2, 3, 5, 10])
GAMMAS = st.one_of(st.sampled_from([0.0, 0.5, 1.0, 3.0]), st.floats(0.0, 6.0))
LAMS = st.one_of(st.just(0.0), st.floats(-2.0, 3.0).map(lambda power: 10.0**power))
PROBLEMS = 8


def posteriors(seed, classes):
    """Flat, and pulled towards the middle a little: the smallest entry is at least 0.02 / K."""
    flat = np.random.default_rng(seed).dirichlet(np.ones(classes), PROBLEMS)
    return torch.from_numpy(0.98 * flat + 0.02 / classes)


def expected_over_labels(loss):
    """The population risk from what training sees: each label's loss, weighted by its probability."""

    def risk(logits, eta):
        count, classes = eta.shape
        labels = torch.arange(classes).repeat(count)
        each = loss(logits.repeat_interleave(classes, 0), labels)
        return (each.view(count, classes) * eta).sum(1)

    return risk


def minimised(risk, eta, scale):
    """The logits (n, k) that minimise each row's risk; refused unless every gradient is below 1e-10 of `scale`."""
    logits = eta.log().clone().requires_grad_()
    optimiser = torch.optim.LBFGS(
        [logits],
        max_iter=400,
        history_size=50,
        line_search_fn="strong_wolfe",
        tolerance_grad=1e-9,
        tolerance_change=1e-16,
    )

    def closure():
        optimiser.zero_grad()
        value = risk(logits, eta).sum() / scale
        value.backward()
        return value

    optimiser.step(closure)
    for _ in range(6):
        gradient = torch.autograd.grad(risk(logits, eta).sum(), logits, create_graph=True)[0]
        if float(gradient.detach().abs().max()) < 1e-12 * scale:
            break
        columns = [torch.autograd.grad(column.sum(), logits, retain_graph=True)[0] for column in gradient.unbind(1)]
        hessian = torch.stack(columns, 1) + scale  # a constant fixes the sum of the logits, on which nothing depends
        with torch.no_grad():
            logits -= torch.linalg.solve(hessian, gradient.detach())
    last = torch.autograd.grad(risk(logits, eta).sum(), logits)[0].abs().max()
    assert float(last) < 1e-10 * scale
    return logits.detach()


@settings(max_examples=5)
@given(seed=st.integers(0, 10_000), classes=CLASSES, gamma=GAMMAS, lam=LAMS)
def test_focal_calibration_loss_lands_on_the_solvers_minimiser(seed, classes, gamma, lam):
    eta = posteriors(seed, classes)
    loss = FocalCalibrationLoss(gamma, lam, reduction="none")
    found = minimised(loss, eta, 1 + lam).softmax(1).numpy()
    np.testing.assert_allclose(found, minimise(eta, gamma=gamma, lam=lam).unwrap(), atol=1e-8)
    np.testing.assert_allclose(recover(found, gamma=gamma, lam=lam), eta, atol=1e-6)


@settings(max_examples=5)
@given(seed=st.integers(0, 10_000), classes=CLASSES, gamma=GAMMAS)
def test_focal_loss_lands_on_the_minimiser_without_an_anchor(seed, classes, gamma):
    eta = posteriors(seed, classes)
    found = minimised(FocalLoss(gamma, reduction="none"), eta, 1.0).softmax(1).numpy()
    np.testing.assert_allclose(found, minimise(eta, gamma=gamma, lam=0.0).unwrap(), atol=1e-7)


@pytest.mark.parametrize("classes", [2, 3, 10])
@pytest.mark.parametrize("loss", [CrossEntropyLoss(reduction="none"), BrierLoss(reduction="none")], ids=repr)
def test_proper_losses_land_on_the_posterior(loss, classes):
    eta = posteriors(0, classes)
    np.testing.assert_allclose(minimised(loss, eta, 1.0).softmax(1), eta, atol=1e-7)


@pytest.mark.parametrize("classes", [2, 3, 10])
@pytest.mark.parametrize("epsilon", [0.0, 0.05, 0.3])
def test_label_smoothing_lands_on_its_own_minimiser(classes, epsilon):
    eta = posteriors(1, classes)
    over_all = LabelSmoothingLoss(epsilon, "all", reduction="none")
    np.testing.assert_allclose(
        minimised(over_all, eta, 1.0).softmax(1), (1 - epsilon) * eta + epsilon / classes, atol=1e-8
    )
    over_others = LabelSmoothingLoss(epsilon, "others", reduction="none")
    expected = (1 - epsilon) * eta + epsilon * (1 - eta) / (classes - 1)
    np.testing.assert_allclose(minimised(over_others, eta, 1.0).softmax(1), expected, atol=1e-8)


@settings(max_examples=40)
@given(seed=st.integers(0, 10_000), classes=CLASSES, gamma=GAMMAS, lam=LAMS)
def test_the_expected_gradient_vanishes_at_the_minimiser_and_only_there(seed, classes, gamma, lam):
    """With labels, as in training: the kernel's own gradient."""
    eta = posteriors(seed, classes)
    risk = expected_over_labels(FocalCalibrationLoss(gamma, lam, reduction="none"))
    at_minimum = torch.from_numpy(minimise(eta, gamma=gamma, lam=lam).unwrap()).log().requires_grad_()
    (gradient,) = torch.autograd.grad(risk(at_minimum, eta).sum(), at_minimum)
    assert float(gradient.abs().max()) < 1e-13 * (1 + lam)
    if gamma >= 0.5:
        at_posterior = eta.log().requires_grad_()
        (gradient,) = torch.autograd.grad(risk(at_posterior, eta).sum(), at_posterior)
        assert float(gradient.abs().max()) > 1e-4


@settings(max_examples=40)
@given(seed=st.integers(0, 10_000), classes=CLASSES, gamma=GAMMAS, lam=LAMS)
def test_the_conditional_risk_is_the_training_loss(seed, classes, gamma, lam):
    eta, q = posteriors(seed, classes), posteriors(seed + 1, classes)
    expected = conditional_risk(q, eta, gamma=gamma, lam=lam)
    loss = FocalCalibrationLoss(gamma, lam, reduction="none")
    np.testing.assert_allclose(loss(q.log(), eta), expected, rtol=1e-12)
    np.testing.assert_allclose(expected_over_labels(loss)(q.log(), eta), expected, rtol=1e-12)


@settings(max_examples=20)
@given(seed=st.integers(0, 10_000), gamma=GAMMAS, lam=LAMS)
def test_each_of_several_labels_is_a_two_class_problem_with_the_same_lam(seed, gamma, lam):
    """Its anchor is 2 (1 - p_t)^2 = |(p, 1 - p) - e_y|^2, the two-class one: lam means the same as for one label."""
    present = posteriors(seed, 2)[:, 0]
    both = torch.stack([present, 1 - present], 1)
    expected = minimise(both, gamma=gamma, lam=lam).unwrap()
    loss = MultilabelFocalCalibrationLoss(gamma, lam, reduction="none")

    def risk(logits, eta):  # the log odds of two logits; the rows are examples of one label
        return loss((logits[:, 0] - logits[:, 1])[:, None], eta[:, :1])[:, 0]

    np.testing.assert_allclose(minimised(risk, both, 1 + lam).softmax(1), expected, atol=1e-7)
    q = posteriors(seed + 1, 2)
    np.testing.assert_allclose(
        risk(q.log(), both), conditional_risk(q, both, gamma=gamma, lam=lam), rtol=1e-11, atol=1e-13
    )


def test_several_labels_and_the_other_sigmoid_losses():
    eta = torch.from_numpy(np.random.default_rng(0).uniform(0.03, 0.97, (6, 4)))  # four labels per example
    both = torch.stack([eta, 1 - eta], -1)
    cases = [
        (MultilabelBCELoss(reduction="none"), eta),
        (MultilabelBrierLoss(reduction="none"), eta),
        (MultilabelFocalLoss(2.0, reduction="none"), minimise(both, gamma=2.0, lam=0.0).unwrap()[..., 0]),
        (
            MultilabelFocalCalibrationLoss(2.0, 2.0, reduction="none"),
            minimise(both, gamma=2.0, lam=2.0).unwrap()[..., 0],
        ),
    ]
    for loss, expected in cases:
        logits = torch.logit(torch.as_tensor(expected)).requires_grad_()
        (gradient,) = torch.autograd.grad(loss(logits, eta).sum(), logits)
        assert float(gradient.abs().max()) < 1e-14
