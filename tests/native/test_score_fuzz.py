"""The native pass over scores under any shape, stride, dtype and label: the right sums or the right refusal.

`make sanitize` runs this file once more with AddressSanitizer watching every access.
"""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from focalcal import _native
from focalcal._native import scores
from focalcal.core.binning import equal_width_edges
from focalcal.metrics.scan import scan

pytestmark = pytest.mark.skipif(not _native.available(), reason="the native kernel was not built here")


@st.composite
def strided(draw):
    """(N, K, d1, ...) probabilities laid out in memory in any way torch allows, to the last byte of their block."""
    dims = draw(st.integers(0, 2))
    classes = draw(st.one_of(st.integers(2, 40), st.sampled_from([63, 64, 65, 127, 200, 257])))
    shape = [draw(st.integers(1, 70 if dims == 0 else 5)), classes, *[draw(st.integers(1, 9)) for _ in range(dims)]]
    generator = torch.Generator().manual_seed(draw(st.integers(0, 2**31)))
    dtype = draw(st.sampled_from([torch.float32, torch.float64]))
    probs = (
        draw(st.sampled_from([0.0, 1.0, 5.0, 100.0])) * torch.randn(shape, generator=generator, dtype=dtype)
    ).softmax(1)
    order = draw(st.permutations(range(len(shape))))
    probs = probs.permute(order).contiguous().permute([order.index(d) for d in range(len(shape))])
    return probs[:1].expand(shape) if draw(st.booleans()) and draw(st.booleans()) else probs


@settings(max_examples=150)
@given(
    probs=strided(), n_bins=st.sampled_from([1, 2, 3, 15, 100]), ignore=st.sampled_from([None, 0, -100]), data=st.data()
)
@pytest.mark.parametrize("instruction_set", range(len(_native.instruction_sets()) or 1))
def test_pass(instruction_set, probs, n_bins, ignore, data):
    generator = torch.Generator().manual_seed(data.draw(st.integers(0, 2**31)))
    labels = torch.randint(probs.shape[1], probs.shape[:1] + probs.shape[2:], generator=generator)
    broken = data.draw(st.sampled_from([None, None, "label", "nan", "inf", "negative", "sum"]))
    position = data.draw(st.integers(0, labels.numel() - 1))
    if broken is not None and broken != "label":
        probs = probs.clone(memory_format=torch.contiguous_format)
        row = probs.movedim(1, -1).reshape(-1, probs.shape[1])[position].clone()
        row[data.draw(st.integers(0, probs.shape[1] - 1))] = {
            "nan": torch.nan,
            "inf": torch.inf,
            "negative": -0.5,
            "sum": 1.5,
        }[broken]
        at = torch.unravel_index(torch.tensor(position), labels.shape)
        probs[at[0], :, *at[1:]] = row
        labels.view(-1)[position] = probs.shape[1] - 1
    elif broken == "label":
        labels.view(-1)[position] = data.draw(st.sampled_from([-1, probs.shape[1], 2**40, -(2**63)]))
    found = scores.score_pass(
        probs, labels, equal_width_edges(n_bins), 1e-5, 0.0, ignore_index=ignore, classes=data.draw(st.booleans()),
        brier=data.draw(st.booleans()), nll=data.draw(st.booleans()), rows=data.draw(st.booleans()),
        instruction_set=instruction_set,
    )  # fmt: skip
    if broken is not None:
        skipped = broken != "label" and ignore == probs.shape[1] - 1
        assert found.bad == (-1 if skipped else position)
        return
    assert found.bad == -1
    kept = labels.flatten() != ignore if ignore is not None else torch.ones(labels.numel(), dtype=torch.bool)
    assert found.totals[0] == int(kept.sum())
    assert found.bins[0].sum() == int(kept.sum())
    rows = probs.movedim(1, -1).reshape(-1, probs.shape[1])[kept].double()
    if len(rows):
        assert float(found.totals[4]) == pytest.approx(float((rows.sum(1) - 1).abs().max()), abs=1e-13)
        assert float(found.bins[1].sum()) == pytest.approx(float(rows.amax(1).sum()), rel=1e-12)
        right = rows.argmax(1) == labels.flatten()[kept]
        assert float(found.bins[2].sum()) == int(right.sum())
    if found.classes is not None and len(rows):
        torch.testing.assert_close(found.classes[1].sum(1), rows.sum(0), rtol=1e-12, atol=1e-12)
        torch.testing.assert_close(
            found.classes[2].sum(1), torch.bincount(labels.flatten()[kept], minlength=probs.shape[1]).double()
        )


@settings(max_examples=100)
@given(values=st.lists(st.floats(0, 1), max_size=200), bins=st.integers(1, 40), even=st.booleans(), wide=st.booleans())
def test_moments(values, bins, even, wide):
    f = torch.tensor(values, dtype=torch.float64 if wide else torch.float32)
    a = torch.arange(len(values)) % 3 == 0
    edges = equal_width_edges(bins) if even else torch.sort(torch.rand(bins + 1, dtype=torch.float64)).values
    found = scores.bin_moments(f, a, edges, even=even)
    index = torch.bucketize(f.double(), edges[1:-1].contiguous())
    d, right = f.double(), a.double()
    for at, value in enumerate((torch.ones_like(d), d, right, d * d, d * right)):
        expected = torch.zeros(bins, dtype=torch.float64).index_add_(0, index, value)
        torch.testing.assert_close(found[at], expected, rtol=1e-12, atol=1e-12)


def test_wrong_descriptions_are_refused():
    kernel = _native.kernel()
    with pytest.raises(TypeError, match="score_pass takes 25 arguments"):
        kernel.score_pass(1, 2)
    with pytest.raises(ValueError, match="inconsistent description"):
        kernel.score_pass(*[0] * 11, 1e-5, 0.0, *[0] * 12)
    with pytest.raises(TypeError, match="bin_moments takes 8 arguments"):
        kernel.bin_moments(1)
    with pytest.raises(ValueError, match="inconsistent description"):
        kernel.bin_moments(*[0] * 8)
    with pytest.raises(TypeError, match="labels must be 2 int64"):
        scores.score_pass(torch.full((2, 2), 0.5), torch.zeros(3, dtype=torch.int64), equal_width_edges(3), 1e-5, 0.0)


def test_the_scan_is_built_on_it():
    assert scan(torch.full((4, 2), 0.5), torch.zeros(4, dtype=torch.int64)).rows == 4
