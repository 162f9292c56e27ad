"""The native entry under any shape, stride, dtype, label and setting: the right answer or a refusal.

`make sanitize` runs this file once more with AddressSanitizer watching every access.
"""

import pytest
import torch
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from focalcal import _native
from focalcal.losses import functional
from focalcal.losses.engines import reduced_formula
from focalcal.losses.formula import Terms
from focalcal.losses.native_engine import fused_loss

pytestmark = pytest.mark.skipif(not _native.available(), reason="the native kernel was not built here")

OTHER_TERMS = [
    None,
    ([0.0, 1.0], [3.0]),
    ([0.0, 0.2, 1.0], [5.0, 3.0]),
    ([0.0, 0.3, 0.6, 1.0], [2.0, -2.0, 0.0]),
    "smoothing",
    "rival",
]
TOLERANCE = {torch.float32: 2e-4, torch.float64: 1e-9, torch.bfloat16: 2e-2}


@st.composite
def strided(draw):
    """An (N, K, d1, ...) array laid out in memory in any way torch allows."""
    dims = draw(st.integers(0, 2))
    classes = draw(st.one_of(st.integers(1, 40), st.sampled_from([63, 64, 65, 127, 200, 257])))
    shape = [draw(st.integers(0, 9)), classes, *[draw(st.integers(1, 9)) for _ in range(dims)]]
    if dims and classes <= 40:  # planes longer than what is copied at once
        shape[-1] = draw(st.one_of(st.just(shape[-1]), st.sampled_from([64, 65, 130])))
    order = draw(st.permutations(range(len(shape))))
    step = [draw(st.sampled_from([1, 1, 1, 2, 3])) for _ in shape]
    offset = draw(st.integers(0, 3))
    scale = draw(st.sampled_from([0.0, 1.0, 10.0, 1e4]))
    generator = torch.Generator().manual_seed(draw(st.integers(0, 2**31)))
    memory = torch.randn([shape[d] * step[d] + offset for d in order], generator=generator)
    array = memory.permute([order.index(d) for d in range(len(shape))])
    array = array[tuple(slice(offset, offset + shape[d] * step[d], step[d]) for d in range(len(shape)))]
    if draw(st.booleans()) and shape[0] > 1:
        array = array[:1].expand(shape)  # a stride of zero
    return scale * array if scale != 1.0 else array


@given(
    logits=strided(),
    dtype=st.sampled_from(list(TOLERANCE)),
    reduction=st.sampled_from(["mean", "sum", "none"]),
    gamma=st.sampled_from([0.0, 0.3, 1.0, 3.0]),
    lam=st.sampled_from([0.0, 1.0]),
    focal=st.sampled_from([0.0, 1.0]),
    other=st.sampled_from(OTHER_TERMS),
    ignore=st.sampled_from([None, -100, 0]),
    weighted=st.booleans(),
    gradient=st.booleans(),
    seed=st.integers(0, 2**31),
)
@settings(max_examples=300)
def test_any_layout_gives_the_formulas_answer(
    logits, dtype, reduction, gamma, lam, focal, other, ignore, weighted, gradient, seed
):
    assume(focal or lam)  # a loss has at least one term
    if isinstance(other, str):  # label smoothing and Dual Focal stand alone
        terms = Terms(gamma=gamma, rival=True) if other == "rival" else Terms(focal=0.95, smoothing=0.01)
    else:
        edges, gammas = (None, None) if other is None else map(torch.tensor, other)
        terms = Terms(focal, gamma, lam, edges, gammas)
    generator = torch.Generator().manual_seed(seed)
    logits = logits.to(dtype)
    classes = logits.shape[1]
    labels = torch.randint(0, classes, (logits.shape[0], *logits.shape[2:]), generator=generator)
    if ignore == -100 and labels.numel():
        labels[torch.rand(labels.shape, generator=generator) < 0.3] = -100
    weight = torch.rand(classes, generator=generator) + 0.5 if weighted else None
    for level in range(len(_native.instruction_sets())):
        value, grad, bad = fused_loss(
            logits, labels, weight, *terms[:7], ignore_index=ignore, reduction=reduction, gradient=gradient,
            instruction_set=level,
        )  # fmt: skip
        assert bad == -1
        leaf = logits.detach().double().requires_grad_()
        expected = reduced_formula(leaf, labels, weight, terms, ignore, reduction)
        tolerance = TOLERANCE[dtype]
        torch.testing.assert_close(
            value.double(), expected.detach(), rtol=min(tolerance, 1e-4), atol=1e-5, equal_nan=True
        )
        assert (grad is not None) == gradient
        if gradient:
            assert grad.shape == logits.shape
            (want,) = torch.autograd.grad(expected.sum(), leaf)
            want = torch.where(want.isnan(), 0.0, want)  # 0 / 0 of an all-ignored mean: torch's gradient is 0 too
            largest = want.abs().max().item() if want.numel() else 0.0
            torch.testing.assert_close(grad.double(), want, rtol=tolerance, atol=tolerance * largest + 1e-30)


@given(
    rows=st.integers(1, 300),
    classes=st.integers(1, 70),
    position=st.integers(0, 299),
    label=st.one_of(st.integers(-(2**63), -1), st.integers(70, 2**63 - 1)),
    dtype=st.sampled_from(list(TOLERANCE)),
)
def test_a_bad_label_is_found_before_anything_is_read_with_it(rows, classes, position, label, dtype):
    labels = torch.zeros(rows, dtype=torch.long)
    labels[position % rows] = label
    logits = torch.randn(rows, classes).to(dtype)
    assert fused_loss(logits, labels, torch.ones(classes))[-1] == position % rows
    with pytest.raises(ValueError, match=f"got {label} at flat position {position % rows}"):
        functional.focal_calibration(logits, labels, gamma=3.0, lam=1.0)


def test_the_smallest_integer_is_a_label_like_any_other():
    """A NaN cast to int64 is -2**63 on most processors: out of range, unless it is the very label to ignore."""
    smallest = -(2**63)
    logits = torch.randn(3, 4, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    labels = torch.tensor([1, smallest, 2])
    for ignore in (None, -100):
        assert fused_loss(logits, labels, ignore_index=ignore)[-1] == 1
    for reduction in ("mean", "sum"):
        value, grad, bad = fused_loss(logits, labels, ignore_index=smallest, reduction=reduction)
        kept, kept_grad, _ = fused_loss(logits[[0, 2]], labels[[0, 2]], reduction=reduction)
        assert bad == -1
        torch.testing.assert_close(value, kept)
        torch.testing.assert_close(grad[[0, 2]], kept_grad)
        assert not grad[1].any()


@pytest.mark.parametrize(
    ("logits", "labels", "weight"),
    [
        (torch.randn(3, 4).half(), torch.zeros(3, dtype=torch.long), None),
        (torch.randn(3, 4).long(), torch.zeros(3, dtype=torch.long), None),
        (torch.randn(3), torch.zeros(3, dtype=torch.long), None),
        (torch.randn(3, 4), torch.zeros(2, dtype=torch.long), None),
        (torch.randn(3, 4), torch.zeros(3, dtype=torch.int32), None),
        (torch.randn(3, 4), torch.zeros(3), None),
        (torch.randn(3, 4, 2), torch.zeros(3, dtype=torch.long), None),
        (torch.randn(3, 4), torch.zeros(3, dtype=torch.long), torch.ones(3)),
        (torch.randn(3, 4), torch.zeros(3, dtype=torch.long), torch.ones(4, 1)),
    ],
)
def test_arrays_that_do_not_fit_are_refused(logits, labels, weight):
    with pytest.raises((TypeError, ValueError), match=r"must be|must have"):
        fused_loss(logits, labels, weight)


@given(
    numbers=st.lists(st.integers(-5, 5), min_size=28, max_size=28),
    wrong=st.one_of(st.none(), st.text(), st.floats(), st.just(2**70)),
    at=st.integers(0, 27),
    count=st.integers(0, 40),
)
def test_the_compiled_function_itself_refuses_nonsense(numbers, wrong, at, count):
    from focalcal._native import _kernel

    numbers[3] = 0  # no classes: whatever the addresses, none may be followed
    arguments = [float(n) if 21 <= i < 25 else n for i, n in enumerate(numbers)]
    with pytest.raises(ValueError, match="inconsistent description"):
        _kernel.fused_loss(*arguments)
    assume(not (isinstance(wrong, (int, float)) and 21 <= at < 25))  # a number where numbers go
    with pytest.raises((TypeError, OverflowError)):
        _kernel.fused_loss(*arguments[:at], wrong, *arguments[at + 1 :])
    assume(count != 28)
    with pytest.raises(TypeError, match="takes 28 arguments"):
        _kernel.fused_loss(*[0] * count)
