"""What each kind of view says of the runs it is made of, and that its picture shows these numbers."""

import doctest
import math

import numpy as np
import pytest
from support import synthetic_study as synthetic
from support.figure_runs import NINE, epochs_with, evidence_of, faults, font_sizes, stored

from focalcal.lab.evidence.findings import study_families
from focalcal.lab.evidence.run_details import best_probabilities
from focalcal.lab.objectives import short_name
from focalcal.lab.report.figures import figures, study_views
from focalcal.lab.report.figures import reliability_views as reliability
from focalcal.lab.report.figures.lanes import paired_differences, rankings
from focalcal.lab.report.figures.posterior import posterior_view
from focalcal.lab.report.figures.reliability_views import confidence_view, reliabilities, temperature_view
from focalcal.lab.report.figures.scaling import headline_view, scalings
from focalcal.lab.report.figures.training import gamma_view, trainings
from focalcal.lab.store import Store
from focalcal.metrics import reliability as measured_bins
from focalcal.predictions import Predictions
from focalcal.theory import minimise

SETTING = "digits/small_cnn"


@pytest.fixture(scope="module")
def study(tmp_path_factory):
    """Three objectives, eight seeds, intervals over rows."""
    store = synthetic.study_store(tmp_path_factory.mktemp("study"), seeds=range(8))
    return synthetic.evidence_of(store, details=True)


def by_objective(view):
    return {row["objective"]: row for row in view.rows}


def readable(figure):
    assert faults(figure) == []
    assert min(font_sizes(figure)) >= 7
    return figure


def line(axes, label):
    (found,) = (one for one in axes.lines if one.get_label() == label)
    return found


def test_a_ranking_has_every_seed_the_mean_and_what_chance_gives_best_first(study):
    (view,) = rankings(study, SETTING, ["ece"])
    values = study.values(SETTING, "ece")
    means = {name: np.mean(list(seeds.values())) for name, seeds in values.items()}
    assert [row["objective"] for row in view.rows] == sorted(means, key=means.get)
    for name, row in by_objective(view).items():
        intervals = [run.details.intervals["ece"] for run in study.of(SETTING, name)]
        assert dict(zip(row["seed"], row["value"], strict=True)) == values[name]
        assert row["mean"] == pytest.approx(means[name])
        assert row["chance"] == pytest.approx(np.mean([one.chance for one in intervals]))
    figure = readable(view.plot())
    (axes,) = figure.axes
    for at, row in enumerate(view.rows):
        rings = [one for one in axes.lines if one.get_label() == "_seeds"][at]
        np.testing.assert_allclose(rings.get_xdata(), np.multiply(100, row["value"]))
        assert set(rings.get_ydata()) == {at}
        assert axes.texts[at].get_text() == f"{100 * row['mean']:.2f}"
    assert [text.get_text() for text in axes.get_yticklabels()] == [short_name(row["objective"]) for row in view.rows]


def test_infinity_is_last_and_what_was_not_measured_is_left_out(tmp_path):
    store = Store(tmp_path)
    for name, nll in (("ce", math.inf), ("focal", math.nan), ("fcl", 0.5)):
        synthetic.add(store, synthetic.spec(name), rows=60, changed={"nll": nll})
    (view,) = rankings(synthetic.evidence_of(store), SETTING, ["nll"])
    assert [row["objective"] for row in view.rows] == ["fcl", "ce"]
    readable(view.plot())


def test_differences_are_the_paired_tests_and_their_marks_the_verdicts(study):
    families = study_families(study)
    views = {view.choice: view for view in paired_differences(study, SETTING, families)}
    assert set(views) == {"ece", "adaptive_ece", "nll", "brier"}
    for family in families:
        for test in family.comparisons:
            row = by_objective(views[test.metric])[family.baseline]
            assert np.mean(row["value"]) == pytest.approx(test.test.mean)
            assert (row["p_holm"], row["verdict"]) == (test.p_adjusted, test.verdict)
    view = views["ece"]
    assert view.title == f"FCL minus each baseline, ECE in points on {SETTING}"
    assert "significantly better: 2" in view.note
    axes = readable(view.plot()).axes[0]
    assert [one.get_marker() for one in axes.lines if one.get_markersize() == 5.5] == ["D", "D"]
    assert len(view.frame().rows()) == 16  # a row per seed


def test_before_and_after_scaling_are_of_the_same_rows_and_the_headline_joins_them(study):
    ece, error = scalings(study, SETTING, ["ece", "error"])
    for name, row in by_objective(ece).items():
        runs = study.of(SETTING, name)
        assert row["before"] == row["raw"] == pytest.approx(np.mean([run.scaled.before["ece"] for run in runs]))
        assert row["after"] == row["scaled"] == pytest.approx(np.mean([run.scaled.after["ece"] for run in runs]))
        assert row["t"] == pytest.approx(np.mean([run.scaled.temperature for run in runs]))
    view = headline_view(study, SETTING, ["ece", "error"])
    assert view.title == f"ECE in points against Error in points on {SETTING}"
    axes = readable(view.plot()).axes[0]
    for row in view.rows:
        shown = line(axes, short_name(row["objective"]))
        own = by_objective(ece)[row["objective"]], by_objective(error)[row["objective"]]
        np.testing.assert_allclose(shown.get_xdata(), [100 * own[0]["raw"], 100 * own[0]["scaled"]])
        np.testing.assert_allclose(shown.get_ydata(), [100 * own[1]["raw"], 100 * own[1]["scaled"]])
    assert headline_view(study, SETTING, ["nll"]) is None


def test_without_a_finite_temperature_in_every_seed_nothing_is_drawn_after_scaling(tmp_path):
    store = Store(tmp_path)
    synthetic.add(store, synthetic.spec("ce", 0))
    synthetic.add(store, synthetic.spec("ce", 1), signal=300.0)  # all predicted right, so that no T is best
    evidence = synthetic.evidence_of(store)
    (view,) = scalings(evidence, SETTING, ["ece"])
    (row,) = view.rows
    first = evidence.of(SETTING, "ce")[0].scaled
    assert (row["bounded"], row["t"]) == ([False, True], pytest.approx(first.temperature))
    assert math.isnan(row["scaled"])
    assert row["after"] == pytest.approx(first.after["ece"])
    assert view.note == "No finite T, and in no mean: Cross-entropy (1 of 2)."


def test_reliability_pools_the_rows_of_the_seeds_and_is_drawn_where_a_bin_has_enough(evidence, nine):
    views = {view.choice: view for view in reliabilities(evidence, SETTING)}
    assert set(views) == {"whole", "before", "after"}
    whole = by_objective(views["whole"])
    for name, runs in zip(NINE, zip(nine[::2], nine[1::2], strict=True), strict=True):
        pooled = [run.predictions("test") for run in runs]
        probs, labels = np.concatenate([p.probs for p in pooled]), np.concatenate([p.labels for p in pooled])
        bins = measured_bins(probs, labels)
        filled = bins.count > 0
        assert whole[name]["rows"] == bins.count[filled].tolist()
        np.testing.assert_allclose(whole[name]["confidence"], bins.confidence[filled], rtol=1e-4)
        np.testing.assert_allclose(whole[name]["accuracy"], bins.accuracy[filled], rtol=1e-4)
        assert whole[name]["ece"] == pytest.approx(bins.ece)
        assert whole[name]["least"] == 8  # 1 % of 800 rows
        sure, count = (np.array(whole[name][part]) for part in ("confidence", "rows"))
        of_one_seed = 1.96 * np.sqrt(sure * (1 - sure) / np.maximum(1, count / 2))
        np.testing.assert_allclose(whole[name]["chance"], of_one_seed, rtol=1e-2, atol=1e-4)
    some = views["whole"].of(NINE[:4])
    figure = readable(some.plot())
    for row, axes in zip(some.rows, figure.axes[::2], strict=True):
        shown = [at for at, rows in enumerate(row["rows"]) if rows >= 8]
        (curve,) = (one for one in axes.lines if one.get_label() != "_diagonal")
        np.testing.assert_array_equal(curve.get_ydata(), np.array(row["accuracy"])[shown])
        assert len(axes.patches) == len(shown)  # the band of chance
        assert axes.get_title() == f"{short_name(row['objective'])}\npooled ECE {100 * row['ece']:.2f} %"
    pair = temperature_view(evidence, views["before"], views["after"])
    assert "the other half of the test rows" in pair.note
    figure = readable(pair.of(NINE[:2]).plot())
    assert [text.get_text() for text in figure.legends[0].get_texts()] == ["before scaling", "after scaling"]
    assert sum(by_objective(views["before"])["ce"]["rows"]) == sum(by_objective(views["after"])["ce"]["rows"]) == 400


def test_right_and_wrong_predictions_are_bars_of_the_roots_of_their_numbers(evidence, nine):
    whole = next(reliabilities(evidence, SETTING))
    view = confidence_view(whole)
    for name, runs in zip(NINE, zip(nine[::2], nine[1::2], strict=True), strict=True):
        wrong = sum(round(400 * run.record["metrics"]["test"]["error"]) for run in runs)
        row = by_objective(view)[name]
        assert (sum(row["wrong"]), sum(row["right"])) == (wrong, 800 - wrong)
    some = view.of(NINE[:4])
    figure = readable(some.plot())
    for axes, row in zip(figure.axes, some.rows, strict=True):
        up, down = ([bar.get_height() for bar in container] for container in axes.containers)
        np.testing.assert_allclose(up, np.sqrt(row["right"]))
        np.testing.assert_allclose(down, -np.sqrt(row["wrong"]))
        assert axes.get_title() == f"{short_name(row['objective'])}\n{sum(row['wrong'])} of 800 wrong"
    labels = {
        float(place): text.get_text() for place, text in zip(axes.get_yticks(), axes.get_yticklabels(), strict=True)
    }
    assert all(float(text) == pytest.approx(place**2) for place, text in labels.items())


def test_diagrams_of_single_classes_count_every_row_once_and_one_label_each(study):
    of_class = [view for view in reliabilities(study, SETTING) if view.choice.startswith("class ")]
    rows = [by_objective(view)["ce"] for view in of_class]
    total = sum(run.metrics["test"]["rows"] for run in study.of(SETTING, "ce"))
    assert [sum(row["rows"]) for row in rows] == [total] * 4
    assert sum(np.dot(row["rows"], row["accuracy"]) for row in rows) == pytest.approx(total, rel=1e-4)


def test_one_class_alone_no_wrong_prediction_and_no_logits(store):
    sure = Predictions(logits=[[40.0, 0.0]] * 20, labels=[0] * 20, split="test")
    probs = np.tile([0.7, 0.3], (20, 1))
    plain = Predictions(probs=probs, labels=[0, 1] * 10, split="test")
    runs = [stored(store, "ce", predictions=sure), stored(store, "fcl", predictions=plain)]
    made = figures(evidence_of(runs))
    row = by_objective(made["reliability-digits-small_cnn"])["ce"]
    assert (row["rows"], row["confidence"], row["accuracy"]) == ([20], [1.0], [1.0])
    assert sum(by_objective(made["confidence-digits-small_cnn"])["ce"]["wrong"]) == 0
    for view in made.values():
        readable(view.plot())


def test_training_is_mean_and_range_over_the_seeds(evidence):
    (view,) = trainings(evidence, SETTING)
    for number, name in enumerate(NINE):
        row = by_objective(view)[name]
        assert row["epoch"] == [1, 2, 3]
        np.testing.assert_allclose(row["mean"], [1.5 + number, 0.5 + number, 0.25])
        np.testing.assert_allclose([row["min"], row["max"]], [row["seed 0"], row["seed 1"]])
    axes = readable(view.plot()).axes[0]
    assert [text.get_text() for text in axes.get_legend().get_texts()] == [
        short_name(r["objective"]) for r in view.rows
    ]
    for row, drawn, band in zip(view.rows, axes.lines, axes.collections, strict=True):
        np.testing.assert_allclose(drawn.get_ydata(), row["mean"])
        heights = band.get_paths()[0].vertices[:, 1]
        assert (heights.min(), heights.max()) == (min(row["min"]), max(row["max"]))
    assert len({drawn.get_color() for drawn in axes.lines}) == len({drawn.get_marker() for drawn in axes.lines}) == 9
    assert axes.get_yscale() == "log"


def test_what_a_seed_lacks_or_is_not_finite_leaves_a_gap(store):
    runs = [
        stored(store, seed=0, epochs=epochs_with([3.0, None, 1.0])),
        stored(store, seed=1, epochs=epochs_with([5.0])),
    ]
    runs.append(stored(store, "ce", epochs=epochs_with([None, None])))
    runs.append(stored(store, "brier", epochs=[{"epoch": 1, "train": {"nll": -1.0}}]))
    train, test = trainings(evidence_of(runs), SETTING)
    (row,) = test.rows
    np.testing.assert_array_equal(row["mean"], [4.0, np.nan, np.nan])
    np.testing.assert_array_equal(row["seed 0"], [3.0, np.nan, 1.0])
    (axes,) = train.plot().axes
    assert axes.get_yscale() == "linear"  # of negative numbers
    assert not axes.collections  # nor a band of one seed


def test_the_gammas_of_a_real_run(trained):
    run = trained["adafocal"]
    view = gamma_view(evidence_of([run]), "digits/mlp")
    epochs = run.epochs()
    assert [row["gamma"] for row in view.rows] == [epoch["gammas"] for epoch in epochs]
    assert [row["lower"] for row in view.rows] == [epoch["edges"][:-1] for epoch in epochs]
    assert view.frame().columns["bin"] == list(range(1, 16)) * 3
    lines = [one for one in readable(view.plot()).axes[0].lines if one.get_label() != "_zero"]
    np.testing.assert_array_equal(np.transpose([one.get_ydata() for one in lines]), [e["gammas"] for e in epochs])


def test_more_runs_than_can_be_shown_and_gammas_without_edges(store, evidence):
    epochs = [{"epoch": at, "gammas": [1.0, None, float(at)]} for at in (1, 2)]
    view = gamma_view(
        evidence_of([stored(store, "adafocal", seed=seed, epochs=epochs) for seed in range(8)]), "digits/small_cnn"
    )
    assert "2 more runs are not shown." in view.note
    assert np.isnan(view.frame().columns["lower"]).all()
    assert np.isnan(view.frame().columns["gamma"]).sum() == 12
    readable(view.plot())
    assert gamma_view(evidence, SETTING) is None


def test_a_known_posterior_has_the_stored_distances_and_every_row_and_class(trained):
    runs = trained["posterior"]
    view = posterior_view(evidence_of(runs, details=True), "gaussian_mixture/mlp")
    rows = by_objective(view)
    for run in runs:
        row, test = rows[run.settings["objective"]], run.predictions("test")
        assert row["to_truth"] == pytest.approx(run.metrics("test")["posterior_distance"], rel=1e-5)
        eta, p = test.posterior, test.probs
        assert sum(row["rows"]) == eta.size
        for at in range(len(row["rows"])):
            inside = (eta > row["lower"][at]) & (eta <= row["upper"][at]) | ((eta == 0) & (row["lower"][at] == 0))
            assert inside.sum() == row["rows"][at]
            assert row["p"][at] == pytest.approx(p[inside].mean(), rel=1e-4)
            assert row["high"][at] == pytest.approx(np.quantile(p[inside], 0.9), rel=1e-4)
    test = runs[2].predictions("test")
    q = minimise(test.posterior, gamma=3.0, lam=1.0).unwrap()
    assert rows["fcl"]["to_theory"] == pytest.approx(np.abs(test.probs - q).sum(1).mean() / 2)
    assert rows["ce"]["to_theory"] == rows["ce"]["to_truth"]  # cross-entropy is proper: q* is eta
    assert np.isnan(rows["mmce"]["to_theory"])  # nobody knows MMCE's
    figure = readable(view.plot())
    for axes, row in zip(figure.axes, view.rows, strict=True):
        assert axes.get_title() == short_name(row["objective"])
        np.testing.assert_array_equal(line(axes, "_p").get_ydata(), row["cloud"]["p"])
        np.testing.assert_array_equal(axes.containers[0][0].get_ydata(), row["p"])


def test_the_theory_is_given_where_there_is_one():
    eta = np.array([[0.7, 0.2, 0.1], [1.0, 0.0, 0.0], [0.7, 0.2, 0.1]])
    focal = best_probabilities("focal", {"gamma": 2.0}, eta)
    np.testing.assert_allclose(focal[0], minimise(eta[0], gamma=2.0, lam=0.0).q)
    np.testing.assert_allclose(focal[0], focal[2], rtol=1e-11)
    np.testing.assert_allclose(best_probabilities("fcl", {"gamma": 2.0, "lam": 1.0}, eta)[0].round(4)[0], 0.5924)
    assert best_probabilities("brier", {"scale": "matched"}, eta) is eta
    np.testing.assert_allclose(best_probabilities("ce", {"label_smoothing": 0.3}, eta)[1], [0.8, 0.1, 0.1])
    assert best_probabilities("adafocal", {}, eta) is None


def test_no_runs_no_views_and_the_example():
    assert study_views(evidence_of([])) == []
    assert doctest.testmod(reliability) == doctest.TestResults(failed=0, attempted=1)
