import numpy as np
import pytest
from support.figure_runs import NINE, epochs_with, evidence_of, faults, font_sizes, stored

from focalcal.lab.objectives import short_name
from focalcal.lab.report.figures.epochs import epoch_curves

SETTING = "digits/small_cnn"


@pytest.fixture(scope="module")
def curves(evidence):
    return epoch_curves(evidence, SETTING)


def test_the_frame_is_mean_and_range_over_the_seeds(curves):
    frame = curves.frame().columns
    assert frame["objective"] == [name for name in NINE for _ in range(3)]
    assert frame["epoch"] == [1, 2, 3] * 9
    np.testing.assert_allclose(frame["mean"], [v for n in range(9) for v in (1.5 + n, 0.5 + n, 0.25)])
    np.testing.assert_allclose(frame["low"], [v for n in range(9) for v in (1.0 + n, 0.5 + n, 0.25)])
    np.testing.assert_allclose(frame["high"], [v for n in range(9) for v in (2.0 + n, 0.5 + n, 0.25)])


def test_lines_and_bands_are_those_of_the_frame(curves):
    figure = curves.plot()
    (axes,) = figure.axes
    frame = curves.frame().columns
    np.testing.assert_array_equal(np.concatenate([line.get_ydata() for line in axes.lines]), frame["mean"])
    assert len(axes.collections) == 9
    for number, band in enumerate(axes.collections):
        heights = band.get_paths()[0].vertices[:, 1]
        assert heights.min() == min(frame["low"][3 * number : 3 * number + 3])
        assert heights.max() == max(frame["high"][3 * number : 3 * number + 3])
    assert axes.get_yscale() == "log"
    assert [text.get_text() for text in axes.get_legend().get_texts()] == list(map(short_name, NINE))
    assert len({line.get_marker() for line in axes.lines}) == len({line.get_color() for line in axes.lines}) == 9
    assert faults(figure) == []
    assert min(font_sizes(figure)) >= 7


def test_a_single_seed_has_no_band(store):
    found = epoch_curves(evidence_of([stored(store, epochs=epochs_with([1.0, 0.5]))]), SETTING)
    assert "seed 0" in found.title
    assert found.note == ""
    assert not found.plot().axes[0].collections


def test_what_is_not_finite_leaves_a_gap(store):
    runs = [stored(store, epochs=epochs_with([1.0, None, 0.5])), stored(store, "ce", epochs=epochs_with([None, None]))]
    found = epoch_curves(evidence_of(runs), SETTING)
    assert [line.objective for line in found.lines] == ["fcl"]
    np.testing.assert_array_equal(found.lines[0].mean, [1.0, np.nan, 0.5])
    np.testing.assert_array_equal(found.plot().axes[0].lines[0].get_ydata(), [1.0, np.nan, 0.5])


def test_epochs_that_only_some_seeds_were_tested_at_are_left_out(store):
    runs = [
        stored(store, seed=0, epochs=epochs_with([3.0, 2.0, 1.0])),
        stored(store, seed=1, epochs=epochs_with([5.0, 4.0])),
    ]
    frame = epoch_curves(evidence_of(runs), SETTING).frame().columns
    assert (frame["epoch"], frame["mean"]) == ([1, 2], [4.0, 3.0])


def test_runs_that_were_not_tested_on_the_way_have_no_curves(store):
    runs = [stored(store), stored(store, "ce", epochs=[{"epoch": 1, "train": {"nll": 1.0}}])]
    assert epoch_curves(evidence_of(runs), SETTING) is None


def test_negative_numbers_are_drawn_on_an_even_scale(store):
    epochs = [{"epoch": at, "test": {"confidence_gap": value}} for at, value in ((1, -0.5), (2, 0.25))]
    found = epoch_curves(evidence_of([stored(store, epochs=epochs)]), SETTING, "confidence_gap")
    assert found.plot().axes[0].get_yscale() == "linear"
