"""The steps of docs/math/sketch.md that are numbers, and adversaries for the bounds derived there."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from focalcal.metrics.binned_errors import binary_adaptive_ece
from focalcal.metrics.cells import CELLS, adaptive_ece_bound_of, adaptive_ece_of, smooth_ece_bound_of, spread
from focalcal.metrics.smooth import (
    STEPS,
    Smoother,
    _kernel,
    binary_smooth_ece,
    interval_moments,
    intervals_for,
    node_sums,
    sensitivity,
    smooth_ece_of,
)

UNALIGNED = [step for step in range(2, STEPS + 1) if CELLS % intervals_for(step / STEPS)]


def test_nodes_leave_the_cells_at_few_widths_only():
    assert set(UNALIGNED) <= set(range(2, 11))
    assert all(intervals_for(step / STEPS) < CELLS for step in UNALIGNED)  # a cell holds at most one node


def response(width, place):
    """What a row at the place gives at each point of the mesh, from the definition: nodes, mirror images, kernel."""
    intervals, _, left, weight = _kernel(width)
    points = np.linspace(-0.5, 0.5, intervals + 1)
    density = np.exp(-0.5 * (points / width) ** 2) / (width * np.sqrt(2 * np.pi))
    half = (intervals + 1) // 2

    def kernel(distance):
        distance = (distance + intervals) % (2 * intervals) - intervals + half
        inside = (distance >= 0) & (distance <= intervals)
        return np.where(inside, density[np.clip(distance, 0, intervals)], 0.0)

    lower = min(int(place * intervals), intervals - 1)
    share = place * intervals - lower
    total = np.zeros(len(left))
    for node, part in ((lower, 1 - share), (lower + 1, share)):
        for at in (node, -node):
            total += part * (kernel(left - at) * (1 - weight) + kernel(left + 1 - at) * weight)
    return total


@pytest.mark.parametrize("step", UNALIGNED)
def test_sensitivity_is_the_largest_change_over_all_places(step):
    width = step / STEPS
    slope, kink, count_kink = sensitivity(width)
    intervals = intervals_for(width)
    ends = [0, 1, 2, intervals // 3, intervals // 2, intervals // 2 + 1, intervals - 2, intervals - 1]
    sums, slopes, kinks, count_kinks = [], [], [], []
    for node in ends:
        here, after = response(width, node / intervals), response(width, (node + 1) / intervals)
        sums.append(here.sum())
        slopes.append(np.abs(after - here).sum() * intervals)
        if node:
            change = (after - 2 * here + response(width, (node - 1) / intervals)) * intervals
            kinks.append(np.abs(change).sum())
            count_kinks.append(abs(change.sum()))
    least = min(sums)
    assert max(slopes) / least <= slope * (1 + 1e-9)
    assert max(kinks) / least <= kink * (1 + 1e-9)
    assert max(count_kinks) / least <= count_kink * (1 + 1e-9)
    # In the middle they are the integrals 2 phi(0) / s and 4 phi(1) / s^2 times the distance of two nodes.
    assert slope == pytest.approx(np.sqrt(2 / np.pi) / width, rel=0.3)
    assert kink == pytest.approx(4 * np.exp(-0.5) / np.sqrt(2 * np.pi) / width**2 / intervals, rel=0.3)


def within_cells(generator, cells, rows, right):
    """Confidences anywhere in a few cells, outcomes right at a rate of about the confidence."""
    chosen = generator.choice(cells, rows)
    f = (chosen + generator.choice([1e-9, 0.5, 1.0], rows)) / CELLS
    return f, generator.random(rows) < np.clip(f + right, 0, 1)


@settings(max_examples=60)
@given(
    seed=st.integers(0, 2**32 - 1),
    cells=st.integers(1, 12),
    rows=st.integers(1, 400),
    n_bins=st.integers(1, 40),
    right=st.floats(-0.5, 0.5),
)
def test_adaptive_ece_is_within_its_bound_when_edges_crowd_into_cells(seed, cells, rows, n_bins, right):
    generator = np.random.default_rng(seed)
    f, a = within_cells(generator, generator.choice(CELLS, cells, replace=False), rows, right)
    moments = interval_moments(f, a, CELLS)
    exact = binary_adaptive_ece(f, a, n_bins=n_bins)
    found = adaptive_ece_of(moments[None], n_bins)[0]
    assert abs(found - exact) <= adaptive_ece_bound_of(moments, n_bins) + 1e-12


@settings(max_examples=40)
@given(seed=st.integers(0, 2**32 - 1), spread_over=st.sampled_from([3, 40, 400, 4000]), lean=st.floats(-0.01, 0.01))
def test_smooth_ece_is_within_its_bound_at_the_narrowest_kernels(seed, spread_over, lean):
    """Many rows, nearly calibrated within each cell: the error is below 0.012, where cells and nodes do not align."""
    generator = np.random.default_rng(seed)
    cells = generator.choice(np.arange(4000, CELLS), spread_over, replace=False)
    f, _ = within_cells(generator, cells, 20000, 0.0)
    order = np.argsort(f)
    f = f[order]
    a = np.zeros(len(f), bool)
    due = np.floor(np.cumsum(f + lean))  # a row is right whenever another one is due: no chance takes part
    a[1:] = due[1:] > due[:-1]
    moments = interval_moments(f, a, CELLS)
    exact = binary_smooth_ece(f, a)
    found = smooth_ece_of(Smoother(lambda n, _: node_sums(spread(moments[None], n))), 1)[0][0]
    bound = smooth_ece_bound_of(moments)
    assert abs(found - exact) <= bound
    assert bound < 2.5e-3


@pytest.mark.parametrize("step", UNALIGNED)
def test_a_fixed_width_is_within_the_slack(step):
    """Wrong rows at the ends of a cell with a node in its middle, right rows in the middle: the sketch sees both at
    one place, where they cancel.
    """
    width = step / STEPS
    nodes = np.arange(intervals_for(width)) / intervals_for(width) * CELLS
    nodes = nodes[np.abs(nodes / CELLS - 0.5) < 0.2]
    cell = int(nodes[np.argmin(np.abs(nodes % 1 - 0.5))])
    middle = (cell + 0.5) / CELLS
    wrong = np.repeat([cell + 1e-8, cell + 1.0], 10000) / CELLS
    right = np.full(round(20000 * middle / (1 - middle)), middle)
    f = np.concatenate([wrong, right])
    a = np.arange(len(f)) >= len(wrong)
    moments = interval_moments(f, a, CELLS)
    exact = Smoother(lambda n, _: node_sums(interval_moments(f, a, n))[None]).error(width, np.array([0]))[0]
    found = Smoother(lambda n, _: node_sums(spread(moments[None], n))).error(width, np.array([0]))[0]
    h = 1 / CELLS
    slope, kink, count_kink = sensitivity(width)
    slack = h / 4 * (kink * (float(np.abs(f - a).mean()) + h) + count_kink * found) + h * h / 4 * slope
    assert abs(found - exact) > slack / 4  # the bound is not idle
    assert abs(found - exact) <= slack
