import itertools

import numpy as np
import pytest
from matplotlib.backends.backend_agg import FigureCanvasAgg
from paper.theory.figure import theory_figure


@pytest.fixture(scope="module")
def figure(study):
    return theory_figure(study)


def curves(axes, points):
    """What the lines of that many points show, in the order drawn."""
    return [line.get_ydata() for line in axes.lines if len(line.get_ydata()) == points]


def test_the_left_panel_shows_every_solve(figure, study):
    drawn = curves(figure.axes[0], 18)
    assert len(drawn) == 28
    np.testing.assert_array_equal(np.concatenate(drawn), study.distortion["distortion_inf"])


def test_the_middle_panel_is_lam_times_the_distortion_over_the_constant(figure, study):
    drawn = np.array(curves(figure.axes[1], 18))
    expected = (study.distortion["lam"] * study.distortion["distortion_inf"]).reshape(28, 18)
    np.testing.assert_allclose(drawn * study.cases["constant"][:, None], expected, rtol=1e-14)
    np.testing.assert_allclose(drawn[:, -1], 1, atol=2.5e-3)
    (dashed,) = (line for line in figure.axes[1].lines if len(line.get_ydata()) == 2)
    assert list(dashed.get_ydata()) == [1.0, 1.0]


def test_the_right_panel_shows_the_calibration_error_below_its_bounds(figure, study):
    lines = {line.get_label(): line for line in figure.axes[2].lines}
    for gamma in (2, 3):
        own = study.calibration["gamma"] == gamma
        error = lines[f"cal2, gamma = {gamma}"].get_ydata()
        np.testing.assert_array_equal(error, study.calibration["cal2"][own])
        assert (error < lines[f"potential_bound, gamma = {gamma}"].get_ydata()).all()
        assert (error < lines[f"slope_bound, gamma = {gamma}"].get_ydata()).all()
        interior = lines[f"interior_bound, gamma = {gamma}"].get_ydata()
        assert len(interior) == np.isfinite(study.calibration["interior_bound"][own]).sum() > 0
        assert (error[-len(interior) :] < interior).all()


@pytest.mark.parametrize(("panel", "slope"), [(0, -1), (2, -2)])
def test_the_guides_have_the_slope_they_name(figure, panel, slope):
    axes = figure.axes[panel]
    (guide,) = (line for line in axes.lines if line.get_label() == "guide")
    x, y = np.log(guide.get_xdata()), np.log(guide.get_ydata())
    assert (y[1] - y[0]) / (x[1] - x[0]) == pytest.approx(slope)
    assert [text.get_text() for text in axes.texts] == [f"slope \N{MINUS SIGN}{-slope}"]


def test_nothing_overlaps(figure):
    renderer = FigureCanvasAgg(figure).get_renderer()
    boxes = [part.get_tightbbox(renderer) for part in (*figure.axes, *figure.legends)]
    assert len(boxes) == 6
    assert not [pair for pair in itertools.combinations(range(6), 2) if boxes[pair[0]].overlaps(boxes[pair[1]])]
    page = figure.bbox
    assert all(page.x0 <= b.x0 and b.x1 <= page.x1 and page.y0 <= b.y0 and b.y1 <= page.y1 for b in boxes)
