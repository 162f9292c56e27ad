import numpy as np
import pytest
from support.figure_runs import NINE, evidence_of, faults, font_sizes, predicted, stored

from focalcal.lab.objectives import short_name
from focalcal.lab.report.figures.confidence import confidence_histograms
from focalcal.predictions import Predictions

SETTING = "digits/small_cnn"


@pytest.fixture(scope="module")
def histograms(evidence):
    return confidence_histograms(evidence, SETTING)


def test_the_frame_counts_right_and_wrong_rows(histograms, nine):
    frame = {name: np.array(values) for name, values in histograms.frame().columns.items()}
    for run in nine[::2]:
        test = run.predictions("test")
        sure, right = test.probs.max(1), test.probs.argmax(1) == test.labels
        own = {name: values[frame["objective"] == run.settings["objective"]] for name, values in frame.items()}
        inside = (sure[:, None] > own["lower"]) & (sure[:, None] <= own["upper"])
        np.testing.assert_array_equal(own["right"], inside[right].sum(0))
        np.testing.assert_array_equal(own["wrong"], inside[~right].sum(0))


def test_bars_are_the_roots_of_the_counts_right_up_and_wrong_down(histograms):
    figure = histograms.plot()
    assert len(figure.axes) == len(NINE)
    for axes, panel in zip(figure.axes, histograms.panels, strict=True):
        up, down = ([bar.get_height() for bar in container] for container in axes.containers)
        np.testing.assert_allclose(up, np.sqrt(panel.right))
        np.testing.assert_allclose(down, -np.sqrt(panel.wrong))
        assert axes.get_title() == f"{short_name(panel.objective)}\n{panel.wrong.sum()} of 400 wrong"
    labels = {
        float(place): text.get_text() for place, text in zip(axes.get_yticks(), axes.get_yticklabels(), strict=True)
    }
    assert labels[10.0] == "100"
    assert all(float(text) == pytest.approx(place**2) for place, text in labels.items())
    assert faults(figure) == []
    assert min(font_sizes(figure)) >= 7


def test_no_wrong_prediction_at_all(store):
    labels = predicted().logits.argmax(1)
    perfect = Predictions(logits=predicted().logits, labels=labels, split="test")
    display = confidence_histograms(evidence_of([stored(store, predictions=perfect)]), SETTING)
    assert sum(display.frame().columns["wrong"]) == 0
    assert faults(display.plot()) == []


def test_no_runs_no_histograms(evidence):
    assert confidence_histograms(evidence, "no/such") is None
