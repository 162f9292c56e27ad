import numpy as np
import pytest
from support.figure_runs import faults, font_sizes

from focalcal.lab.evidence.run_details import best_probabilities
from focalcal.lab.objectives import short_name
from focalcal.lab.report.figures.posterior import posterior_scatter
from focalcal.theory import minimise

LABELS = ("ce", "mmce", "fcl")


@pytest.fixture(scope="module")
def scatter(trained):
    return posterior_scatter(trained["posterior"], {})


def entries(run):
    test = run.predictions("test")
    return test.posterior, test.probs


def test_the_distances_are_those_that_were_stored(scatter, trained):
    ce, mmce, fcl = scatter.panels
    assert tuple(panel.objective for panel in scatter.panels) == LABELS
    stored = [run.metrics("test")["posterior_distance"] for run in trained["posterior"]]
    np.testing.assert_allclose([panel.to_truth for panel in scatter.panels], stored, rtol=1e-5)
    eta, p = entries(trained["posterior"][2])
    q = minimise(eta, gamma=3.0, lam=1.0).unwrap()
    assert fcl.to_theory == pytest.approx(np.abs(p - q).sum(1).mean() / 2)
    assert ce.to_theory == ce.to_truth  # cross-entropy is proper: q* is eta
    assert np.isnan(mmce.to_theory)  # nobody knows MMCE's


def test_the_frame_summarises_every_row_and_class(scatter, trained):
    frame = {name: np.array(values) for name, values in scatter.frame().columns.items()}
    for run, label in zip(trained["posterior"], LABELS, strict=True):
        own = {name: values[frame["objective"] == label] for name, values in frame.items()}
        eta, p = entries(run)
        assert own["count"].sum() == eta.size
        for at in range(len(own["count"])):
            inside = (eta > own["lower"][at]) & (eta <= own["upper"][at]) | ((eta == 0) & (own["lower"][at] == 0))
            assert inside.sum() == own["count"][at]
            assert own["p"][at] == pytest.approx(p[inside].mean())
            assert own["low"][at] == pytest.approx(np.quantile(p[inside], 0.1))
            assert own["high"][at] == pytest.approx(np.quantile(p[inside], 0.9))


def test_the_picture_shows_points_and_means(scatter):
    figure = scatter.plot()
    assert [axes.get_title() for axes in figure.axes] == list(map(short_name, LABELS))
    for axes, panel in zip(figure.axes, scatter.panels, strict=True):
        lines = {line.get_label(): line for line in axes.lines}
        np.testing.assert_array_equal(lines["p of the network"].get_xydata(), panel.points[:, :2])
        np.testing.assert_array_equal(lines["q* of the theory"].get_ydata(), panel.points[:, 2])
        (bars,) = axes.containers
        np.testing.assert_array_equal(bars[0].get_ydata(), panel.p[panel.count > 0])
    assert faults(figure) == []
    assert min(font_sizes(figure)) >= 7


def test_chosen_objectives_in_their_order(scatter, trained):
    runs = trained["posterior"]
    labels = {run.key: f"my {run.settings['objective']}" for run in runs}
    found = posterior_scatter(runs, labels, objectives=["my fcl", "my ce", "absent"])
    assert [panel.objective for panel in found.panels] == ["my fcl", "my ce"]


def test_runs_without_a_known_posterior_have_no_scatter(nine):
    assert posterior_scatter(nine, {}) is None


def test_the_theory_is_given_where_there_is_one():
    eta = np.array([[0.7, 0.2, 0.1], [1.0, 0.0, 0.0], [0.7, 0.2, 0.1]])
    focal = best_probabilities("focal", {"gamma": 2.0}, eta)
    np.testing.assert_allclose(focal[0], minimise(eta[0], gamma=2.0, lam=0.0).q)
    np.testing.assert_allclose(focal[0], focal[2], rtol=1e-11)
    np.testing.assert_allclose(best_probabilities("fcl", {"gamma": 2.0, "lam": 1.0}, eta)[0].round(4)[0], 0.5924)
    assert best_probabilities("brier", {"scale": "matched"}, eta) is eta
    np.testing.assert_allclose(best_probabilities("ce", {"label_smoothing": 0.3}, eta)[1], [0.8, 0.1, 0.1])
    assert best_probabilities("adafocal", {}, eta) is None
