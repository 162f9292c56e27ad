"""What every entry of LOSSES promises, whatever its formula."""

import copy
import math
import pickle

import pytest
import torch
import torch.nn.functional as F
from support.engines import INTERPRETED
from support.every_loss import DETACHED, EVERY, LOSSES, MULTI, OPTIONS, PER_EXAMPLE, SINGLE, SMOOTH, SOFT

# Of each way to compute one, whose backward is made a graph too; the slow test below compiles those of all.
DIFFERENTIATED = ("adafocal", "fcl", "focal, both", "mmce", "multilabel_fcl, matched")


def example(name, shape=(6, 4), dtype=torch.float64, requires_grad=True):
    """Random logits and targets that fit the loss; no two logits of an example are equal."""
    logits = (2 * torch.randn(shape, dtype=torch.float64)).to(dtype).requires_grad_(requires_grad)
    if name in MULTI:
        return logits, torch.randint(0, 2, shape)
    return logits, torch.randint(0, shape[1], (shape[0], *shape[2:]))


def gradient(loss, logits, target):
    leaf = logits.detach().clone().requires_grad_()
    value = loss(leaf, target)
    return value.detach(), torch.autograd.grad(value.sum(), leaf)[0]


@pytest.mark.parametrize("name", EVERY)
def test_a_scalar_with_a_right_gradient(name):
    loss = LOSSES[name]()
    logits, target = example(name)
    value = loss(logits, target)
    assert value.shape == ()
    assert value.dtype == torch.float64
    if name not in DETACHED:
        assert torch.autograd.gradcheck(lambda z: loss(z, target), (logits,), fast_mode=INTERPRETED)


@pytest.mark.parametrize("name", [n for n in EVERY if n != "mmce" and n not in DETACHED])
def test_second_derivatives_are_right(name):
    loss = LOSSES[name]()
    logits, target = example(name, (3, 4))
    assert torch.autograd.gradgradcheck(lambda z: loss(z, target), (logits,), fast_mode=INTERPRETED)


@pytest.mark.parametrize(
    ("name", "options"),
    [
        ("focal", {"gamma": 0}), ("fcl", {"gamma": 0, "lam": 0}), ("dual_focal", {"gamma": 0}), ("mmce", {"lam": 0}),
        ("bsce_gra", {"gamma": 0}), ("adafocal", {"gamma_init": 0}), ("ls", {"epsilon": 0}),
        ("flsd53", {"gamma_hard": 0, "gamma_easy": 0}),
    ],
)  # fmt: skip
def test_without_its_terms_it_is_cross_entropy(name, options):
    logits, target = example(name, (9, 4, 3))
    weight, target[0, 0] = torch.tensor([1.0, 2.0, 0.0, 0.5], dtype=torch.float64), -100
    value, grad = gradient(LOSSES[name](weight=weight, **options), logits, target)
    expected, expected_grad = gradient(lambda z, y: F.cross_entropy(z, y, weight), logits, target)
    torch.testing.assert_close(value, expected)
    torch.testing.assert_close(grad, expected_grad)


@pytest.mark.parametrize("name", [n for n in EVERY if n != "mmce" and n not in SMOOTH])
def test_a_confident_example_keeps_its_digits(name):
    """Where 1 - p_y in float32 would be 0: compared with float64, which still resolves it."""
    logits = torch.tensor([[25.0, 0.0, -1.0], [14.0, 0.5, 0.0]])
    target = torch.tensor([[1, 0, 0]] * 2 if name in MULTI else [0, 0])
    powers = [{"gamma": gamma} for gamma in (0.3, 0.5, 2.5, 5.0)] if hasattr(LOSSES[name](), "gamma") else [{}]
    for options in powers:
        _, single = gradient(LOSSES[name](**options), logits, target)
        _, double = gradient(LOSSES[name](**options), logits.double(), target)
        torch.testing.assert_close(single.double(), double, rtol=1e-4, atol=1e-37)


@pytest.mark.parametrize("name", EVERY)
def test_survives_copy_pickle_and_state_dict(name):
    loss = LOSSES[name](weight=torch.tensor([1.0, 2.0, 0.5, 1.0]))
    logits, target = example(name)
    for twin in (copy.deepcopy(loss), pickle.loads(pickle.dumps(loss))):
        assert repr(twin) == repr(loss)
        assert twin(logits, target) == loss(logits, target)
    fresh = LOSSES[name](weight=torch.ones(4))
    fresh.load_state_dict(loss.state_dict())
    assert fresh(logits, target) == loss(logits, target)


@pytest.mark.parametrize("name", SINGLE)
def test_adding_a_constant_to_an_examples_logits_changes_nothing(name):
    loss = LOSSES[name]()
    logits, target = example(name)
    value, grad = gradient(loss, logits, target)
    moved, moved_grad = gradient(loss, logits + torch.linspace(-50, 50, 6, dtype=torch.float64)[:, None], target)
    torch.testing.assert_close(moved, value)
    torch.testing.assert_close(moved_grad, grad)
    torch.testing.assert_close(grad.sum(1), torch.zeros(6, dtype=torch.float64), atol=1e-12, rtol=0)


@pytest.mark.parametrize("name", SINGLE)
def test_classes_have_no_order(name):
    loss = LOSSES[name]()
    logits, target = example(name, (6, 5))
    order = torch.tensor([3, 0, 4, 1, 2])
    value, grad = gradient(loss, logits, target)
    permuted, permuted_grad = gradient(loss, logits[:, order], order.argsort()[target])
    torch.testing.assert_close(permuted, value)
    torch.testing.assert_close(permuted_grad, grad[:, order])


@pytest.mark.parametrize("name", SINGLE)
@pytest.mark.parametrize("tail", [(5,), (3, 2), (2, 1, 3)])
def test_positions_are_examples(name, tail):
    loss = LOSSES[name]()
    logits, target = example(name, (3, 4, *tail))
    value, grad = gradient(loss, logits, target)
    flat, flat_grad = gradient(loss, logits.movedim(1, -1).reshape(-1, 4), target.reshape(-1))
    torch.testing.assert_close(value, flat)
    torch.testing.assert_close(grad.movedim(1, -1).reshape(-1, 4), flat_grad)


@pytest.mark.parametrize("name", EVERY)
def test_an_ignored_example_is_as_good_as_absent(name):
    loss = LOSSES[name](ignore_index=-7)
    logits, target = example(name, (8, 4))
    target[torch.tensor([1, 5])] = -7
    poisoned = logits.detach().clone()
    poisoned[1] = torch.nan
    present = torch.tensor([0, 2, 3, 4, 6, 7])
    value, grad = gradient(loss, poisoned, target)
    expected, expected_grad = gradient(loss, logits[present], target[present])
    torch.testing.assert_close(value, expected)
    torch.testing.assert_close(grad[present], expected_grad)
    assert not grad[[1, 5]].any()


@pytest.mark.parametrize("name", PER_EXAMPLE)
@pytest.mark.parametrize("weighted", [False, True])
def test_reductions_agree(name, weighted):
    weight = torch.tensor([1.0, 2.0, 0.0, 0.5], dtype=torch.float64) if weighted else None
    logits, target = example(name, (8, 4))
    target[3] = -100
    each = LOSSES[name](weight=weight, reduction="none")(logits, target)
    total = LOSSES[name](weight=weight, reduction="sum")(logits, target)
    mean = LOSSES[name](weight=weight)(logits, target)
    assert each.shape == target.shape
    assert not each[3].any()
    torch.testing.assert_close(each.sum(), total)
    counted = torch.ones(4, dtype=torch.float64) if weight is None else weight
    known = target != -100
    denominator = (counted * known).sum() if name in MULTI else counted[target[known]].sum()
    torch.testing.assert_close(total / denominator, mean)


@pytest.mark.parametrize("name", SINGLE)
def test_weights_of_one_size_do_not_change_the_mean(name):
    logits, target = example(name, dtype=torch.float32)
    heavy = LOSSES[name](weight=torch.full((4,), 3.0))
    torch.testing.assert_close(heavy(logits, target), LOSSES[name]()(logits, target))


@pytest.mark.parametrize(
    ("name", "reduction"),
    [(n, r) for n in SINGLE for r in ("mean", "sum", "none") if (n, r) != ("mmce", "none")],  # which MMCE refuses
)
def test_empty_and_all_ignored_batches_behave_like_cross_entropy(name, reduction):
    loss = LOSSES[name](reduction=reduction)
    for rows, label in ((0, 0), (3, -100)):
        logits = torch.randn(rows, 4, requires_grad=True)
        target = torch.full((rows,), label)
        value = loss(logits, target)
        torch.testing.assert_close(
            value, F.cross_entropy(logits, target, reduction=reduction), equal_nan=True, check_dtype=False
        )
        value.sum().backward()
        assert logits.grad is not None
        assert not logits.grad.any()


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
@pytest.mark.parametrize("name", EVERY)
def test_half_precision_computes_in_float32(name, dtype):
    loss = LOSSES[name]()
    logits, target = example(name, dtype=dtype)
    expected, expected_grad = gradient(loss, logits.float(), target)
    for autocast in (False, True):
        with torch.autocast("cpu", dtype=torch.bfloat16, enabled=autocast):
            value = loss(logits, target)
        assert value.dtype == torch.float32
        torch.testing.assert_close(value, expected)
        (grad,) = torch.autograd.grad(value, logits)
        assert grad.dtype == dtype
        torch.testing.assert_close(grad.float(), expected_grad, rtol=1e-2, atol=1e-3)


@pytest.mark.parametrize("name", SINGLE)
@pytest.mark.parametrize("scale", [100.0, 1e4])
def test_finite_at_extreme_logits(name, scale):
    loss = LOSSES[name]()
    signs = torch.tensor([[1, -1, 0], [-1, 1, 0], [1, 1, -1], [-1, -1, -1], [0, 0, 1]], dtype=torch.float32)
    for label in range(3):
        value, grad = gradient(loss, scale * signs, torch.full((5,), label))
        assert torch.isfinite(value)
        assert torch.isfinite(grad).all()
        exact, _ = gradient(loss, (scale * signs).double(), torch.full((5,), label))
        torch.testing.assert_close(value.double(), exact, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("name", [n for n in SINGLE if n != "mmce" and n not in SMOOTH])
def test_non_finite_logits_propagate_as_in_cross_entropy(name):
    inf, nan = torch.inf, torch.nan
    logits = torch.tensor(
        [
            [0.0, 1.0, 2.0],
            [nan, 1.0, 2.0],
            [inf, 1.0, 2.0],
            [-inf, 1.0, 2.0],
            [0.0, -inf, 2.0],
            [0.0, -inf, -inf],
            [-inf, -inf, -inf],
            [-inf, -inf, 0.0],
        ]
    )
    target = torch.zeros(8, dtype=torch.long)
    value, grad = gradient(LOSSES[name](reduction="none"), logits, target)
    reference, reference_grad = gradient(lambda z, y: F.cross_entropy(z, y, reduction="none"), logits, target)
    bounded = name.startswith("brier")
    expected = torch.where(reference == inf, 0.0, reference) if bounded else reference
    assert torch.equal(value.isnan(), expected.isnan())
    assert torch.equal(value == inf, expected == inf)
    assert torch.equal(grad.isnan().any(1), reference_grad.isnan().any(1))
    assert not grad.isinf().any()
    if not bounded and "matched" not in name and "both" not in name and name not in DETACHED:
        # at p_y = 0 every focal weight is one, and so the gradient is cross-entropy's
        torch.testing.assert_close(grad[-1], reference_grad[-1])


@pytest.mark.parametrize("name", EVERY)
@pytest.mark.parametrize("bad", [torch.nan, torch.inf, -torch.inf])
def test_a_diverged_batch_has_a_loss_that_says_so(name, bad):
    """One row, or every row, of nothing but NaN or an infinity: no exception, whatever the reduction."""
    for rows in (slice(2, 3), slice(None)):
        for reduction in ("mean", "sum"):
            logits, target = example(name, (64, 4), dtype=torch.float32)
            logits = logits.detach()
            logits[rows] = bad
            target[2] = torch.tensor([0, 1, 0, 1]) if name in MULTI else 0
            value, _ = gradient(LOSSES[name](reduction=reduction), logits, target)
            bounded = name == "multilabel_brier" and not math.isnan(bad)  # a sigmoid is right at infinity
            assert bool(torch.isfinite(value)) == bounded
            with torch.no_grad():
                assert bool(torch.isfinite(LOSSES[name](reduction=reduction)(logits, target))) == bounded


@pytest.mark.parametrize("name", [name for name in EVERY if name not in OPTIONS or name in DIFFERENTIATED])
@pytest.mark.once
def test_compiles_as_one_graph(name):
    loss = LOSSES[name](weight=torch.tensor([1.0, 2.0, 0.5, 1.0]))
    logits, target = example(name, dtype=torch.float32)
    target[2] = -100
    compiled = torch.compile(loss, fullgraph=True, backend="aot_eager" if name in DIFFERENTIATED else "eager")
    value, grad = gradient(loss, logits, target)
    compiled_value, compiled_grad = gradient(compiled, logits, target)
    torch.testing.assert_close(compiled_value, value)
    torch.testing.assert_close(compiled_grad, grad)


@pytest.mark.slow
@pytest.mark.parametrize("name", [pytest.param(n, marks=pytest.mark.release if n in OPTIONS else ()) for n in EVERY])
def test_the_default_backend_compiles_one_graph_for_all_batch_sizes(name):
    """Another number of classes may need another graph (the matched scale is a function of it), another batch none."""
    loss = LOSSES[name](reduction="sum")
    if name == "adafocal":
        loss.gammas.copy_(torch.linspace(-2, 5, 15))  # both of its branches
    compiled, graphs = torch.compile(loss, fullgraph=True, dynamic=True), {}
    for classes in (10, 3):
        for rows in (128, 37, 2):
            for scale in (1.0, 30.0, 200.0):
                logits, target = example(name, (rows, classes), dtype=torch.float32)
                logits = scale / 2 * logits.detach()
                value, grad = gradient(compiled, logits, target)
                exact, exact_grad = gradient(loss, logits.double(), target)
                torch.testing.assert_close(value.double(), exact, rtol=1e-5, atol=1e-5)
                torch.testing.assert_close(grad.double(), exact_grad, rtol=1e-4, atol=1e-5)
            made = torch._dynamo.utils.counters["stats"]["unique_graphs"]
            assert graphs.setdefault(classes, made) == made


@pytest.mark.parametrize("name", EVERY)
def test_functorch_grad_vmap_and_hessian(name):
    loss = LOSSES[name](reduction="sum")
    logits, target = example(name, requires_grad=False)
    _, expected = gradient(loss, logits, target)
    torch.testing.assert_close(torch.func.grad(loss)(logits, target), expected)
    hessian = torch.func.hessian(loss)(logits, target)
    reference = torch.autograd.functional.hessian(lambda z: loss(z, target), logits)
    torch.testing.assert_close(hessian, reference)
    if name in PER_EXAMPLE and name in SINGLE:
        each = torch.func.vmap(LOSSES[name]())(logits, target)
        torch.testing.assert_close(each, LOSSES[name](reduction="none")(logits, target))
        per_example = torch.func.vmap(torch.func.grad(LOSSES[name]()))(logits, target)
        torch.testing.assert_close(per_example, expected)


@pytest.mark.parametrize("name", EVERY)
def test_forward_mode_agrees_with_backward(name):
    loss = LOSSES[name]()
    logits, target = example(name, requires_grad=False)
    direction = torch.randn_like(logits)
    _, tangent = torch.func.jvp(lambda z: loss(z, target), (logits,), (direction,))
    _, grad = gradient(loss, logits, target)
    torch.testing.assert_close(tangent, (grad * direction).sum())
    with torch.autograd.forward_ad.dual_level():
        dual = torch.autograd.forward_ad.make_dual(logits, direction)
        torch.testing.assert_close(torch.autograd.forward_ad.unpack_dual(loss(dual, target)).tangent, tangent)


@pytest.mark.parametrize("name", SOFT)
@pytest.mark.parametrize("shape", [(6, 4), (2, 4, 3)])
def test_class_probabilities_mean_the_expectation(name, shape):
    weight = torch.tensor([1.0, 2.0, 0.5, 0.25], dtype=torch.float64)
    loss = LOSSES[name](weight=weight, reduction="none")
    logits, hard = example(name, shape)
    target = torch.randn(shape, dtype=torch.float64).softmax(1)
    expected = sum(target[:, k] * loss(logits, torch.full_like(hard, k)) for k in range(4))
    torch.testing.assert_close(loss(logits, target), expected)
    examples = hard.numel()
    torch.testing.assert_close(LOSSES[name](weight=weight)(logits, target), expected.sum() / examples)
    one_hot = F.one_hot(hard, 4).movedim(-1, 1).double()
    torch.testing.assert_close(loss(logits, one_hot), loss(logits, hard))
    assert torch.autograd.gradcheck(lambda z: LOSSES[name]()(z, target), (logits,), fast_mode=INTERPRETED)


@pytest.mark.parametrize("name", SOFT)
def test_class_probabilities_are_not_read_where_the_call_is_traced(name):
    loss = LOSSES[name]()
    logits, _ = example(name, dtype=torch.float32, requires_grad=False)
    target = torch.randn(6, 4).softmax(1)
    value = loss(logits, target)
    torch.testing.assert_close(torch.func.vmap(loss)(logits, target).mean(), value)
    torch.testing.assert_close(torch.compile(loss, fullgraph=True, backend="eager")(logits, target), value)
    assert loss(logits.to("meta"), target.to("meta")).shape == ()


@pytest.mark.parametrize("name", EVERY)
def test_the_value_without_grad_mode_is_the_value(name):
    loss = LOSSES[name]()
    logits, target = example(name)
    with torch.no_grad():
        value = loss(logits, target)
    assert not value.requires_grad
    torch.testing.assert_close(value, loss(logits, target).detach())


@pytest.mark.parametrize("name", EVERY)
def test_memory_that_is_not_contiguous(name):
    weight = torch.rand(8).mul_(2)[::2]
    loss = LOSSES[name](weight=weight)
    logits, target = example(name, (8, 4), dtype=torch.float32)
    wide = torch.stack([target, target + 1], -1)[..., 0]
    assert not wide.is_contiguous()
    plain = LOSSES[name](weight=weight.contiguous())
    torch.testing.assert_close(loss(logits.detach().T.contiguous().T, wide), plain(logits, target).detach())
