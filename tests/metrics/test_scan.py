"""One pass, whatever the layout, the engine, the dtype and the number of threads."""

import sys

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import special
from support.forked import memory_growth
from support.metric_engines import ENGINES, use

from focalcal import _native, metrics
from focalcal.metrics.scan import scan_inputs
from focalcal.predictions import read_inputs


def scan(probs, labels, *, logits=None, ignore_index=None, **asked):
    given = read_inputs(probs, labels, logits=logits, ignore_index=ignore_index)
    return scan_inputs(given, ignore_index=ignore_index, **asked)


def values(found):
    """The sums and rows of a scan as one flat list of arrays."""
    sums = [found.bins.count, found.bins.confidence, found.bins.correct]
    sums += [found.classes.count, found.classes.confidence, found.classes.correct]
    rows = [found.confidence, found.correct, found.row_brier, found.row_nll]
    return sums, rows, [found.rows, found.wrong, found.brier_sum, found.nll_sum]


@settings(max_examples=60)
@given(
    shape=st.sampled_from(
        [(1, 2), (7, 3), (65, 10), (130, 33), (50, 100), (4, 5, 6), (3, 21, 8, 8), (2, 40, 3, 30), (70, 10, 1)]
    ),
    layout=st.sampled_from(["contiguous", "channels last", "reversed", "sliced", "expanded"]),
    dtype=st.sampled_from([torch.float32, torch.float64]),
    ignore=st.sampled_from([None, 1, 255]),
    seed=st.integers(0, 10**6),
)
@pytest.mark.parametrize("engine", ENGINES)
def test_layouts(engine, shape, layout, dtype, ignore, seed):
    generator = torch.Generator().manual_seed(seed)
    probs = (torch.randn(shape, generator=generator, dtype=dtype) * 3).softmax(1)
    labels = torch.randint(shape[1], shape[:1] + shape[2:], generator=generator)
    if ignore == 255:
        labels[torch.rand(labels.shape, generator=generator) < 0.3] = 255
    if layout == "channels last":
        probs = probs.movedim(1, -1).contiguous().movedim(-1, 1)
    elif layout == "reversed":
        order = list(range(probs.dim()))[::-1]
        probs = probs.permute(order).contiguous().permute(order)
    elif layout == "sliced":
        wide = torch.full((shape[0], shape[1] + 3, *shape[2:]), torch.nan, dtype=dtype)
        wide[:, 1:-2] = probs
        probs = wide[:, 1:-2]
    elif layout == "expanded":
        probs = probs[:1].expand(shape)
    rows = probs.movedim(1, -1).reshape(-1, shape[1])
    flat = labels.flatten()
    keep = flat != ignore if ignore is not None else torch.ones_like(flat, dtype=torch.bool)
    wanted = {"classes": True, "brier": True, "nll": True, "rows": True}
    with pytest.MonkeyPatch.context() as patch:
        use(engine, patch)
        if not bool(keep.any()):
            with pytest.raises(ValueError, match="must leave a row"):
                scan(probs, labels, ignore_index=ignore, **wanted)
            return
        sums, each, totals = values(scan(probs, labels, ignore_index=ignore, **wanted))
    with pytest.MonkeyPatch.context() as patch:
        use("numpy", patch)
        expected, expected_each, expected_totals = values(scan(rows[keep].contiguous(), flat[keep], **wanted))
    tolerance = 1e-12 if dtype is torch.float64 else 1e-6
    for mine, other in zip([*sums, *each, totals], [*expected, *expected_each, expected_totals], strict=True):
        np.testing.assert_allclose(mine, other, rtol=tolerance, atol=tolerance * max(1, len(flat)))
    np.testing.assert_array_equal(sums[0], expected[0])
    np.testing.assert_array_equal(sums[3], expected[3])


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("shape", [(300, 10), (40, 1000), (5, 4, 7, 9)])
@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
def test_logits_of_any_precision(engine, dtype, shape, monkeypatch):
    """Softmax and its logarithm in float64, whatever the logits are; every number is that of its definition."""
    generator = np.random.default_rng(0)
    logits = (20 * generator.normal(size=shape)).astype(dtype)
    logits[0, 1:] = -np.inf
    labels = generator.integers(shape[1], size=shape[:1] + shape[2:])
    labels[0] = 0
    use(engine, monkeypatch)
    found = scan(None, labels, logits=logits, classes=True, brier=True, nll=True, rows=True)
    rows = np.moveaxis(logits, 1, -1).reshape(-1, shape[1]).astype(np.float64)
    log_probs, flat = special.log_softmax(rows, axis=1), labels.ravel()
    probs, hot = np.exp(log_probs), np.eye(shape[1])[flat]
    np.testing.assert_allclose(found.row_nll, -log_probs[np.arange(len(flat)), flat], rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(found.row_brier, np.square(probs - hot).sum(1), rtol=1e-11, atol=1e-13)
    np.testing.assert_allclose(found.confidence, probs.max(1), rtol=1e-12)
    np.testing.assert_array_equal(found.correct, rows.argmax(1) == flat)
    np.testing.assert_allclose(found.classes.confidence.sum(1), probs.sum(0), rtol=1e-10)
    assert (found.nll_sum, found.brier_sum) == pytest.approx((found.row_nll.sum(), found.row_brier.sum()), rel=1e-12)


@pytest.mark.skipif(not _native.available(), reason="the native kernel was not built here")
def test_the_number_of_threads_changes_nothing():
    generator = torch.Generator().manual_seed(0)
    probs = (torch.randn(30_000, 12, generator=generator) * 3).softmax(1)
    labels = torch.randint(12, (30_000,), generator=generator)
    threads = torch.get_num_threads()
    try:
        found = []
        for count in (1, 2, 3):
            torch.set_num_threads(count)
            found.append(metrics.summary(probs, labels).as_dict())
    finally:
        torch.set_num_threads(threads)
    assert found[1] == pytest.approx(found[0], abs=1e-13)
    assert found[2] == pytest.approx(found[0], abs=1e-13)


def test_arrays_are_read_where_they_are(tmp_path):
    generator = np.random.default_rng(0)
    probs = generator.dirichlet(np.ones(4), size=50)
    labels = generator.integers(4, size=50)
    expected = metrics.ece(probs, labels)
    np.save(tmp_path / "probs.npy", probs)
    mapped = np.load(tmp_path / "probs.npy", mmap_mode="r")
    locked = probs.copy()
    locked.flags.writeable = False
    for same in (mapped, locked, probs[::-1][::-1], probs.astype(">f8"), probs.tolist(), torch.from_numpy(probs)):
        assert metrics.ece(same, labels) == pytest.approx(expected, abs=1e-15)
    for kind in (np.int8, np.uint8, np.int16, np.uint16, np.int32, np.uint64):
        assert metrics.ece(probs, labels.astype(kind)) == pytest.approx(expected, abs=1e-15)
    tracked = torch.from_numpy(probs).requires_grad_()
    assert metrics.ece(tracked, labels) == pytest.approx(expected, abs=1e-15)


@pytest.mark.once
@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
@pytest.mark.parametrize("engine", ENGINES)
def test_nothing_is_allocated_in_proportion_to_the_array(engine, monkeypatch):
    """An array of 80 MB costs less than 10 MB more than itself, or 30 in pieces."""
    use(engine, monkeypatch)
    probs, labels = torch.full((20_000, 1000), 1e-3), torch.arange(20_000) % 1000

    def summary_of(rows):
        return lambda: metrics.summary(probs[:rows], labels[:rows])

    assert memory_growth(summary_of(2000), summary_of(20_000)) < (10 if engine == "native" else 30)
    assert memory_growth(summary_of(2000), probs.clone) > 70
