"""What smECE promises: whole ends, a width that its value justifies, agreement however it is computed."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.metric_engines import ENGINES, use

from focalcal.metrics import smooth_ece
from focalcal.metrics.smooth import (
    Smoother,
    binary_smooth_ece,
    interval_moments,
    node_sums,
    smooth_ece_of,
    smooth_reliability,
)


def table(confidence, correct):
    """Two-class rows with the given confidences, right or wrong as told."""
    confidence = np.asarray(confidence, dtype=float)
    return np.stack([confidence, 1 - confidence], 1), np.where(correct, 0, 1)


def reference(f, a, *, ends):
    """The definition with a dense kernel matrix: nodes, mirror images, Gaussian, mesh; bisection as published."""

    def error(width):
        nodes = max(2000, round(20 / width)) // 2 + 1
        place = f * (nodes - 1)
        left = np.minimum(place.astype(int), nodes - 2)
        share = place - left
        residual, count = np.zeros(nodes), np.zeros(nodes)
        for values, out in ((f - a, residual), (np.ones_like(f), count)):
            np.add.at(out, left, values * (1 - share))
            np.add.at(out, left + 1, values * share)
            out[[0, -1]] *= ends
        kernel = np.exp(-0.5 * (np.linspace(-0.5, 0.5, nodes) / width) ** 2) / (width * np.sqrt(2 * np.pi))
        mesh = np.linspace(0, 1, max(round(10 / width), 200))

        def smoothed(v):
            mirrored = np.concatenate([v[::-1][:-1], v, v[::-1][1:]])
            whole = np.convolve(mirrored, kernel, mode="valid")[nodes // 2 : nodes // 2 + nodes]
            return np.interp(mesh, np.linspace(0, 1, nodes), whole)

        return np.abs(smoothed(residual)).sum() / (smoothed(count) + 1e-4).sum()

    low, high = 0.0, 1.0
    for _ in range(10):
        middle = (low + high) / 2
        if middle < 0.001 or middle < error(middle):
            low = middle
        else:
            high = middle
    return error(high)


@settings(max_examples=25)
@given(seed=st.integers(0, 10**6), rows=st.sampled_from([1, 7, 300, 5000]), off=st.sampled_from([0.0, 0.02, 0.3]))
@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("convention", ["whole", "relplot"])
def test_definition(convention, engine, seed, rows, off):
    generator = np.random.default_rng(seed)
    f = generator.choice([generator.beta(6, 1.5, rows), np.round(generator.random(rows), 1)])
    a = generator.random(rows) < f - off
    with pytest.MonkeyPatch.context() as patch:
        use(engine, patch)
        value = binary_smooth_ece(f, a, convention=convention)
    assert value == pytest.approx(reference(f, a, ends=2.0 if convention == "whole" else 1.0), abs=1e-10)


def test_all_confidences_at_one():
    assert smooth_ece(*table(np.ones(1000), np.arange(1000) % 10 != 0)) == pytest.approx(0.1, abs=1e-5)
    assert smooth_ece(*table(np.ones(10), np.zeros(10, dtype=bool))) == pytest.approx(1.0, abs=1e-2)


def test_the_width_is_no_smaller_than_the_error_and_the_next_one_is():
    generator = np.random.default_rng(0)
    f = generator.random(4000)
    a = generator.random(4000) < f**1.5
    smoother = Smoother(lambda n, _: node_sums(interval_moments(f, a, n)[None]))
    (value,), (width,) = smooth_ece_of(smoother, 1)
    assert value <= width
    assert smoother.error(width - 1 / 1024, np.array([0]))[0] > width - 1 / 1024
    assert float(width * 1024).is_integer()


def test_the_width_is_not_below_a_thousandth_however_small_the_error():
    """Errors of 1 / 4000 either way at neighbouring confidences, which a wider kernel sets off against each other."""
    f = np.repeat([0.5, 0.503], 2000)
    a = np.tile(np.arange(2000), 2) < np.repeat([1001, 1005], 2000)
    value, finer = (binary_smooth_ece(f, a, bandwidth=b) for b in (None, 1 / 1024))
    assert value == pytest.approx(reference(f, a, ends=2.0), abs=1e-10)
    assert value < 0.8 * finer < 1 / 1024


def test_the_curve_is_as_far_from_the_diagonal_as_its_error_and_says_how_many_rows_its_middle_rests_on():
    """Kish's effective size of the kernel's weights, of rows spread evenly."""
    f = (np.arange(4000) + 0.5) / 4000
    a = np.random.default_rng(0).random(4000) < f
    curve = smooth_reliability(f, a)
    distance = np.average(np.abs(curve.confidence - curve.accuracy), weights=curve.density)
    assert distance == pytest.approx(binary_smooth_ece(f, a), abs=1e-3)
    kernel = np.exp(-0.5 * ((f - 0.5) / curve.bandwidth) ** 2)
    middle = len(curve.rows) // 2
    assert curve.rows[middle] == pytest.approx(kernel.sum() ** 2 / (kernel**2).sum(), rel=1e-2)


def test_many_sets_at_once_are_each_alone():
    generator = np.random.default_rng(0)
    sets = [(generator.random(300), generator.random(300)) for _ in range(9)]
    pairs = [(f, u < f - off) for (f, u), off in zip(sets, np.linspace(-0.4, 0.4, 9), strict=True)]
    together, _ = smooth_ece_of(
        Smoother(lambda n, chosen: node_sums(np.stack([interval_moments(f, a, n) for f, a in pairs])[chosen])), 9
    )
    assert together == pytest.approx([binary_smooth_ece(f, a) for f, a in pairs], abs=1e-12)
