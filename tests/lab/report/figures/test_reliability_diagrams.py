import doctest

import numpy as np
import pytest
from matplotlib.container import ErrorbarContainer
from support.figure_runs import NINE, evidence_of, faults, font_sizes, predicted, stored

from focalcal.lab.objectives import short_name
from focalcal.lab.report.figures import confidence as confidence_module
from focalcal.lab.report.figures.reliability import reliability_diagrams
from focalcal.metrics import ece, reliability
from focalcal.pages import reliability_display as reliability_module
from focalcal.pages.reliability_display import sparse_limit
from focalcal.predictions import Predictions

SETTING = "digits/small_cnn"


@pytest.fixture(scope="module")
def diagrams(evidence):
    return reliability_diagrams(evidence, SETTING)


@pytest.fixture(scope="module")
def figure(diagrams):
    return diagrams.plot()


def columns(display, **where):
    frame = display.frame().columns
    rows = [at for at in range(len(frame["count"])) if all(frame[name][at] == value for name, value in where.items())]
    return {name: np.array([values[at] for at in rows]) for name, values in frame.items()}


def points(axes):
    """What the error bars of a panel show: a list of (confidence, accuracy, low, high)."""
    found = []
    for container in axes.containers:
        assert isinstance(container, ErrorbarContainer)
        line, _, (bars,) = container
        ends = np.array([segment[:, 1] for segment in bars.get_segments()])
        found.append((line.get_xdata(), line.get_ydata(), ends[:, 0], ends[:, 1]))
    return found


def test_the_frame_has_the_numbers_of_the_metric(diagrams, nine):
    for run in nine[::2]:
        own, test = columns(diagrams, objective=run.settings["objective"]), run.predictions("test")
        bins = reliability(test.probs, test.labels)
        filled = bins.count > 0
        for name in ("lower", "upper", "count", "confidence", "accuracy", "low", "high"):
            np.testing.assert_array_equal(own[name], getattr(bins, name)[filled])
        assert own["count"].sum() == 400


def test_every_bin_that_is_not_sparse_is_drawn_where_the_frame_says(diagrams, figure):
    assert len(figure.axes) == 2 * len(NINE)
    for objective, axes in zip(NINE, figure.axes[::2], strict=True):
        own = columns(diagrams, objective=objective)
        kept = own["count"] >= 5
        np.testing.assert_array_equal(own["shown"], kept)
        ((x, y, low, high),) = points(axes)
        for drawn, name in ((x, "confidence"), (y, "accuracy"), (low, "low"), (high, "high")):
            np.testing.assert_allclose(drawn, own[name][kept], atol=1e-12)
        assert axes.get_title().splitlines()[0] == short_name(objective)


def test_the_counts_stand_below_and_sparse_ones_are_hatched_and_counted(diagrams, figure):
    hidden = 0
    for objective, axes in zip(NINE, figure.axes[1::2], strict=True):
        own = columns(diagrams, objective=objective)
        bars = sorted(axes.patches, key=lambda bar: bar.get_x())
        assert [bar.get_height() for bar in bars] == own["count"].tolist()
        assert [bar.get_hatch() is None for bar in bars] == own["shown"].tolist()
        unseen = own["count"][~own["shown"]].sum()
        assert axes.get_xlabel().endswith(f"hidden: {unseen} of 400")
        hidden += unseen
    assert hidden > 0
    assert "fewer than 5 rows" in diagrams.note


def test_the_ece_above_a_panel_is_that_of_its_rows(figure, nine):
    test = nine[0].predictions("test")
    assert figure.axes[0].get_title() == f"Cross-entropy\nECE {100 * ece(test.probs, test.labels):.2f} %"


@pytest.mark.parametrize("module", [reliability_module, confidence_module])
def test_the_examples_in_the_docstrings(module):
    found = doctest.testmod(module)
    assert (found.attempted > 0, found.failed) == (True, 0)


def test_one_percent_of_the_rows_make_a_bin_as_in_the_paper():
    assert [sparse_limit(rows) for rows in (50, 360, 1000, 10_000, 26_032)] == [5, 5, 10, 100, 100]


def test_the_caller_can_set_the_limit(evidence):
    assert all(reliability_diagrams(evidence, SETTING, least=1).frame().columns["shown"])
    display = reliability_diagrams(evidence, SETTING, least=401)
    assert not any(display.frame().columns["shown"])
    assert "fewer than 401 rows" in display.note
    display.plot()  # nothing to show is no error


def test_before_and_after_temperature_are_of_the_same_rows(evidence):
    display = reliability_diagrams(evidence, SETTING, objectives=["fcl"], temperature=True)
    (run,) = [one for one in evidence.of(SETTING, "fcl") if one.seed == 0]
    before, after = (columns(display, curve=label) for label in ("before", "after"))
    assert before["count"].sum() == after["count"].sum() == 200
    for own, bins in ((before, run.scaled.reliability_before), (after, run.scaled.reliability_after)):
        np.testing.assert_array_equal(own["accuracy"], bins.accuracy[bins.count > 0])
    figure = display.plot()
    assert len(points(figure.axes[0])) == 2
    assert [text.get_text() for text in figure.legends[0].get_texts()] == ["before scaling", "after scaling"]
    assert f"T = {run.scaled.temperature:.3g}" in figure.axes[0].get_title()
    assert "T was fitted on the other half of the test rows" in display.note


def test_the_other_seed(evidence, nine):
    display = reliability_diagrams(evidence, SETTING, seed=1)
    assert "seed 1" in display.title
    test = nine[1].predictions("test")
    bins = reliability(test.probs, test.labels)
    np.testing.assert_array_equal(columns(display, objective="ce")["count"], bins.count[bins.count > 0])
    assert reliability_diagrams(evidence, SETTING, seed=7) is None
    assert reliability_diagrams(evidence, "no/such") is None


def test_nothing_overlaps_and_everything_can_be_read(figure, evidence):
    assert faults(figure) == []
    assert min(font_sizes(figure)) >= 7
    assert faults(reliability_diagrams(evidence, SETTING, temperature=True, objectives=NINE[:4]).plot()) == []


def test_a_single_class_and_probabilities_without_logits(store):
    one = Predictions(logits=[[40.0, 0.0]] * 20, labels=[0] * 20, split="test")
    plain = Predictions(probs=predicted().probs, labels=predicted().labels, split="test")
    evidence = evidence_of([stored(store, "ce", predictions=one), stored(store, "fcl", predictions=plain)])
    display = reliability_diagrams(evidence, SETTING)
    own = columns(display, objective="ce")
    assert (own["count"].tolist(), own["confidence"].tolist(), own["accuracy"].tolist()) == ([20], [1.0], [1.0])
    assert faults(display.plot()) == []
    scaled = reliability_diagrams(evidence, SETTING, temperature=True)
    assert scaled is None or [panel.objective for panel in scaled.panels] == ["ce"]  # no logits, no temperature
