"""The GPU kernels where they differ from other engines: tiles, blocks of classes, labels, when gradients are made."""

import sys

import pytest
import torch
from references.gradients import value_and_gradient
from support.engines import INTERPRETED

from focalcal.losses import FocalCalibrationLoss, triton_engine, triton_launch
from focalcal.losses.engines import focal_family
from focalcal.losses.formula import Terms

pytest.importorskip("triton")
interpreted = pytest.mark.skipif(not INTERPRETED, reason="needs TRITON_INTERPRET=1; `make test-triton` sets it")

KINDS = {
    "fcl": Terms(1.0, 3.0, 1.0),
    "brier": Terms(0.0, 0.0, 1.0),
    "smooth": Terms(focal=0.9, smoothing=0.01),
    "dual": Terms(gamma=2.5, rival=True),
    "steps": Terms(edges=torch.tensor([0.0, 0.2, 1.0]), gammas=torch.tensor([-2.0, 3.0])),
}


@pytest.fixture
def real_tiles(monkeypatch):
    monkeypatch.setattr(triton_launch, "_TILE", 1024)


# ---- which calls it serves ----


@pytest.mark.skipif(INTERPRETED, reason="the interpreter takes CPU tensors")
def test_a_cpu_tensor_is_refused_in_a_sentence():
    loss = FocalCalibrationLoss()
    loss.engine = "triton"
    with pytest.raises(ValueError, match=r"engine='triton' needs .* on a GPU, .* got torch.float32 on cpu; use 'auto'"):
        loss(torch.randn(4, 3), torch.zeros(4, dtype=torch.long))


def test_a_gpu_does_not_choose_it(monkeypatch):
    """Nobody has run the kernels on hardware: `auto` computes by torch operations there."""
    logits, labels = torch.randn(4, 3), torch.tensor([0, 1, 2, 1])
    expected = focal_family(logits, labels, Terms(1.0, 3.0, 1.0), engine="formula")
    monkeypatch.setattr(torch.Tensor, "is_cuda", property(lambda _: True), raising=False)
    monkeypatch.setattr(torch.Tensor, "is_cpu", property(lambda _: False), raising=False)
    monkeypatch.setattr(triton_engine, "loss", lambda *_: pytest.fail("the Triton kernels were called"))
    torch.testing.assert_close(focal_family(logits, labels, Terms(1.0, 3.0, 1.0), engine="auto"), expected)


def test_without_triton_it_says_how_to_install_it(monkeypatch):
    monkeypatch.setitem(sys.modules, "triton", None)
    with pytest.raises(ModuleNotFoundError, match="engine='triton' needs the package triton: pip install"):
        focal_family(torch.randn(4, 3), torch.zeros(4, dtype=torch.long), Terms(), engine="triton")


@pytest.mark.usefixtures("real_tiles")
@pytest.mark.parametrize("classes", [1, 2, 10, 1000, 16384, 16385, 128256])
@pytest.mark.parametrize("class_stride", [1, 4096])
def test_a_tile_fits_the_registers_and_the_classes(classes, class_stride):
    tile = triton_launch.tile(classes, class_stride)
    assert tile.whole == (tile.block >= classes)
    assert tile.rows * tile.block <= 32 * 32 * tile.warps  # at most 32 logits per thread
    assert class_stride == 1 or tile.rows >= 16  # a load of 32 bytes is used whole
    assert all(number & (number - 1) == 0 for number in (tile.rows, tile.block, tile.warps))


# ---- tiles and blocks ----


@interpreted
@pytest.mark.usefixtures("real_tiles")
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("shape", [(130, 10), (3, 1), (2, 16385), (2, 1100, 3, 3)])
def test_agrees_with_the_formula_in_every_tile(kind, shape):
    if shape[1] == 1 and kind == "smooth":
        pytest.skip("one class has nothing to share")
    logits, labels = 3 * torch.randn(shape).double(), torch.randint(0, shape[1], (shape[0], *shape[2:]))
    labels.view(-1)[1] = -100
    options = {"ignore_index": -100, "weight": torch.rand(shape[1]) + 0.1}
    for expected, computed in zip(
        value_and_gradient(logits, labels, KINDS[kind], "formula", **options),
        value_and_gradient(logits, labels, KINDS[kind], "triton", **options),
        strict=True,
    ):
        torch.testing.assert_close(computed, expected)


@interpreted
@pytest.mark.parametrize("kind", KINDS)
def test_the_largest_logit_may_come_in_any_block(kind, monkeypatch):
    """Rising, falling, masked at first, and rounded so that the top and the rival recur in other blocks."""
    monkeypatch.setattr(triton_launch, "_MOST_CLASSES", 64)
    monkeypatch.setattr(triton_launch, "_TILE", 16)
    monkeypatch.setattr(triton_launch, "tile", lambda *_: triton_launch.Tile(2, 16, False, 4))
    rising = torch.linspace(-9, 9, 70).double()
    masked = torch.cat([torch.full((40,), -torch.inf), rising[40:]])
    logits = torch.stack([rising, rising.flip(0), masked, masked.flip(0), (2 * torch.randn(70)).round().double()])
    logits[4, [3, 50]] = 9.0
    if kind == "smooth":  # a masked class has a share of the label, and so an infinite loss
        logits = logits.clamp(min=-50)
    for label in (69, 0, 45):
        labels = torch.tensor([label, label, 45, 20, label])
        expected = value_and_gradient(logits, labels, KINDS[kind], "formula", reduction="none")
        computed = value_and_gradient(logits, labels, KINDS[kind], "triton", reduction="none")
        torch.testing.assert_close(computed, expected)


# ---- labels ----


@interpreted
@pytest.mark.parametrize("dtype", [torch.int32, torch.int64])
@pytest.mark.parametrize("reduction", ["mean", "sum", "none"])
def test_the_first_bad_label_is_reported_and_the_next_call_is_not_blamed(dtype, reduction):
    logits, labels = torch.randn(3000, 4), torch.zeros(3000, dtype=dtype)
    expected = focal_family(logits, labels, Terms(), engine="triton", reduction=reduction)
    labels[[1500, 2999]] = torch.tensor([4, -1], dtype=dtype)
    with pytest.raises(ValueError, match="from 0 to 3 or ignore_index = -100, got 4 at flat position 1500"):
        focal_family(logits, labels, Terms(), ignore_index=-100, engine="triton", reduction=reduction)
    labels.zero_()
    torch.testing.assert_close(focal_family(logits, labels, Terms(), engine="triton", reduction=reduction), expected)


@interpreted
def test_an_example_with_a_bad_label_is_nan_and_no_other():
    """What a GPU returns before anyone has looked at the report."""
    logits, labels = torch.randn(4, 3, requires_grad=True), torch.tensor([0, 7, -100, 2])
    values = []
    for value in (True, False):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(triton_launch, "raise_reported", lambda *_: None)
            loss, gradient = triton_launch.fused_loss(logits, labels, None, Terms(), -100, "none", value=value)
        values.append(loss)
        assert gradient.isnan().any(1).tolist() == [False, True, False, False]
        assert not gradient[2].any()
    assert values[0].isnan().tolist() == [False, True, False, False]
    assert values[1] is None
    with pytest.raises(ValueError, match="got 7 at flat position 1"):
        triton_launch.raise_reported(logits.device, -100)


# ---- when the gradient is made ----


@interpreted
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float16])
@pytest.mark.parametrize("reduction", ["mean", "sum", "none"])
def test_the_gradient_comes_with_the_loss_unless_it_must_wait_for_the_factor(dtype, reduction, monkeypatch):
    made = []

    def spy(*arguments, original=triton_engine.fused_loss, **keywords):
        result = original(*arguments, **keywords)
        made.append((result[0] is not None, result[1] is not None))
        return result

    monkeypatch.setattr(triton_engine, "fused_loss", spy)
    logits, labels = torch.randn(6, 4).to(dtype).requires_grad_(), torch.randint(0, 4, (6,))
    focal_family(logits, labels, Terms(), engine="triton", reduction=reduction).sum().backward()
    waits = dtype is torch.float16 or reduction == "none"
    assert made == ([(True, False), (False, True)] if waits else [(True, True)])


@interpreted
def test_float16_is_rounded_after_the_loss_scale():
    """Of a confident example the entries are some 1e-8, below float16's range until GradScaler's factor arrives."""
    logits, labels = torch.tensor([[18.0, 0.0, 1.0, 2.0]]).half().requires_grad_(), torch.tensor([0])
    (gradient,) = torch.autograd.grad(65536 * focal_family(logits, labels, Terms(), engine="triton"), logits)
    _, expected = value_and_gradient(logits.float(), labels, Terms(), "formula")
    torch.testing.assert_close(gradient.float(), 65536 * expected, rtol=1e-2, atol=0)
