"""Calibration of one event: against others' code, against known truths, and where numbers have no value."""

import numpy as np
import pytest
from references import event_calibration as reference
from scipy.special import expit, logit
from scipy.stats import t

from focalcal import Predictions, metrics
from focalcal.metrics import event_calibration
from focalcal.metrics.event_curve import fit_logistic

NAMES = ("predicted_rate", "observed_rate", "oe", "slope", "intercept", "citl", "ici", "e50", "e90", "emax")


def sample(rows=600, intercept=0.5, slope=0.7, seed=0):
    generator = np.random.default_rng(seed)
    x = generator.normal(-1.0, 1.2, rows)
    return expit(x), (generator.random(rows) < expit(intercept + slope * x)).astype(int)


@pytest.fixture(scope="module")
def rows():
    return sample()


@pytest.fixture(scope="module")
def found(rows):
    return event_calibration(*rows, resamples=100)


def half(interval):
    return (interval.high - interval.low) / 2


@pytest.mark.parametrize(("weighted", "clustered"), [(False, False), (True, False), (False, True), (True, True)])
def test_recalibration_is_that_of_statsmodels(rows, weighted, clustered):
    p, y = rows
    weights = np.random.default_rng(1).gamma(2.0, size=len(p)) if weighted else None
    clusters = np.arange(len(p)) // 4 if clustered else None
    own = event_calibration(p, y, sample_weight=weights, clusters=clusters, resamples=20)
    params, errors = reference.recalibration(logit(p), y, weights, clusters)
    assert [own.intercept.estimate, own.slope.estimate] == pytest.approx(params, abs=1e-8)
    quantile = t.ppf(0.975, (150 if clustered else 600) - 1)
    assert [half(own.intercept), half(own.slope)] == pytest.approx(quantile * errors, rel=1e-6)


def test_the_curve_its_distances_and_the_tests_are_those_of_others(rows, found):
    p, y = rows
    x = logit(p)
    assert found.citl.estimate == pytest.approx(reference.in_the_large(x, y), abs=1e-8)
    curve = reference.flexible_curve(x, y, found.curve.knots)
    expected = reference.distances(p, curve)
    assert [getattr(found, name).estimate for name in ("ici", "e50", "e90", "emax")] == pytest.approx(
        expected, abs=1e-6
    )
    order = np.argsort(p)
    assert np.interp(found.curve.points, p[order], curve[order]) == pytest.approx(found.curve.observed, abs=2e-3)
    area, error = reference.delong(p, y == 1)
    assert found.auroc.estimate == pytest.approx(area, abs=1e-12) == metrics.auroc(p, y)
    assert half(found.auroc) == pytest.approx(1.96 * error, rel=0.01), "n - 1 is that of all rows here"
    assert found.spiegelhalter.z == pytest.approx(reference.spiegelhalter(p, y), abs=1e-9)
    assert 2 * found.brier.estimate == pytest.approx(metrics.brier(p, y))
    assert found.nll.estimate == pytest.approx(metrics.nll(p, y))
    for name in ("brier", "nll"):
        parts = getattr(found.corp, name)
        assert parts.score == pytest.approx(getattr(found, name).estimate)
        assert parts.score == pytest.approx(parts.msc - parts.dsc + parts.unc)


def test_metrics_of_the_table_are_these_estimates(rows, found):
    for name in NAMES:
        metric = metrics.METRICS[name]
        assert metric(*rows) == pytest.approx(found.intervals[name].estimate, abs=1e-12)
        assert metrics.bootstrap(metric, *rows, resamples=20).estimate == pytest.approx(metric(*rows), abs=1e-12)


@pytest.mark.parametrize(("intercept", "slope"), [(0.0, 1.0), (0.7, 0.6), (-1.0, 1.4)])
def test_posteriors_as_weights_are_recovered(intercept, slope):
    """Both outcomes of every row, weighing what the truth says: the fit is the truth, the curve too."""
    p = np.linspace(0.01, 0.97, 80)
    q = expit(intercept + slope * logit(p))
    own = event_calibration(
        np.tile(p, 2), np.repeat([1, 0], 80), sample_weight=np.concatenate([q, 1 - q]), resamples=20
    )
    assert (own.intercept.estimate, own.slope.estimate) == pytest.approx((intercept, slope), abs=1e-7)
    assert own.oe.estimate == pytest.approx(q.mean() / p.mean())
    assert own.ici.estimate == pytest.approx(np.abs(p - q).mean(), abs=1e-6)
    assert own.curve.observed == pytest.approx(expit(intercept + slope * logit(own.curve.points)), abs=1e-6)


def test_weights_are_rows_repeated_only_their_ratios_matter_and_zero_is_left_out(rows):
    p, y = rows
    weights = np.random.default_rng(2).integers(0, 4, len(p))
    own = event_calibration(p, y, sample_weight=weights, resamples=20)
    repeated = event_calibration(np.repeat(p, weights), np.repeat(y, weights), resamples=20)
    scaled = event_calibration(p, y, sample_weight=weights * 2.5e-5, resamples=20)
    kept = weights > 0
    rest = event_calibration(p[kept], y[kept], sample_weight=weights[kept], resamples=20)
    assert own.rows == kept.sum()
    for extreme in (1e-300, 1e300):
        assert event_calibration(p, y, sample_weight=weights * extreme, resamples=20).oe == own.oe
    for name, interval in own.intervals.items():
        assert interval.estimate == pytest.approx(repeated.intervals[name].estimate, abs=1e-9), name
        for other in (scaled.intervals[name], rest.intervals[name]):
            assert (interval.low, interval.high) == pytest.approx((other.low, other.high), abs=1e-9), name
    assert half(own.slope) > 1.2 * half(repeated.slope), "a weight is no number of observations"


def test_copies_in_one_cluster_are_one_row(rows, found):
    p, y = (np.repeat(part, 5) for part in rows)
    own = event_calibration(p, y, clusters=np.arange(len(p)) // 5, resamples=300)
    assert own.clusters == 600
    for name, interval in found.intervals.items():
        tolerance = 0.35 if name in ("ici", "e50", "e90", "emax") else 1e-6
        if name != "emax":  # its lower end is 0 unless it exceeds what chance gives, here by a hair
            assert half(own.intervals[name]) == pytest.approx(half(interval), rel=tolerance), name
        if interval.chance is not None:
            assert own.intervals[name].chance == pytest.approx(interval.chance, rel=tolerance), name
    assert half(event_calibration(p, y, resamples=20).slope) < 0.6 * half(found.slope)


def test_what_chance_gives_of_rare_events_is_alike_with_and_without_small_clusters():
    draws = np.random.default_rng(7)
    p, clusters = expit(draws.normal(-7.6, 1.6, 60_000)), draws.integers(0, 15_000, 60_000)
    y = draws.random(60_000) < expit(0.75 * logit(p) - 1.2)
    plain, clustered = event_calibration(p, y, resamples=200), event_calibration(p, y, clusters=clusters, resamples=200)
    for name in ("ici", "e50", "e90", "emax"):
        assert clustered.intervals[name].chance == pytest.approx(plain.intervals[name].chance, rel=0.4), name
    assert clustered.ici.high == pytest.approx(plain.ici.high, rel=0.2)


def test_clusters_of_the_bootstrap_go_with_ignored_and_weightless_rows(rows):
    p, y = rows
    clusters, weights = np.arange(600) // 3, np.where(np.arange(600) % 5 == 0, 0.0, 1.5)
    marked = np.where(np.arange(600) % 7 == 0, -1, y)
    keep = (marked >= 0) & (weights > 0)
    asked = [metrics.slope, metrics.oe]
    found = metrics.bootstrap(asked, p, marked, clusters=clusters, sample_weight=weights, ignore_index=-1, resamples=50)
    alone = metrics.bootstrap(asked, p[keep], y[keep], clusters=clusters[keep], resamples=50)
    for name in found:
        assert (found[name].low, found[name].high) == pytest.approx((alone[name].low, alone[name].high), abs=1e-9)


def test_the_event_is_named(rows):
    generator = np.random.default_rng(3)
    probs = generator.dirichlet(np.ones(3), 300)
    labels = (generator.random((300, 1)) > probs.cumsum(1)).sum(1)
    names = np.array(["no", "maybe", "yes"])
    own = event_calibration(probs, names[labels], classes=list(names), positive="yes", resamples=20)
    assert own.event == "yes"
    expected = event_calibration(probs[:, 2], labels == 2, resamples=20)
    assert own.slope.estimate == pytest.approx(expected.slope.estimate)
    assert metrics.slope(probs, labels, positive=2) == pytest.approx(own.slope.estimate)
    held = Predictions(probs=probs, labels=labels, split="test", clusters=labels, weights=np.arange(1, 301))
    assert event_calibration(held, positive=2, resamples=20).clusters == 3
    assert event_calibration(held, positive=2, resamples=20).weighted
    with pytest.raises(ValueError, match="positive must name the class that is the event, of 3 classes"):
        metrics.oe(probs, labels)
    with pytest.raises(ValueError, match="positive must be one of the classes, 'no', 'maybe', 'yes'; got 'Yes'"):
        metrics.oe(probs, names[labels], classes=list(names), positive="Yes")
    with pytest.raises(ValueError, match="clusters must be at least two, got one"):
        event_calibration(*rows, clusters=np.zeros(600))


def test_log_odds_are_exact_where_probabilities_round_to_one():
    z = np.array([-60.0, -45.0, 45.0, 60.0, 50.0, -50.0])
    labels = np.array([0, 0, 1, 1, 0, 1])
    scale = 1e-2  # the same in units where nothing rounds
    expected = metrics.slope(logits=z * scale, labels=labels) * scale
    assert metrics.slope(logits=z, labels=labels) == pytest.approx(expected)


P = np.linspace(0.1, 0.9, 50)
CASES = {
    "no event": (P, P < 0, "Events are over-predicted: 50.0 % expected, none observed in 50 rows (O/E 0.00, 95 %"),
    "few rows, no event": (P[:3] / 9, P[:3] < 0, "There is no evidence that events are over- or under-predicted"),
    "events only": (P, P > 0, "Events are under-predicted: 50.0 % expected, 100.0 % observed (O/E 2.00"),
    "constant": (np.full(50, 1e-9), P > 0.8, "Events are under-predicted: 0.0000001 % expected, 14.0 % observed"),
    "zeros": (np.zeros(9), np.arange(9) == 3, "Events are under-predicted: every probability is 0, and 11.1 %"),
    "zeros and no event": (np.zeros(9), np.zeros(9) > 1, "No event was predicted and none happened in 9 rows"),
    "separated": (P, P > 0.5, "There is no evidence that events are over- or under-predicted on average: 50.0 %"),
    "one row": (P[:1], P[:1] > 0, "There is no evidence that events are over- or under-predicted on average: 10.0 %"),
}  # fmt: skip


@pytest.mark.parametrize("rows", [49, 300, 4001])
def test_a_share_of_one_has_wilsons_interval(rows):
    """Of a number of rows whose shares add up to 1 - 1e-16 too."""
    square = t.ppf(0.975, rows - 1) ** 2
    own = event_calibration(np.linspace(0.1, 0.5, rows), np.ones(rows, int), resamples=20)
    assert own.observed_rate.low == pytest.approx(rows / (rows + square))
    assert own.sentence.startswith("Events are under-predicted: 30.0 % expected, 100.0 % observed")
    at = metrics.flagged_at(np.linspace(0.1, 0.5, rows), np.ones(rows, int), threshold=0.05)
    assert at.recall.low == pytest.approx(rows / (rows + square))


@pytest.mark.parametrize("missing", [None, np.nan, ""])
def test_rows_without_a_cluster_are_no_cluster(missing):
    names = [1.0, missing, missing, 2.0] if missing is np.nan else ["a", missing, missing, "b"]
    with pytest.raises(ValueError, match=r"clusters must name the cluster of every row, got .* in row 1"):
        event_calibration(P[:4], [0, 1, 0, 1], clusters=names)


@pytest.mark.parametrize("title", CASES)
@pytest.mark.filterwarnings("error")
def test_what_has_no_value_says_so(title):
    p, happened, sentence = CASES[title]
    own = event_calibration(p, happened, resamples=20)
    assert own.sentence.startswith(sentence)
    for name, interval in own.intervals.items():
        if np.isfinite(interval.estimate):
            assert interval.low <= interval.estimate <= interval.high, name
        elif name != "nll":
            assert own.notes, name
    assert str(own).count("\n") >= 14


def test_the_sentence_says_which_way():
    flat = event_calibration(*sample(4000, 0.0, 0.5), resamples=20)
    assert "The probabilities are too extreme (calibration slope 0." in flat.sentence
    steep = event_calibration(*sample(4000, 0.0, 1.6), resamples=20)
    assert "The probabilities are not extreme enough (calibration slope 1." in steep.sentence
    calibrated = event_calibration(*sample(1000, 0.0, 1.0), resamples=20)
    assert calibrated.sentence.count("There is no evidence") == 2
    p, y = sample(1000, 0.0, 1.0)
    assert "is it the probability of the other class?" in event_calibration(p, 1 - y, resamples=20).sentence


def test_many_rows_are_taken_to_cells_without_a_difference_that_shows():
    p, y = sample(70_000)
    design = np.stack([np.ones_like(p), logit(p)], 1)
    params = fit_logistic(design, np.ones((len(p), 1)), y[:, None].astype(float)).coef[0].tolist()
    assert [metrics.intercept(p, y), metrics.slope(p, y)] == pytest.approx(params, abs=1e-7)


def test_every_fit_is_at_its_optimum():
    generator = np.random.default_rng(0)
    x = generator.normal(size=200) * 3
    design = np.stack([np.ones(200), x], 1)
    outcome = (generator.random(200) < expit(2 * x - 4)).astype(float)[:, None]
    counts = generator.multinomial(200, np.full(200, 1 / 200), 50).T.astype(float)
    fit = fit_logistic(design, counts, counts * outcome)
    gradient = design.T @ (counts * (outcome - expit(design @ fit.coef.T)))
    assert fit.converged.all()
    assert np.abs(gradient).max() < 1e-6
