"""What autograd, tracing and half precision may ask of the focal family beside one plain backward."""

import pytest
import torch
import torch.nn.functional as F
from references.gradients import value_and_gradient
from support.engines import COMPUTED

from focalcal.losses import LOSSES, AdaFocalLoss, CrossEntropyLoss, FocalCalibrationLoss
from focalcal.losses.engines import focal_family
from focalcal.losses.formula import Terms


@pytest.mark.parametrize("engine", COMPUTED)
@pytest.mark.parametrize("reduction", ["mean", "none"])
def test_a_second_backward_computes_the_gradient_again(engine, reduction):
    z = torch.randn(6, 4, requires_grad=True)
    value = focal_family(z, torch.randint(0, 4, (6,)), Terms(1.0, 3.0, 1.0), engine=engine, reduction=reduction).sum()
    (first,) = torch.autograd.grad(3 * value, z, retain_graph=True)
    (second,) = torch.autograd.grad(3 * value, z, retain_graph=True)
    torch.testing.assert_close(first, second)
    torch.autograd.grad(value, z)
    with pytest.raises(RuntimeError, match="second time"):
        torch.autograd.grad(value, z)


@pytest.mark.parametrize("engine", COMPUTED)
def test_upstream_factors(engine):
    z, labels = torch.randn(6, 4, requires_grad=True), torch.randint(0, 4, (6,))
    terms = Terms(1.0, 3.0, 1.0)
    _, plain = value_and_gradient(z, labels, terms, engine)
    (scaled,) = torch.autograd.grad(-2.5 * focal_family(z, labels, terms, engine=engine), z)
    torch.testing.assert_close(scaled, -2.5 * plain)
    each = focal_family(z, labels, terms, engine=engine, reduction="none")
    factor = torch.rand(6)
    (rows,) = torch.autograd.grad(each, z, factor)
    torch.testing.assert_close(rows, plain * 6 * factor[:, None])


@pytest.mark.parametrize("engine", COMPUTED)
@pytest.mark.parametrize("reduction", ["mean", "none"])
def test_batched_gradients(engine, reduction):
    z, labels = torch.randn(6, 4, requires_grad=True), torch.randint(0, 4, (6,))
    value = focal_family(z, labels, Terms(1.0, 3.0, 1.0), engine=engine, reduction=reduction)
    factors = torch.randn(5, *value.shape)
    (together,) = torch.autograd.grad(value, z, factors, is_grads_batched=True, retain_graph=True)
    apart = torch.stack([torch.autograd.grad(value, z, f, retain_graph=True)[0] for f in factors])
    torch.testing.assert_close(together, apart)


@pytest.mark.parametrize("engine", COMPUTED)
def test_the_logits_may_change_after_the_loss_until_they_are_needed_again(engine):
    z = torch.randn(6, 4, requires_grad=True)
    labels = torch.randint(0, 4, (6,))
    hidden = z * 1.0
    value = focal_family(hidden, labels, Terms(1.0, 3.0, 1.0), engine=engine)
    hidden.detach().add_(1.0)
    (first,) = torch.autograd.grad(value, z, retain_graph=True)  # as with F.cross_entropy
    torch.testing.assert_close(first, value_and_gradient(z, labels, Terms(1.0, 3.0, 1.0), engine)[1])
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        torch.autograd.grad(value, z)


@pytest.mark.parametrize("engine", COMPUTED)
def test_labels_that_change_before_they_are_needed_again_are_noticed(engine):
    z, labels = torch.randn(6, 4, requires_grad=True), torch.zeros(6, dtype=torch.long)
    value = focal_family(z, labels, Terms(1.0, 3.0, 1.0), engine=engine)
    labels.fill_(1)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        torch.autograd.grad(value, z, create_graph=True)


@pytest.mark.parametrize("again", ["retain_graph", "create_graph"])
def test_weights_and_gammas_that_change_before_they_are_needed_again_are_noticed(again):
    z, labels = torch.randn(30, 4, requires_grad=True), torch.randint(0, 4, (30,))
    weighted, adaptive = FocalCalibrationLoss(weight=torch.ones(4)), AdaFocalLoss(bins=3)
    for loss, change in (
        (weighted, lambda: weighted.weight.mul_(2)),
        (adaptive, lambda: adaptive.update(torch.randn(50, 4).softmax(1), torch.randint(0, 4, (50,)))),
    ):
        value = loss(z, labels)
        if again == "retain_graph":
            torch.autograd.grad(value, z, retain_graph=True)
        change()
        with pytest.raises(RuntimeError, match="modified by an inplace operation"):
            torch.autograd.grad(value, z, create_graph=again == "create_graph")


@pytest.mark.parametrize("engine", COMPUTED)
def test_vmap_over_a_backward(engine):
    z, labels = torch.randn(6, 4, requires_grad=True), torch.randint(0, 4, (6,))
    value = focal_family(z, labels, Terms(1.0, 3.0, 1.0), engine=engine)
    factors = torch.randn(5)
    together = torch.func.vmap(lambda f: torch.autograd.grad(value, z, f, retain_graph=True)[0])(factors)
    (one,) = torch.autograd.grad(value, z)
    torch.testing.assert_close(together, factors[:, None, None] * one)


def test_without_grad_mode_no_gradient_is_computed(monkeypatch):
    from focalcal.losses import engines, native_engine, triton_engine

    asked = []
    passes = (native_engine, "fused_rows"), (triton_engine, "fused_loss"), (engines, "loss_and_gradient")
    for module, name in passes:
        original = getattr(module, name)

        def spy(*args, original=original, **keywords):
            result = original(*args, **keywords)
            asked.append(result[1] is not None)
            return result

        monkeypatch.setattr(module, name, spy)
    z, labels = torch.randn(6, 4, requires_grad=True), torch.randint(0, 4, (6,))
    for engine in COMPUTED:
        loss = FocalCalibrationLoss()
        loss.engine = engine
        with torch.no_grad():
            loss(z, labels)
        with torch.inference_mode():
            loss(z, labels)
        loss(z.detach(), labels)
    assert asked == [False] * 3 * len(COMPUTED)


@pytest.mark.once
@pytest.mark.slow
def test_compiling_first_does_not_spoil_what_comes_after():
    """In a fresh process, where the kernel has not been looked for yet."""
    import subprocess
    import sys

    code = """
import torch
from focalcal.losses import LOSSES
z, y = torch.randn(6, 4), torch.randint(0, 4, (6,))
torch.compile(LOSSES["ls"](), fullgraph=True, backend="eager")(z, y)
torch.func.functionalize(LOSSES["ls"]())(z, y)
for name in ("ls", "fcl", "mmce"):
    print(LOSSES[name]()(z, y).item() > 0)
"""
    done = subprocess.run([sys.executable, "-W", "ignore", "-c", code], capture_output=True, text=True, check=False)
    assert done.stdout.split() == ["True"] * 3, done.stderr


@pytest.mark.once
def test_first_use_from_many_threads():
    import subprocess
    import sys

    code = """
import threading, torch
from focalcal.losses import CrossEntropyLoss
z, y = torch.randn(64, 10), torch.randint(0, 10, (64,))
results = []
threads = [threading.Thread(target=lambda: results.append(CrossEntropyLoss()(z, y).item())) for _ in range(16)]
[t.start() for t in threads]
[t.join() for t in threads]
print(len(results), len(set(results)))
"""
    done = subprocess.run([sys.executable, "-W", "ignore", "-c", code], capture_output=True, text=True, check=False)
    assert done.stdout.split() == ["16", "1"], done.stderr


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_a_loss_scale_saves_small_half_precision_gradients(dtype):
    """Over 65,536 pixels an entry is below float16's range until GradScaler's factor arrives."""
    z = torch.randn(4, 21, 128, 128).to(dtype).requires_grad_()
    labels = torch.randint(0, 21, (4, 128, 128))
    (grad,) = torch.autograd.grad(65536 * CrossEntropyLoss()(z, labels), z)
    _, want = value_and_gradient(z.float(), labels, Terms(), "torch")
    torch.testing.assert_close(grad.float(), 65536 * want, rtol=1e-2, atol=1e-6)


def test_dispatch_modes_see_the_formula():
    from torch._subclasses.fake_tensor import FakeTensorMode
    from torch.fx.experimental.proxy_tensor import make_fx

    z, labels = torch.randn(6, 4), torch.randint(0, 4, (6,))
    graph = make_fx(CrossEntropyLoss())(z, labels)
    other = torch.randn(6, 4)
    torch.testing.assert_close(graph(other, labels), F.cross_entropy(other, labels))
    with FakeTensorMode() as mode:
        fake = FocalCalibrationLoss()(mode.from_tensor(z), mode.from_tensor(labels))
    assert fake.shape == ()


def test_another_default_device_does_not_matter():
    z, labels = torch.randn(6, 4), torch.randint(0, 4, (6,))
    expected = FocalCalibrationLoss()(z, labels)
    with torch.device("meta"):
        torch.testing.assert_close(FocalCalibrationLoss()(z, labels), expected)


def test_non_reentrant_checkpoint():
    from torch.utils.checkpoint import checkpoint

    layer, labels = torch.nn.Linear(5, 4), torch.randint(0, 4, (6,))
    x = torch.randn(6, 5)
    checkpoint(lambda t: FocalCalibrationLoss()(layer(t), labels), x, use_reentrant=False).backward()
    recomputed = layer.weight.grad.clone()
    layer.weight.grad = None
    FocalCalibrationLoss()(layer(x), labels).backward()
    torch.testing.assert_close(recomputed, layer.weight.grad)


def test_torch_has_the_names_that_spare_a_call_time():
    from focalcal.losses import torch_state

    assert torch_state.LEGIBLE  # a version that lacks one is right without, and slower


@pytest.mark.parametrize("name", [name for name in LOSSES if not name.startswith("multilabel")])
def test_a_torch_without_them_computes_the_same_by_the_formula(name, monkeypatch):
    from focalcal.losses import torch_state

    loss, z, labels = LOSSES[name](), torch.randn(6, 4, requires_grad=True), torch.randint(0, 4, (6,))
    expected = loss(z, labels)
    (gradient,) = torch.autograd.grad(expected, z)
    monkeypatch.setattr(torch_state, "LEGIBLE", False)
    value = loss(z, labels)
    torch.testing.assert_close(value, expected)
    torch.testing.assert_close(torch.autograd.grad(value, z)[0], gradient)
