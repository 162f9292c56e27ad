"""Audits of an event: the headline, gates, groups, clusters and times of tables whose truth is known."""

import json

import numpy as np
import pytest
from scipy.special import expit, logit
from typer.testing import CliRunner

from focalcal import metrics
from focalcal.auditing import Gate, audit
from focalcal.auditing.files import audit_files, read_rows
from focalcal.cli.app import app
from focalcal.predictions import Predictions

QUICK = {"calibrate": None, "resamples": 100}
README_GATES = ["--fail-if", "oe > 1.2", "--fail-if", "slope < 0.8"]


def event(rows=4000, *, shift=0.0, slope=1.0, base=-1.0, seed=0, **more):
    """P(y = 1) = sigmoid(shift + slope logit p) for the probabilities p of the table."""
    draws = np.random.default_rng(seed)
    p = expit(base + 1.2 * draws.normal(size=rows))
    happened = draws.random(rows) < expit(shift + slope * logit(p))
    return Predictions(probs=p, labels=happened.astype(int), split="test", **more)


def command(*arguments):
    return CliRunner().invoke(app, ["audit", *map(str, arguments)])


def test_two_classes_are_headed_by_the_event():
    found = audit(event(shift=0.5, slope=0.7), **QUICK)
    assert found.headline.startswith("Events are under-predicted: ")
    assert "too extreme" in found.headline
    assert found.metrics["slope"].low < 0.7 < found.metrics["slope"].high
    assert found.metrics["intercept"].low < 0.5 < found.metrics["intercept"].high
    rows = event(shift=0.5, slope=0.7)
    for name in ("oe", "slope", "citl", "ici", "observed_rate"):
        assert found.metrics[name].estimate == pytest.approx(metrics.METRICS[name](rows.probs, rows.labels))
    assert audit(event(), **QUICK).event.finding == "no fault shown"
    turned = audit(event(shift=0.5, slope=0.7), event="0", **QUICK).metrics["oe"].estimate
    assert turned < 1 < found.metrics["oe"].estimate, "of the other class"
    assert audit(event(), event=False, **QUICK).headline.startswith("Calibrated")


@pytest.mark.parametrize("constant", [1e-9, 0.9])
def test_the_readmes_gates_fail_a_constant_score(constant, tmp_path):
    table = tmp_path / "fraud.csv"
    lines = [f"{constant},{int(row % 500 == 0)}" for row in range(1000)]
    table.write_text("score,fraud\n" + "\n".join(lines) + "\n")
    done = command(table, "--score", "score", "--labels", "fraud", "--calibrate", "none", *README_GATES)
    assert done.exit_code == 1, done.output
    assert "FAILED: fail if slope < 0.8" in done.stdout, "of equal scores it is undefined, which passes nothing"
    assert ("FAILED: fail if oe > 1.2" in done.stdout) == (constant < 0.1)


def test_classes_of_several_are_audited_where_they_are_named():
    draws = np.random.default_rng(0)
    logits = draws.normal(size=(3000, 3))
    labels = np.argmax(logits / 2 + draws.gumbel(size=logits.shape), axis=1)
    rows = Predictions(logits=logits, labels=labels, split="test", classes=["ant", "bee", "cat"])
    found = audit(rows, event=["cat", "ant"], gates=[Gate.parse("slope[cat] < 0.8")], **QUICK)
    assert [each.name for each in found.events] == ["cat", "ant"]
    assert found.headline == found.verdict.sentence
    assert found.metrics["slope[cat]"].estimate == pytest.approx(metrics.slope(rows, positive="cat"))
    assert not found.check("slope[cat] > 0.9")
    assert not audit(rows, **QUICK).events
    with pytest.raises(ValueError, match="event must name classes, got 'dog'; they are ant, bee, cat"):
        audit(rows, event="dog", **QUICK)
    with pytest.raises(ValueError, match=r"'slope\[dog\]' is not a metric of this audit"):
        audit(rows, event="cat", gates=[Gate.parse("slope[dog] < 1")], **QUICK)


def test_groups_their_intersections_and_the_small_ones():
    draws = np.random.default_rng(1)
    site, age = draws.choice(["a", "b"], 4000), draws.choice(["old", "young"], 4000)
    site[:5], age[site == "c"] = "c", "old"
    age[:5] = "old"
    rows = event(groups={"site": site, "age": age})
    p = rows.probs[:, 1].copy()
    worse = (site == "b") & (age == "old")
    p[worse] = expit(logit(p[worse]) + 1)
    found = audit(Predictions(probs=p, labels=rows.labels, split="t", groups={"site": site, "age": age}), **QUICK)
    worst = found.event.groups[0]
    assert worst.name == "site=b, age=old"
    assert worst.off
    assert worst.confidence == pytest.approx(p[worse].mean())
    assert worst.accuracy == pytest.approx(rows.labels[worse].mean())
    assert 0 < worst.shrunk < worst.gap, "chance explains a part of the differences"
    said = " ".join(found.notes)
    assert "Intersections of fewer than 20 rows are not shown: site=c, age=old (5)." in said
    assert "Intersections without rows: site=c, age=young." in said


def clustered(rows=3000, clusters=60, seed=0):
    """Calibrated on average, but rows of a cluster have their own log odds."""
    draws = np.random.default_rng(seed)
    cluster = draws.integers(clusters, size=rows)
    x = draws.normal(size=rows)
    shift = 0.9 * draws.normal(size=clusters)
    p = (expit(x[:, None] + 0.9 * np.linspace(-3, 3, 121)) @ np.exp(-(np.linspace(-3, 3, 121) ** 2) / 2)) / np.exp(
        -(np.linspace(-3, 3, 121) ** 2) / 2
    ).sum()  # over clusters that are not in the sample
    return p, (draws.random(rows) < expit(x + shift[cluster])).astype(int), cluster


def test_clusters_keep_chance_from_being_called_a_fault():
    """Of 12 samples of a calibrated model; rows taken for independent are called faulty in half of them."""
    wrong = {"rows": 0, "clusters": 0}
    for seed in range(12):
        p, y, cluster = clustered(seed=seed)
        for name, more in (("rows", {}), ("clusters", {"clusters": cluster})):
            oe = metrics.event_calibration(p, y, resamples=20, **more).oe
            wrong[name] += oe.low > 1 or oe.high < 1
    assert wrong["clusters"] <= 2
    assert wrong["rows"] >= 4
    found = audit(p, y, clusters=cluster, **QUICK).event.calibration.oe
    assert (found.low, found.high) == pytest.approx((oe.low, oe.high))


def test_clusters_reach_groups_verdicts_and_calibrators():
    p, y, cluster = clustered()
    alone, together = (audit(p, y, groups=np.arange(3000) % 2, resamples=100, calibrate="platt", **more)
                       for more in ({}, {"clusters": cluster}))  # fmt: skip
    assert together.verdict.high - together.verdict.low > alone.verdict.high - alone.verdict.low
    for one, other in zip(sorted(alone.event.groups, key=lambda part: part.name),
                          sorted(together.event.groups, key=lambda part: part.name), strict=True):  # fmt: skip
        assert other.high - other.low > 1.2 * (one.high - one.low)
    change, wider = alone.fixes.tried[0].change, together.fixes.tried[0].change
    assert wider.high - wider.low > change.high - change.low
    with pytest.raises(ValueError, match="clusters must be at least two, got '7' in all 3,000 rows"):
        audit(p, y, clusters=np.full(3000, 7), **QUICK)


def test_time_is_a_panel_in_order_that_says_what_moved():
    draws = np.random.default_rng(0)
    day = np.sort(draws.integers(365, size=26_000))
    p = expit(draws.normal(size=26_000) - 1)
    group = draws.choice(["drifts", "stays"], 26_000)
    moved = expit(logit(p) + 1.5 * (day / 365) * (group == "drifts"))
    y = (draws.random(26_000) < moved).astype(int)
    found = audit(p, y, times=np.datetime64("2025-01-01") + day, groups=group, **QUICK).periods
    assert found.unit == "week"
    names = [part.name for part in found.parts]
    assert names == sorted(names)
    assert names[0] == "2024-12-30", "weeks begin on Monday"
    assert sum(part.rows for part in found.parts) == 26_000
    trends = {trend.what: trend for trend in found.trends}
    expected = {what: (moved - p)[group == what] for what in ("drifts", "stays")}
    slope = np.polyfit(day[group == "drifts"] / 364, -expected["drifts"], 1)[0]
    assert trends["drifts"].low < slope < trends["drifts"].high
    assert [trends[name].moved for name in ("gap", "predicted", "observed", "drifts", "stays")] == [
        True, False, True, True, False,
    ]  # fmt: skip
    assert found.sentence.startswith("Moved from 2024-12-30 to ")
    last = [part.off for part in found.parts][::-1]
    assert found.parts[len(last) - last.index(False)].name == found.since, "all are off from there on"
    few = audit(p[:900], y[:900], times=np.datetime64("2025-01-01") + day[::23][:900], **QUICK).periods
    assert few.unit in ("month", "quarter"), "fewer rows, longer periods"
    by_month = audit(p, y, times=(np.datetime64("2025-01-01") + day).astype("M8[M]"), **QUICK).periods
    assert (by_month.unit, by_month.parts[0].name, len(by_month.parts)) == ("month", "2025-01", 12), "no week is known"


def test_calibrators_of_a_rare_event_see_all_of_its_rows():
    rows = event(30_000, base=-6.8, shift=0.7)
    events = int(rows.labels.sum())
    found = audit(rows, calibrate="platt", resamples=100)
    compared = found.fixes.compared
    assert rows.labels[compared.places].sum() == events
    assert compared.design.mean(rows.labels[compared.places].astype(float)) == pytest.approx(events / 30_000)
    assert f"all {events:,} rows of the rarer class" in " ".join(found.notes)
    assert found.fixes.recommended == "platt"
    assert abs(found.event.oe_after - 1) < 0.05 < abs(found.metrics["oe"].estimate - 1)
    assert found.event.rare
    bins = found.event.reliability
    assert bins.upper[bins.count > 0][0] < 0.01, "where the events are"


def test_rates_of_a_large_file_are_those_of_all_rows(tmp_path):
    rows = event(5000, shift=0.4)
    rows.save(tmp_path / "rows.npz")
    found = audit_files(tmp_path / "rows.npz", most_rows=1000, **QUICK)
    assert found.sample == 1000
    for name in ("oe", "observed_rate", "predicted_rate"):
        assert found.metrics[name].estimate == pytest.approx(metrics.METRICS[name](rows))
        assert found.metrics[name].low < found.metrics[name].estimate < found.metrics[name].high
    assert found.event.calibration.events == rows.labels.sum()
    assert "5,000 rows" not in found.headline
    assert found.record()["sample"] == 1000


def test_a_sample_of_a_large_file_has_all_rows_of_a_rare_event(tmp_path):
    rows = event(40_000, base=-6, shift=0.5)
    rows.save(tmp_path / "rows.parquet")
    events = int(rows.labels.sum())
    read = read_rows([tmp_path / "rows.parquet"], {}, most_rows=4000)
    assert read.predictions.labels.sum() == events
    assert read.predictions.n == 4000
    weights, labels = read.predictions.weights, read.predictions.labels
    assert weights.sum() == pytest.approx(40_000)
    assert weights[labels == 1] == pytest.approx(1)
    found = audit_files(tmp_path / "rows.parquet", most_rows=4000, calibrate="platt", resamples=100)
    whole = audit(rows, calibrate="platt", resamples=100)
    assert f"are of all {events:,} rows of the rarer class and a uniform sample of {4000 - events:,}" in found.notes[0]
    assert not any("survey" in note for note in found.notes)
    for name in ("oe", "observed_rate", "predicted_rate", "nll", "ece"):
        assert found.metrics[name].estimate == pytest.approx(whole.metrics[name].estimate, rel=1e-6), name
    for name in ("slope", "auroc", "ici"):  # of the sample
        span = whole.metrics[name].high - whole.metrics[name].low
        assert abs(found.metrics[name].estimate - whole.metrics[name].estimate) < span / 2, name
        assert name == "ici" or found.metrics[name].high - found.metrics[name].low < 1.5 * span, "as many events"
    assert found.fixes.chosen.nll == pytest.approx(whole.fixes.chosen.nll, rel=0.02)


def test_trackers_get_numbers_by_name():
    class Tracker:
        def log_metrics(self, numbers):
            self.numbers = numbers

        def log_dict(self, record, name):
            self.record = json.loads(json.dumps(record)) | {"name": name}

    found, tracker = audit(event(), **QUICK), Tracker()
    found.log_to(tracker)
    assert tracker.numbers == dict(found)
    assert dict(found)["slope_low"] == found.metrics["slope"].low
    assert tracker.record["events"][0]["metrics"]["oe"]["estimate"] == found.metrics["oe"].estimate
    with pytest.raises(TypeError, match="tracker must have log_metrics or log"):
        found.log_to(object())


def test_the_report_for_referees_has_the_numbers(tmp_path):
    event(shift=0.5, groups=["a", "b"] * 2000).save(tmp_path / "rows.npz")
    done = command(tmp_path / "rows.npz", "--calibrate", "platt", "--report", "tripod")
    assert done.exit_code == 0
    found = audit_files(tmp_path / "rows.npz", calibrate="platt")
    assert f"{found.metrics['slope'].estimate:.2f} (95 % interval {found.metrics['slope'].low:.2f}" in done.stdout
    for item in ("12d", "12e", "12f", "13", "15", "21", "23a", "23b", "24"):
        assert f"## {item} " in done.stdout
    assert "Use platt" in done.stdout


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--time", "when"], "times must be dates such as 2026-03-01"),
        (["--clusters", "one"], "clusters must be at least two"),
        (["--event", "maybe"], "event must name classes, got 'maybe'; they are"),
        (["--trained-with", "adam"], "trained_with must be ce, or the loss's gamma and lam such as 3,1"),
        (["--groups", "one,nowhere"], "nowhere"),
    ],
)
def test_bad_input_is_a_sentence_and_nothing_is_written(options, message, tmp_path):
    table = tmp_path / "rows.csv"
    table.write_text(
        "p,y,when,one\n" + "".join(f"{(row % 9 + 1) / 10},{row % 2},31/12/{row},x\n" for row in range(300))
    )
    done = command(table, "--score", "p", "--labels", "y", *options, "--calibrate", "none", "--out", tmp_path / "out")
    assert done.exit_code == 2, done.output
    assert message in " ".join(done.stderr.split())
    assert len(done.stderr.splitlines()) <= 2
    assert not (tmp_path / "out").exists()


def test_groups_of_one_outcome_and_of_one_cluster_have_what_can_be_said():
    p, y, cluster = clustered(600, clusters=12)
    group = np.where(cluster == 0, "one cluster", np.where(y == 1, "all happened", "none happened"))
    parts = {part.name: part for part in audit(p, y, clusters=cluster, groups=group, **QUICK).event.groups}
    assert np.isnan(parts["one cluster"].low)
    assert not parts["one cluster"].off
    assert parts["all happened"].accuracy == 1
    assert parts["all happened"].off


def test_costs_say_when_to_act_and_what_calibration_saves(tmp_path):
    rows = event(6000, shift=1.2)
    cost = {"fp": 1, "fn": 5}
    found = audit(rows, calibrate="platt", cost=cost, gates=[Gate.parse("cost_per_1000 > 1")], resamples=100)
    decided = found.decisions
    assert decided.threshold == pytest.approx(1 / 6)
    acted = rows.probs[:, 1] >= 1 / 6
    spent = 1000 * np.where(rows.labels == 1, 5.0 * ~acted, 1.0 * acted).mean()
    assert decided.before.per_1000.estimate == pytest.approx(spent)
    assert found.metrics["cost_per_1000"].estimate == pytest.approx(spent)
    assert decided.change.high < 0, "rows whose log odds are 1.2 too low are missed too often"
    assert decided.after.per_1000.estimate == pytest.approx(spent + decided.change.estimate)
    assert found.metrics["recall"].estimate == pytest.approx(acted[rows.labels == 1].mean())
    assert not found.check("recall > 99 %")
    matrix = tmp_path / "cost.csv"
    matrix.write_text("0,1\n5,0\n")
    for same in ("fp=1, fn=5", str(matrix), np.array([[0, 1], [5, 0]])):
        again = audit(rows, calibrate=None, cost=same, resamples=100)
        assert again.decisions.before.per_1000.estimate == pytest.approx(spent)
    curve = audit(rows, **QUICK).decisions.curve
    at = np.argmin(abs(curve.thresholds - 0.3))
    acted = rows.probs[:, 1] >= curve.thresholds[at]
    expected = (acted & (rows.labels == 1)).mean() - (acted & (rows.labels == 0)).mean() * curve.thresholds[at] / (
        1 - curve.thresholds[at]
    )
    assert curve.net_benefit[at] == pytest.approx(expected)


def test_a_calibrator_that_costs_more_is_said_to():
    """Most scores are too extreme; those of .95 are right, and shrunk below the threshold of .9."""
    draws = np.random.default_rng(0)
    z = draws.choice([-1.5, 1.5, 3.0], p=[0.4, 0.4, 0.2], size=3000)
    labels = (draws.random(3000) < 1 / (1 + np.exp(-np.where(z == 3.0, z, z / 3)))).astype(int)
    p = 1 / (1 + np.exp(-z))
    found = audit(np.c_[1 - p, p], labels, cost="fp=9,fn=1", calibrate="temperature", resamples=100)
    assert found.decisions.change.low > 0
    warning = "raises the cost of these decisions: for them leave the probabilities as they are."
    assert warning in found.decisions.sentence
    assert found.action.endswith(warning)
    cheaper = audit(np.c_[1 - p, p], labels, cost="fp=1,fn=4", calibrate="temperature", resamples=100)
    assert cheaper.decisions.change.estimate < 0
    assert "the cost of these decisions" not in cheaper.action


def test_costs_of_several_classes_are_those_of_their_decisions():
    draws = np.random.default_rng(0)
    logits = 2 * draws.normal(size=(2000, 3))
    labels = np.argmax(logits / 2 + draws.gumbel(size=logits.shape), axis=1)
    cost = np.array([[0, 1, 8], [4, 0, 1], [1, 6, 0]])
    found = audit(logits=logits, labels=labels, calibrate="temperature", cost=cost, resamples=100)
    probs = np.exp(logits) / np.exp(logits).sum(1, keepdims=True)
    spent = 1000 * cost[labels, (probs @ cost).argmin(1)].mean()
    assert found.decisions.before.per_1000.estimate == pytest.approx(spent)
    assert found.decisions.curve is None
    assert found.decisions.after.per_1000.estimate < spent
    assert "per 1,000 rows" in found.decisions.sentence


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"cost": "fp=-1,fn=2"}, "cost must be finite and >= 0, got -1"),
        ({"cost": "fp=1"}, "cost must have fp and fn"),
        ({"cost": "fp=1,fn=many"}, "cost must be such as fp=1,fn=20"),
        ({"cost": "nowhere.csv"}, "or the name of a file with a matrix, got 'nowhere.csv'"),
        ({"cost": np.eye(3)}, "cost must be a matrix of 2 lines and columns for 2 classes, got 3"),
        ({"threshold": 1.5}, "threshold must be"),
        ({"event": False, "threshold": 0.5}, "threshold needs an event"),
    ],
)
def test_costs_that_make_no_sense_are_refused_before_anything_is_computed(options, message, monkeypatch):
    monkeypatch.setattr("focalcal.auditing.auditor.rows_of", lambda *_, **__: pytest.fail("the rows were looked at"))
    with pytest.raises(ValueError, match=message):
        audit(event(200), **QUICK, **options)


def test_weights_are_rows_repeated_with_the_intervals_of_the_rows_that_there_are():
    draws = np.random.default_rng(0)
    plain, weights = event(1500, shift=0.4), draws.choice([1.0, 2.0, 5.0], 1500)
    again = np.repeat(np.arange(1500), weights.astype(int))
    known = {
        "groups": draws.choice(["a", "b"], 1500),
        "times": np.datetime64("2025-01-01") + np.arange(1500) * 90 // 1500,
    }
    weighted, repeated = (
        audit(
            plain.probs[rows], plain.labels[rows], calibrate=None, cost="fp=1,fn=4", resamples=200,
            **more, **{name: values[rows] for name, values in known.items()},
        )
        for rows, more in ((slice(None), {"weights": weights}), (again, {}))
    )  # fmt: skip
    assert weighted.verdict.gap == pytest.approx(repeated.verdict.gap)
    for name, found in weighted.metrics.items():
        other = repeated.metrics[name]
        assert found.estimate == pytest.approx(other.estimate, rel=2e-3), name
        assert found.high - found.low > 1.1 * (other.high - other.low), "no more is known than the 1,500 rows tell"
        if found.chance is not None:
            assert 1 < found.chance / other.chance < 3, "of 1,500 rows, not of 4,000"
    for one, other in zip(weighted.event.groups, repeated.event.groups, strict=True):
        assert (one.name, one.gap, one.share) == (other.name, pytest.approx(other.gap), pytest.approx(other.share))
    for one, other in zip(weighted.periods.parts, repeated.periods.parts, strict=True):
        assert one.accuracy == pytest.approx(other.accuracy)
    np.testing.assert_allclose(weighted.risk_coverage.risk[-1], repeated.risk_coverage.risk[-1])
    assert [t.coverage for t in weighted.thresholds] == pytest.approx([t.coverage for t in repeated.thresholds])
    assert "4," in weighted.notes[0]
    assert "which are taken for those of a survey" in weighted.notes[0]
    tried = [
        audit(
            plain.probs[:600], plain.labels[:600], weights=weights[:600] * factor, calibrate="structured", resamples=100
        )
        for factor in (1.0, 1000.0)
    ]
    assert tried[0].fixes.sentence == tried[1].fixes.sentence, "only ratios of weights matter"
    same = audit(plain, calibrate=None, resamples=100)
    alike = audit(plain.probs, plain.labels, weights=np.full(1500, 3.0), calibrate=None, resamples=100)
    assert alike.verdict.sentence == same.verdict.sentence
    with pytest.raises(ValueError, match="weights must not all be 0"):
        audit(plain.probs, plain.labels, weights=np.zeros(1500), **QUICK)
