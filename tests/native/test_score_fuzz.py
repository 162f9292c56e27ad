"""The native pass over scores under any shape, stride, dtype and label: the right sums or the right refusal.

`make sanitize` runs this file once more with AddressSanitizer watching every access.
"""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import log_softmax, softmax

from focalcal import _native
from focalcal._native import scores

pytestmark = pytest.mark.skipif(not _native.available(), reason="the native kernel was not built here")


def edges_of(bins):
    return np.arange(bins + 1) / bins


def flat_rows(scores):
    return np.moveaxis(scores, 1, -1).reshape(-1, scores.shape[1])


@st.composite
def strided(draw, *, logits=False):
    """(N, K, d1, ...) probabilities or logits laid out in any way NumPy allows, to the last byte of their block."""
    dims = draw(st.integers(0, 2))
    classes = draw(st.one_of(st.integers(2, 40), st.sampled_from([63, 64, 65, 127, 200, 257])))
    shape = [draw(st.integers(1, 70 if dims == 0 else 5)), classes, *[draw(st.integers(1, 9)) for _ in range(dims)]]
    normal = np.random.default_rng(draw(st.integers(0, 2**31))).standard_normal(shape)
    scores = draw(st.sampled_from([0.0, 1.0, 5.0, 100.0])) * normal
    scores = (scores if logits else softmax(scores, axis=1)).astype(draw(st.sampled_from(["f2", "f4", "f8"])))
    order = draw(st.permutations(range(len(shape))))
    scores = np.ascontiguousarray(scores.transpose(order)).transpose([order.index(d) for d in range(len(shape))])
    if draw(st.booleans()) and draw(st.booleans()):
        return np.broadcast_to(scores[:1], shape)  # a stride of zero
    backwards = draw(st.lists(st.sampled_from(range(len(shape))), max_size=1))
    return np.flip(scores, backwards) if backwards else scores


def tolerance_of(probs):
    """How far a row may sum from one; half precision rounds each class's probability to three digits."""
    return 0.05 if probs.dtype == np.float16 else 1e-5


@settings(max_examples=150)
@given(
    probs=strided(), n_bins=st.sampled_from([1, 2, 3, 15, 100]), ignore=st.sampled_from([None, 0, -100]), data=st.data()
)
@pytest.mark.parametrize("instruction_set", range(len(_native.instruction_sets()) or 1))
def test_pass(instruction_set, probs, n_bins, ignore, data):
    classes = probs.shape[1]
    generator = np.random.default_rng(data.draw(st.integers(0, 2**31)))
    labels = generator.integers(classes, size=probs.shape[:1] + probs.shape[2:])
    broken = data.draw(st.sampled_from([None, None, "label", "nan", "inf", "negative", "sum"]))
    position = data.draw(st.integers(0, labels.size - 1))
    at = np.unravel_index(position, labels.shape)
    if broken is not None and broken != "label":
        probs = probs.copy()
        wrong = {"nan": np.nan, "inf": np.inf, "negative": -0.5, "sum": 1.5}[broken]
        probs[at[0], data.draw(st.integers(0, classes - 1)), *at[1:]] = wrong
        labels[at] = classes - 1
    elif broken == "label":
        labels[at] = data.draw(st.sampled_from([-1, classes, 2**40, -(2**63)]))
    found = scores.score_pass(
        probs, labels, edges_of(n_bins), tolerance_of(probs), 0.0,
        ignore_index=ignore, classes=data.draw(st.booleans()), brier=data.draw(st.booleans()),
        nll=data.draw(st.booleans()), rows=data.draw(st.booleans()), instruction_set=instruction_set,
    )  # fmt: skip
    if broken is not None:
        skipped = broken != "label" and ignore == classes - 1
        assert found.bad == (-1 if skipped else position)
        return
    assert found.bad == -1
    kept = labels.ravel() != ignore
    assert found.totals[0] == found.bins[0].sum() == kept.sum()
    rows, labels = flat_rows(probs)[kept].astype(np.float64), labels.ravel()[kept]
    if len(rows) == 0:
        return
    right = rows.argmax(1) == labels
    assert found.totals[4] == pytest.approx(abs(rows.sum(1) - 1).max(), abs=1e-13)
    assert found.bins[1].sum() == pytest.approx(rows.max(1).sum(), rel=1e-12)
    assert found.bins[2].sum() == right.sum()
    if found.classes is not None:
        np.testing.assert_allclose(found.classes[1].sum(1), rows.sum(0), rtol=1e-12, atol=1e-12)
        np.testing.assert_array_equal(found.classes[2].sum(1), np.bincount(labels, minlength=classes))
    if found.confidence is not None:
        np.testing.assert_array_equal(found.confidence[kept], rows.max(1))
        np.testing.assert_array_equal(found.correct[kept], right)


@settings(max_examples=150)
@given(logits=strided(logits=True), ignore=st.sampled_from([None, 0, -100]), data=st.data())
@pytest.mark.parametrize("instruction_set", range(len(_native.instruction_sets()) or 1))
def test_logits_give_what_their_softmax_gives(instruction_set, logits, ignore, data):
    classes = logits.shape[1]
    labels = np.random.default_rng(data.draw(st.integers(0, 2**31))).integers(classes, size=logits[:, 0].shape)
    if data.draw(st.booleans()):
        logits = logits.copy()
        logits[:, 0] = -np.inf  # an impossible class: another one is left
    expected = softmax(logits.astype(np.float64), axis=1)
    asked = {name: data.draw(st.booleans()) for name in ("classes", "brier", "rows")}
    asked |= {"ignore_index": ignore, "instruction_set": instruction_set}
    found = scores.score_pass(logits, labels, edges_of(15), 1e-3, 0.0, logits=True, nll=True, **asked)
    plain = scores.score_pass(expected, labels, edges_of(15), 1e-3, 0.0, **asked)
    assert found.bad == plain.bad == -1
    kept = labels.ravel() != ignore
    nll = -np.take_along_axis(flat_rows(log_softmax(logits.astype(np.float64), axis=1)), labels.ravel()[:, None], 1)
    nll = nll[kept, 0]
    assert found.totals[3] == pytest.approx(nll.sum(), rel=1e-12, abs=1e-14)
    np.testing.assert_allclose(found.totals[:3], plain.totals[:3], rtol=1e-12, atol=1e-13)
    np.testing.assert_allclose(found.bins[1:].sum(1), plain.bins[1:].sum(1), rtol=1e-12, atol=1e-13)
    if asked["classes"]:
        np.testing.assert_allclose(found.classes.sum(2), plain.classes.sum(2), rtol=1e-12, atol=1e-13)
    if asked["rows"]:
        assert found.confidence.dtype == np.float64
        np.testing.assert_allclose(found.confidence[kept], plain.confidence[kept], rtol=1e-12)
        np.testing.assert_array_equal(found.correct[kept], plain.correct[kept])
        np.testing.assert_allclose(found.nll[kept], nll, rtol=1e-12, atol=1e-15)


@settings(max_examples=100)
@given(logits=strided(logits=True), wrong=st.sampled_from([[np.nan], [np.inf], [-np.inf], None]), data=st.data())
@pytest.mark.parametrize("instruction_set", range(len(_native.instruction_sets()) or 1))
def test_the_first_row_of_impossible_logits_is_named(instruction_set, logits, wrong, data):
    logits, classes = logits.copy(), logits.shape[1]
    labels = np.zeros(logits[:, 0].shape, np.int64)
    position = data.draw(st.integers(0, labels.size - 1))
    row, *inner = np.unravel_index(position, labels.shape)
    if wrong is None:
        labels[(row, *inner)] = classes
    elif wrong == [-np.inf]:
        logits[(row, slice(None), *inner)] = -np.inf
    else:
        logits[(row, data.draw(st.integers(0, classes - 1)), *inner)] = wrong[0]
    asked = {"logits": True, "instruction_set": instruction_set}
    assert scores.score_pass(logits, labels, edges_of(15), 1e-3, 0.0, **asked).bad == position
    labels[(row, *inner)] = -100
    assert scores.score_pass(logits, labels, edges_of(15), 1e-3, 0.0, ignore_index=-100, **asked).bad == -1


def test_of_equal_logits_the_first_class_is_predicted():
    for classes in (2, 10, 40):
        labels = np.arange(classes)
        for dtype in (np.float16, np.float32, np.float64):
            found = scores.score_pass(
                np.zeros((classes, classes), dtype), labels, edges_of(15), 1e-3, 0.0, logits=True, rows=True
            )
            np.testing.assert_array_equal(found.correct, labels == 0)


def test_a_probability_that_vanishes_leaves_the_likelihood_of_its_logit():
    logits = np.array([[0.0, -2000.0], [0.0, -np.inf]])
    found = scores.score_pass(logits, np.array([1, 1]), edges_of(15), 1e-3, 0.0, logits=True, nll=True, rows=True)
    np.testing.assert_array_equal(found.nll, [2000.0, np.inf])


def test_half_precision_is_read_number_by_number():
    """Every probability that float16 has, denormals too, as its float64 twin; in rows and channel first."""
    values = np.arange(0x3C01, dtype=np.uint16).view(np.float16)  # 0 to 1
    for classes in (2, 50):
        probs = np.zeros((len(values), classes), np.float16)
        probs[:, 0], probs[:, -1] = values, 1 - values.astype(np.float64)
        for layout in (probs, np.asfortranarray(probs)):
            given = (np.zeros(len(probs), np.int64), edges_of(15), 0.05, 0.0)
            asked = {"classes": True, "brier": True, "nll": True, "rows": True}
            half = scores.score_pass(layout, *given, **asked)
            assert half.confidence.dtype == np.float32
            for here, there in zip(half, scores.score_pass(layout.astype(np.float64), *given, **asked), strict=True):
                np.testing.assert_allclose(here, there, rtol=1e-12)


@settings(max_examples=100)
@given(
    values=st.lists(st.floats(0, 1), max_size=200),
    bins=st.integers(1, 40),
    even=st.booleans(),
    dtype=st.sampled_from(["f2", "f4", "f8"]),
)
def test_moments(values, bins, even, dtype):
    f = np.array(values, dtype)
    a = np.arange(len(values)) % 3 == 0
    edges = edges_of(bins) if even else np.sort(np.random.default_rng(len(values)).random(bins + 1))
    found = scores.bin_moments(f, a, edges, even=even)
    index = np.searchsorted(edges[1:-1], f)
    d = f.astype(np.float64)
    for at, value in enumerate((np.ones_like(d), d, a, d * d, d * a)):
        np.testing.assert_allclose(found[at], np.bincount(index, value, minlength=bins), rtol=1e-12, atol=1e-12)


def test_wrong_descriptions_are_refused():
    kernel = _native.kernel()
    with pytest.raises(TypeError, match="score_pass takes 26 arguments"):
        kernel.score_pass(1, 2)
    with pytest.raises(ValueError, match="inconsistent description"):
        kernel.score_pass(*[0] * 11, 1e-5, 0.0, *[0] * 13)
    with pytest.raises(TypeError, match="bin_moments takes 8 arguments"):
        kernel.bin_moments(1)
    with pytest.raises(ValueError, match="inconsistent description"):
        kernel.bin_moments(*[0] * 8)
    with pytest.raises(TypeError, match="labels must be 2 int64"):
        scores.score_pass(np.full((2, 2), 0.5), np.zeros(3, np.int64), edges_of(3), 1e-5, 0.0)
