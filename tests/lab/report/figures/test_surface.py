import math

import numpy as np
import pytest
from matplotlib.patches import Rectangle
from support.figure_runs import evidence_of, faults, font_sizes, stored

from focalcal.lab.evidence.surface import surface
from focalcal.lab.report.figures.surface_views import surface_view

SETTING = "digits/small_cnn"
GAMMAS, LAMS = (0.0, 1.0, 4.0), (0.0, 0.5, 1.5, 8.0)


def figure_of(evidence, **options):
    return surface_view(surface(evidence, SETTING, **options))


def values(view):
    return np.array([row["value"] for row in view.rows])


def cell(gamma, lam):
    """A bowl with its minimum at gamma 1, lam 0.5."""
    return 0.01 + 0.02 * abs(gamma - 1) + 0.01 * abs(lam - 0.5)


def runs_of(store, *, left_out=(), broken=(), seeds=(0,), **options):
    return [
        stored(
            store,
            options={"gamma": gamma, "lam": lam},
            seed=seed,
            metrics={"ece": math.nan if (gamma, lam) in broken else cell(gamma, lam) + seed / 1000},
            **options,
        )
        for gamma in GAMMAS
        for lam in LAMS
        for seed in seeds
        if (gamma, lam) not in left_out
    ]


@pytest.fixture
def whole(store):
    return figure_of(evidence_of(runs_of(store)), operating_point=(4, 1.5))


def test_the_picture_shows_the_frame(whole):
    frame = whole.frame().columns
    expected = [100 * cell(gamma, lam) for gamma in GAMMAS for lam in LAMS]
    np.testing.assert_allclose(frame["value"], expected, rtol=1e-12)
    assert list(zip(frame["gamma"], frame["lam"], strict=True)) == [(g, lam) for g in GAMMAS for lam in LAMS]
    assert (whole.facts["minimum"], whole.facts["operating_point"]) == ((1.0, 0.5), (4.0, 1.5))
    figure = whole.plot()
    axes = figure.axes[0]
    (image,) = axes.images
    np.testing.assert_array_equal(image.get_array(), values(whole))
    assert [text.get_text() for text in axes.texts] == [f"{value:.2f}" for value in values(whole).ravel()]
    (star,) = axes.lines
    assert star.get_marker() == "*"
    assert (round(star.get_xdata()[0]), round(star.get_ydata()[0])) == (LAMS.index(0.5), GAMMAS.index(1.0))
    (square,) = (patch for patch in axes.patches if isinstance(patch, Rectangle))
    red, green, blue, _ = square.get_edgecolor()
    assert red > 0.8 > 0.2 > max(green, blue)
    centre = square.get_x() + square.get_width() / 2, square.get_y() + square.get_height() / 2
    assert tuple(map(round, centre)) == (LAMS.index(1.5), GAMMAS.index(4.0))
    assert [label.get_text() for label in axes.get_xticklabels()] == ["0", "0.5", "1.5", "8"]
    assert [label.get_text() for label in axes.get_yticklabels()] == ["0", "1", "4"]
    assert faults(figure) == []
    assert min(font_sizes(figure)) >= 7


def test_missing_and_broken_cells_are_hatched_and_never_the_minimum(store):
    found = figure_of(evidence_of(runs_of(store, left_out=[(4.0, 8.0)], broken=[(1.0, 0.5)])), operating_point=(2, 2))
    assert np.isnan(values(found)).sum() == 2
    assert found.facts["minimum"] == (1.0, 0.0)  # the next best
    axes = found.plot().axes[0]
    hatched = {(round(p.get_x() + 0.5), round(p.get_y() + 0.5)) for p in axes.patches if p.get_hatch()}
    assert hatched == {(3, 2), (1, 1)}
    assert len(axes.texts) == len(GAMMAS) * len(LAMS) - 2
    assert len(axes.patches) == 2  # no square: the operating point is not on the grid
    assert "Without a number: 2 of 12 cells" in found.note
    assert "is not on the grid" in found.note


def test_a_cell_is_the_mean_over_its_seeds(store):
    found = figure_of(evidence_of(runs_of(store, seeds=(0, 2))))
    np.testing.assert_allclose(values(found)[0, 0], 100 * (cell(0, 0) + 0.001), rtol=1e-12)
    assert set(found.frame().columns["seeds"]) == {2}
    assert "Mean over seeds 0, 2." in found.note


def test_runs_of_another_protocol_are_left_out_and_another_training_of_a_cell_is_another_setting(store):
    runs, other = runs_of(store), {"metrics": {"ece": 0.9}, "training": {"epochs": 90}}
    found = figure_of(evidence_of([*runs, stored(store, options={"gamma": 9.0, "lam": 0.0}, **other)]))
    np.testing.assert_allclose(values(found)[0, 0], 100 * cell(0, 0), rtol=1e-12)
    assert tuple(row["gamma"] for row in found.rows) == GAMMAS
    assert "1 runs with another training or protocol are left out." in found.note
    evidence = evidence_of([*runs, stored(store, options={"gamma": 0.0, "lam": 0.0}, **other)])
    np.testing.assert_allclose(surface(evidence, f"{SETTING} epochs=2").values[0, 0], 100 * cell(0, 0), rtol=1e-12)
    assert surface(evidence, f"{SETTING} epochs=90") is None  # a single cell


def test_a_shared_minimum_is_told(store):
    runs = [stored(store, options={"gamma": g, "lam": lam}, metrics={"ece": 0.1}) for g in (0, 1) for lam in (0, 1)]
    found = figure_of(evidence_of(runs))
    assert found.facts["minimum"] == (0.0, 0.0)
    assert "4 cells share the minimum" in found.note


def test_nothing_measured_has_no_minimum_and_a_line_of_cells_no_surface(store, evidence):
    points = [{"gamma": gamma, "lam": lam} for gamma in (0.0, 1.0) for lam in (0.0, 1.0)]
    broken = [stored(store, options=point, metrics={"ece": math.nan}) for point in points]
    found = figure_of(evidence_of(broken))
    assert found.facts["minimum"] is None
    assert not found.plot().axes[0].lines
    assert surface(evidence_of(broken[:2]), SETTING) is None
    assert surface(evidence, SETTING) is None
