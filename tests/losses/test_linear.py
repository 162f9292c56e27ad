"""The loss of a linear layer's logits without the logits: the same numbers, one chunk of logits at a time."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch.nn.functional import linear
from torch.utils._python_dispatch import TorchDispatchMode

from focalcal.losses import FocalCalibrationLoss, LinearFocalCalibrationLoss
from focalcal.losses import linear as linear_module
from focalcal.losses.functional import linear_focal_calibration


def layer(rows=7, features=5, classes=11, dtype=torch.float64, seed=0):
    draws = torch.Generator().manual_seed(seed)
    hidden, weight, bias = (
        torch.randn(*shape, generator=draws, dtype=torch.float64).to(dtype).requires_grad_()
        for shape in ((rows, features), (classes, features), (classes,))
    )
    return hidden, weight, bias, torch.randint(classes, (rows,), generator=draws)


def gradients(loss, *inputs):
    return torch.autograd.grad(loss, inputs)


@settings(max_examples=40, deadline=None)
@given(
    st.integers(1, 9),
    st.integers(1, 9),
    st.sampled_from([0.0, 0.5, 3.0]),
    st.sampled_from([0.0, 1.0]),
    st.sampled_from(["paper", "matched"]),
    st.sampled_from(["mean", "sum"]),
    st.booleans(),
    st.integers(0, 6),
)
def test_loss_and_gradients_are_those_of_the_logits(rows, chunk, gamma, lam, scale, reduction, with_bias, ignored):
    if gamma == lam == 0 and scale == "matched":
        scale = "paper"
    hidden, weight, bias, labels = layer(rows)
    labels[:ignored] = -100
    if ignored >= rows:
        labels[0] = 3
    bias = bias if with_bias else None
    inputs = [value for value in (hidden, weight, bias) if value is not None]
    whole = FocalCalibrationLoss(gamma, lam, scale=scale, reduction=reduction)(linear(hidden, weight, bias), labels)
    parts = linear_focal_calibration(
        hidden, weight, labels, bias, gamma=gamma, lam=lam, scale=scale, reduction=reduction, chunk=chunk
    )
    torch.testing.assert_close(parts, whole, rtol=1e-12, atol=1e-14)
    for ours, theirs in zip(gradients(parts, *inputs), gradients(whole, *inputs), strict=True):
        torch.testing.assert_close(ours, theirs, rtol=1e-11, atol=1e-13)


def test_a_soft_cap_is_that_of_the_logits():
    hidden, weight, bias, labels = layer()
    settings = {"gamma": 3, "lam": 1}
    capped = 0.5 * (linear(hidden, weight, bias) / 0.5).tanh()
    whole = FocalCalibrationLoss(**settings)(capped, labels)
    parts = linear_focal_calibration(hidden, weight, labels, bias, **settings, soft_cap=0.5, chunk=3)
    torch.testing.assert_close(parts, whole, rtol=1e-12, atol=1e-14)
    for ours, theirs in zip(
        gradients(parts, hidden, weight, bias), gradients(whole, hidden, weight, bias), strict=True
    ):
        torch.testing.assert_close(ours, theirs, rtol=1e-11, atol=1e-13)
    for wrong in (0, -1.0, float("inf")):
        with pytest.raises(ValueError, match=f"soft_cap must be .* got {wrong}"):
            linear_focal_calibration(hidden, weight, labels, bias, **settings, soft_cap=wrong)


def test_gradients_agree_with_finite_differences():
    hidden, weight, bias, labels = layer()

    def loss(hidden, weight, bias):
        return linear_focal_calibration(hidden, weight, labels, bias, gamma=2.0, lam=0.5, chunk=3)

    assert torch.autograd.gradcheck(loss, (hidden, weight, bias))


def test_without_focusing_and_anchor_it_is_cross_entropy():
    hidden, weight, bias, labels = layer()
    ours = linear_focal_calibration(hidden, weight, labels, bias, gamma=0, lam=0, chunk=2)
    torch.testing.assert_close(ours, torch.nn.functional.cross_entropy(linear(hidden, weight, bias), labels))


class Largest(TorchDispatchMode):
    """The most elements of a tensor that any operation returns."""

    elements = 0

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        made = func(*args, **(kwargs or {}))
        for value in made if isinstance(made, tuple | list) else (made,):
            if isinstance(value, torch.Tensor):
                self.elements = max(self.elements, value.numel())
        return made


def test_never_more_than_a_chunk_of_logits_is_made():
    hidden, weight, bias, labels = layer(rows=40, features=3, classes=100)
    with Largest() as seen:
        loss = linear_focal_calibration(hidden, weight, labels, bias, gamma=3, lam=1, chunk=4)
        gradients(loss, hidden, weight, bias)
    assert seen.elements == 4 * 100  # the weight has 300 and all logits would be 4,000
    with Largest() as seen:
        gradients(FocalCalibrationLoss(3, 1)(linear(hidden, weight, bias), labels), hidden)
    assert seen.elements == 40 * 100


@pytest.mark.parametrize(("logits", "rows"), [(1000, 32), (3600, 36), (10_000, 40)])
def test_a_chunk_holds_the_logits_it_may_and_32_rows_at_least(monkeypatch, logits, rows):
    monkeypatch.setattr(linear_module, "_LOGITS", logits)
    hidden, weight, bias, labels = layer(rows=40, features=3, classes=100)
    with Largest() as seen:
        linear_focal_calibration(hidden, weight, labels, bias, gamma=3, lam=1)
    assert seen.elements == rows * 100


def test_the_module_keeps_to_all_of_its_settings():
    hidden, weight, bias, labels = layer(rows=40, features=3, classes=100)
    labels[:5] = 7
    settings = {"gamma": 2.0, "lam": 0.5, "scale": "matched", "ignore_index": 7, "reduction": "sum"}
    with Largest() as seen:
        parts = LinearFocalCalibrationLoss(**settings, chunk=4)(hidden, weight, labels, bias)
    torch.testing.assert_close(parts, FocalCalibrationLoss(**settings)(linear(hidden, weight, bias), labels))
    assert seen.elements == 4 * 100


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_half_precision_is_as_near_to_the_truth_as_the_logits_are(dtype):
    halves = layer(rows=64, features=32, classes=50, dtype=dtype)
    labels = halves[3]
    exact = [value.detach().double().requires_grad_() for value in halves[:3]]
    truth = FocalCalibrationLoss(3, 1)(linear(*exact), labels)
    whole = FocalCalibrationLoss(3, 1)(linear(*halves[:3]), labels)
    parts = linear_focal_calibration(*halves[:2], labels, halves[2], gamma=3, lam=1, chunk=8)
    assert parts.dtype is torch.float32
    pairs = zip(gradients(parts, *halves[:3]), gradients(whole, *halves[:3]), gradients(truth, *exact), strict=True)
    for ours, theirs, true in pairs:
        assert ours.dtype is dtype
        near, theirs_near = ((value.double() - true).norm() / true.norm() for value in (ours, theirs))
        assert near <= 1.5 * theirs_near + 1e-3


def test_autocast_multiplies_in_half_precision_and_keeps_the_gradients_in_single():
    hidden, weight, bias, labels = layer(dtype=torch.float32)
    with torch.autocast("cpu", torch.bfloat16):
        loss = linear_focal_calibration(hidden, weight, labels, bias, gamma=3, lam=1)
    found = gradients(loss, hidden, weight, bias)
    assert [gradient.dtype for gradient in found] == [torch.float32] * 3
    plain = linear_focal_calibration(hidden, weight, labels, bias, gamma=3, lam=1)
    assert loss.item() != plain.item()
    torch.testing.assert_close(loss, plain, rtol=0.02, atol=0.02)


def test_tokens_of_several_sequences_are_rows():
    hidden, weight, bias, labels = layer(rows=12)
    flat = linear_focal_calibration(hidden, weight, labels, bias, gamma=3, lam=1)
    loss = LinearFocalCalibrationLoss(3, 1, chunk=5)
    torch.testing.assert_close(loss(hidden.view(3, 4, -1), weight, labels.view(3, 4), bias), flat)
    assert "gamma=3, lam=1" in repr(loss)


def test_a_second_backward_gives_the_same_and_one_of_the_gradient_is_refused():
    hidden, weight, bias, labels = layer()
    loss = linear_focal_calibration(hidden, weight, labels, bias, gamma=3, lam=1)
    first = torch.autograd.grad(2 * loss, weight, retain_graph=True)[0]
    torch.testing.assert_close(torch.autograd.grad(2 * loss, weight, retain_graph=True)[0], first)
    with pytest.raises(RuntimeError, match="must not be differentiated twice, got create_graph=True; use the logits"):
        torch.autograd.grad(loss, weight, create_graph=True)


def test_only_what_is_asked_for_has_a_gradient():
    hidden, weight, bias, labels = layer()
    loss = linear_focal_calibration(hidden, weight.detach(), labels, bias.detach(), gamma=3, lam=1)
    loss.backward()
    assert weight.grad is None
    assert hidden.grad is not None
    with torch.no_grad():
        assert not linear_focal_calibration(hidden, weight, labels, bias, gamma=3, lam=1).requires_grad


def test_a_mean_over_no_row_is_that_of_cross_entropy():
    hidden, weight, bias, _ = layer(rows=2)
    ignored = torch.tensor([-100, -100])
    assert linear_focal_calibration(hidden, weight, ignored, bias, gamma=3, lam=1).isnan()
    assert linear_focal_calibration(hidden, weight, ignored, bias, gamma=3, lam=1, reduction="sum") == 0


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"weight": torch.zeros(11, 4)}, r"hidden must be \(\*b, D\) and weight \(K, D\), got \(7, 5\) and \(11, 4\)"),
        (
            {"labels": torch.zeros(6, dtype=torch.long)},
            r"labels must be class indices of the shape \(7,\), got \(6,\)",
        ),
        ({"labels": torch.zeros(7)}, "labels must be a tensor of int64, .* got torch.float32 on cpu"),
        ({"labels": torch.full((7,), 11)}, "11"),
        ({"bias": torch.zeros(4)}, r"bias must have the shape \(11,\), got \(4,\)"),
        ({"reduction": "none"}, "reduction must be 'mean' or 'sum', got 'none'"),
        ({"chunk": 0}, "chunk must be a whole number >= 1, got 0"),
        ({"gamma": -1.0}, "gamma"),
        ({"scale": "mine"}, "scale"),
    ],
)
def test_bad_input_is_named(change, message):
    hidden, weight, bias, labels = layer()
    given = {"hidden": hidden, "weight": weight, "labels": labels, "bias": bias, "gamma": 3.0, "lam": 1.0} | change
    with pytest.raises((ValueError, TypeError, IndexError), match=message):
        linear_focal_calibration(**given)
