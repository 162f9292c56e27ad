"""`Monitor`: what does not matter (order, batches, processes), what must be noticed, and how often it errs."""

import json
import multiprocessing
import os
import signal
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import norm

import focalcal
from focalcal import Monitor
from focalcal.auditing import MonitorError
from focalcal.auditing.monitor_rows import EDGES, pieces_of
from focalcal.predictions import Predictions

DRAWS = np.random.default_rng(0)


def rows(n=500, month=1, gap=0.0, seed=None, sites="ab", **more):
    draws = np.random.default_rng(seed) if seed is not None else DRAWS
    p = draws.random(n)
    fields = {
        "times": np.datetime64(f"2026-{month:02d}-01") + draws.integers(0, 28 * 24, n).astype("timedelta64[h]"),
        "ids": [f"{month}-{seed}-{number}" for number in range(n)],
        "groups": draws.choice(list(sites), n),
    } | more
    label = (draws.random(n) < np.clip(p + gap, 0, 1)).astype(int)
    return Predictions(probs=p, labels=label, split="live", **{k: v for k, v in fields.items() if v is not None})


def numbers(verdict):
    return [(each.name, each.rows, each.log_e.round(9).tolist(), each.alarm) for each in verdict.streams]


def monitored(*partitions, **options):
    monitor = Monitor(**{"period": "month"} | options)
    for partition in partitions:
        monitor.update(partition)
    return monitor


YEAR = [rows(400, month, -0.1 * (month > 6), seed=month) for month in range(1, 13)]


@settings(max_examples=10)
@given(order=st.permutations(range(12)), batch=st.integers(50, 500))
def test_order_batches_and_shuffled_rows_change_nothing_before_a_look(order, batch):
    other = Monitor(period="month")
    for at in order:
        shuffled = YEAR[at][np.random.default_rng(at).permutation(YEAR[at].n)]
        other.update(shuffled.batches(batch))
    assert numbers(other.look()) == numbers(monitored(*YEAR).look())
    assert {piece.digest for piece in other.pieces} == {piece.digest for piece in monitored(*YEAR).pieces}


def test_merging_processes_is_one_process(tmp_path):
    alone, main = monitored(*YEAR[:3]), monitored(*YEAR[:3])
    assert numbers(alone.look()) == numbers(main.look())
    main.save(tmp_path / "main.json")
    workers = [Monitor.load(tmp_path / "main.json") for _ in range(2)]
    for at, partition in enumerate(YEAR[3:]):
        alone.update(partition)
        workers[at % 2].update(partition)
    workers[0].look()  # of no consequence for the one that goes on
    assert main.merge(*workers) == sum(each.n for each in YEAR[3:])
    assert main.merge(*workers) == 0
    verdict = main.look()
    assert numbers(verdict) == numbers(alone.look())
    assert verdict.broke.period == "2026-07"


def test_a_late_partition_changes_no_step_that_was_looked_at():
    monitor = monitored(*YEAR[:2], *YEAR[3:6])
    before = monitor.look().streams[0]
    monitor.update(YEAR[2])
    monitor.update(rows(50, 1, seed=99))
    after = monitor.look().streams[0]
    np.testing.assert_array_equal(after.log_e[: len(before.log_e)], before.log_e)
    assert after.periods[len(before.periods) :] == ("2026-01", "2026-03")
    assert after.looks == (1, 1, 1, 1, 1, 2, 2)


def test_a_state_reads_back_and_goes_on_as_if_it_had_not_been_away(tmp_path):
    monitor, path = monitored(*YEAR[:4], baseline=rows(3000, 1, times=None)), tmp_path / "state.json"
    monitor.look()
    monitor.save(path)
    again = Monitor.load(path)
    for each in (monitor, again):
        each.update(YEAR[4])
    assert numbers(again.look()) == numbers(monitor.look())
    again.save(path)
    with pytest.raises(MonitorError, match="another process"):
        monitor.save(path)


def test_the_same_partition_again_is_said_and_not_counted():
    monitor = monitored(YEAR[0])
    again = monitor.update(YEAR[0][::-1])
    assert (again.rows, again.repeated) == (0, ("2026-01",))
    numbered = Monitor()
    plain = rows(100, times=None)
    assert [numbered.update(plain).rows, numbered.update(plain).rows] == [100, 0]


def test_shared_ids_are_refused_and_nothing_is_counted():
    monitor = monitored(YEAR[0])
    overlapping = Predictions.concatenate([YEAR[0][:100], rows(200, 1, seed=55)])
    with pytest.raises(MonitorError, match="must not overlap"):
        monitor.update(overlapping)
    assert [piece.rows for piece in monitor.pieces] == [400]


@pytest.mark.parametrize(
    ("options", "partition", "said"),
    [
        ({}, rows(9, 2, weights=np.ones(9)), "weights must not be given"),
        ({}, Predictions(probs=np.full((9, 3), 1 / 3), labels=np.zeros(9, int), split="live"), "2 classes, got 3"),
        ({}, rows(9, times=None), "needs the times of rows"),
        ({"baseline": rows(100, 5, seed=5)}, rows(9, 2), "must not go back behind the baseline"),
        ({}, Predictions(probs=np.full((9, 2), 0.5), labels=np.ones((9, 2), int), split="live", multilabel=True),
         "several labels per row"),
    ],
)  # fmt: skip
def test_a_partition_that_does_not_belong_leaves_the_monitor_as_it_was(options, partition, said):
    monitor = monitored(rows(50, 6, seed=6), **options)
    before = monitor.look()
    with pytest.raises(ValueError, match=said):
        monitor.update(partition)
    assert numbers(monitor.look()) == numbers(before)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda text: text[: len(text) // 2], "cut off"),
        (lambda text: b"", "cut off"),
        (lambda text: b"[1]", "something else"),
        (lambda text: text.replace(b'"schema":1', b'"schema":2'), "must have schema 1, got 2"),
        (lambda text: text.replace(b'"partitions"', b'"portions"'), "KeyError"),
        (lambda text: text.replace(b'"look":1', b'"look":-1'), "look -1"),
        (lambda text: text.replace(b'"2026-01"', b'"January"'), "ValueError"),
        (lambda text: text.replace(b"[[", b"[[-3,", 1), "sums of bin -3"),
    ],
)
def test_a_damaged_state_is_refused(tmp_path, change, said):
    monitor = monitored(YEAR[0])
    monitor.look()
    monitor.save(tmp_path / "state.json")
    (tmp_path / "state.json").write_bytes(change((tmp_path / "state.json").read_bytes()))
    with pytest.raises(MonitorError, match=said):
        Monitor.load(tmp_path / "state.json")


def _save_for_ever(path):
    monitor = Monitor.load(path)
    while True:
        monitor.save(path)


def test_a_process_that_is_killed_while_it_writes_leaves_a_whole_state(tmp_path):
    monitored(*YEAR).save(path := tmp_path / "state.json")
    for delay in (0.1, 0.117):
        writer = multiprocessing.get_context("fork").Process(target=_save_for_ever, args=(path,))
        writer.start()
        writer.join(delay)
        os.kill(writer.pid, signal.SIGKILL)
        writer.join()
        assert len(Monitor.load(path).pieces) == 12


def test_merging_refuses_another_model_or_baseline():
    with pytest.raises(MonitorError, match="alpha"):
        monitored(YEAR[0]).merge(monitored(YEAR[1], alpha=0.01))
    with pytest.raises(MonitorError, match="baseline"):
        monitored(YEAR[0], baseline=rows(200, times=None)).merge(monitored(YEAR[1], baseline=rows(200, times=None)))


def test_immature_periods_wait_and_are_counted_later():
    monitor, both = Monitor(period="month"), Predictions.concatenate(YEAR[:2])
    first = monitor.update(both, mature=np.timedelta64(90, "D"), as_of="2026-05-03")
    assert (first.rows, first.waiting, first.rows_waiting) == (400, ("2026-02",), 400)
    later = monitor.update(both, mature=np.timedelta64(90, "D"), as_of="2026-06-30")
    assert (later.rows, later.repeated, later.waiting) == (400, ("2026-01",), ())


def test_groups_share_the_level_and_strangers_are_followed_together():
    monitor = Monitor(period="month", alpha=0.06)
    monitor.update(rows(300, 1, sites="ab"))
    for month in range(2, 9):
        monitor.update(rows(900, month, sites="ab"))
        monitor.update(rows(900, month, -0.15, sites="xy"))
    verdict = monitor.look()
    levels = {each.name: each.level for each in verdict.streams}
    assert levels == pytest.approx({"": 0.03, "a": 0.01, "b": 0.01, "(other groups)": 0.01})
    assert [each.name for each in verdict.alarms][:1] == ["(other groups)"]
    assert verdict.broke.period == "2026-02"


def test_a_baseline_that_is_off_allows_the_same_and_no_more():
    off = rows(20000, 1, -0.1, times=None, seed=1)
    same = monitored(*(rows(1000, month, -0.1) for month in range(1, 11)), baseline=off, alpha=0.01).look()
    worse = monitored(*(rows(1000, month, -0.1 - 0.1 * (month > 5)) for month in range(1, 11)), baseline=off).look()
    assert not same.alarm
    assert worse.alarm
    assert worse.broke.period == "2026-06"
    assert monitored(*(rows(1000, month, -0.1) for month in range(1, 6))).look().alarm


def test_a_tolerance_allows_what_is_within_it():
    parts = [rows(4000, month, -0.03, seed=month) for month in range(1, 13)]
    assert monitored(*parts).look().alarm
    assert not monitored(*parts, within=0.04).look().alarm


def test_few_monitors_with_small_baselines_ever_raise_an_alarm():
    """60 monitors of 12 periods; scores are 5 points off in the baseline and ever after."""
    alarms = 0
    for seed in range(60):
        monitor = Monitor(baseline=rows(400, 1, -0.05, seed=seed, times=None, groups=None, ids=None), alpha=0.2)
        for look in range(12):
            later = rows(200, 1, -0.05, seed=1000 + 12 * seed + look, times=None, groups=None, ids=None)
            monitor.update(later)
        alarms += monitor.look().alarm  # at any of the periods, each of which could have been a look
    assert alarms <= 0.2 * 60


def test_rows_of_a_cluster_count_as_one():
    """Copies of one outcome are no evidence: clusters of 20 equal rows say what their first rows say."""
    first = rows(100, times=None, groups=None, ids=None, seed=3)
    each = np.repeat(np.arange(100), 20)
    copies = Predictions(probs=first.probs[each], labels=first.labels[each], split="live", clusters=each)
    alone, many = (monitored(part, period=None).look().streams[0] for part in (first, copies))
    np.testing.assert_allclose(many.log_e, alone.log_e)


def test_top1_of_several_classes_and_one_event_among_them():
    probs = DRAWS.dirichlet([2, 1, 1], 600)
    labels = [DRAWS.choice(3, p=each) for each in probs]
    given = Predictions(probs=probs, labels=labels, split="live", classes=["cat", "dog", "eel"])
    for event, score, outcome in (
        (None, probs.max(1), probs.argmax(1) == labels),
        ("dog", probs[:, 1], np.array(labels) == 1),
    ):
        monitor = Monitor(event=event)
        monitor.update(given)
        verdict = monitor.look()
        assert verdict.by_period["score"] == pytest.approx([score.mean()])
        assert verdict.by_period["outcome"] == pytest.approx([outcome.mean()])
        counts, _ = np.histogram(-score, -EDGES[::-1])  # (lo, hi]
        np.testing.assert_array_equal(verdict.bins[0][0], counts[::-1])
    with pytest.raises(ValueError, match="event must be one of the classes cat, dog, eel, got 'cow'"):
        Monitor(event="cow").update(given)


def test_before_outcomes_come_the_forecast_is_what_calibration_implies_and_is_judged_later():
    monitor = Monitor(period="month")
    monitor.update(rows(5000, 1, groups=None))
    later = rows(3000, 2, seed=8, groups=None)
    monitor.update(later, labelled=False)
    monitor.update(rows(3000, 2, seed=8, groups=None), labelled=False)  # again
    (piece,) = monitor.scored
    assert piece.sums[""][3].sum() == 0  # labels were not looked at
    monitor.update(later)
    (forecast,) = monitor.look().forecasts
    p = later.probs[:, 1]
    assert forecast.rows == 3000
    assert forecast.expected == pytest.approx(p.mean())
    assert forecast.high - forecast.expected == pytest.approx(1.96 * np.sqrt((p * (1 - p)).sum()) / 3000)
    assert forecast.came == pytest.approx(later.labels.mean())
    assert forecast.low < forecast.came < forecast.high
    assert forecast.shift_low == 0 < forecast.shift < forecast.shift_high
    off = Monitor(period="month", baseline=rows(20000, 1, -0.1, seed=9, times=None, groups=None))
    off.update(rows(3000, 2, -0.1, seed=8, groups=None), labelled=False)
    off.update(rows(3000, 2, -0.1, seed=8, groups=None))
    (expects,) = off.look().forecasts
    assert expects.low < expects.came < expects.high < p.mean()
    moved = Monitor(period="month", baseline=rows(5000, 1, times=None, groups=None))
    squeezed = Predictions(probs=p**3, labels=later.labels, split="live", times=later.times)
    moved.update(squeezed, labelled=False)
    moved.update(later)
    assert moved.look().forecasts[0].shift_low > 0.2


@pytest.mark.parametrize("event", [None, "b"])
def test_a_label_shift_is_estimated_from_a_source_and_was_right(event):
    """Three normal classes, the second one wide; 10 % of it where there were 50 %. With two the third has no rows."""
    third = 0.0 if event else 0.1

    def drawn(frequency, seed):
        draws, middles, widths = np.random.default_rng(seed), np.array([-1, 1, 4]), np.array([1, 3, 1])
        labels = draws.choice(3, 4000, p=[1 - frequency - third, frequency, third])
        x = draws.normal(middles[labels], widths[labels])
        joint = norm.pdf(x[:, None], middles, widths) * [0.5 - third, 0.5, third] + 1e-6
        joint = joint[:, : 2 if event else 3]
        more = {"times": np.full(4000, np.datetime64("2026-02-03"))} if seed else {}
        names = list("abc")[: joint.shape[1]]
        return Predictions(probs=joint / joint.sum(1, keepdims=True), labels=labels, split="s", classes=names, **more)

    source, later = drawn(0.5, 0), drawn(0.1, 1)
    monitor = Monitor(period="month", event=event, baseline=source)
    done = monitor.update(later, labelled=False, source=source)
    monitor.update(later)
    (forecast,) = monitor.look().forecasts
    assert done.label_shift.low[1] < (later.labels == 1).mean() < done.label_shift.high[1]
    assert abs(forecast.shifted - forecast.came) < 0.02 < abs(forecast.expected - forecast.came)
    assert forecast.shifted_low < forecast.came < forecast.shifted_high


def test_periods_begin_where_calendars_say():
    when = np.array(["2026-01-04T23:00", "2026-01-05T01:00", "2025-12-31"], "datetime64[us]")
    given = Predictions(probs=np.full(3, 0.5), labels=[0, 1, 1], split="live", times=when)
    for period, names in {
        "hour": ["2025-12-31T00", "2026-01-04T23", "2026-01-05T01"],
        "week": ["2025-12-29", "2026-01-05"],
        "quarter": ["2025-10", "2026-01"],
        "year": ["2025", "2026"],
    }.items():
        assert [piece.period for piece in pieces_of([given], event=1, period=period)] == names


def test_months_are_months_where_nobody_says_the_period():
    months, one = [f"2026-{1 + at % 3:02d}" for at in range(90)], ["2026-03-01"] * 90
    for times, first in ((months, "2026-01"), (one, "2026-03-01")):  # the first day alone may be followed by others
        assert monitored(rows(90, times=times, ids=None), period=None).look().by_period["period"][0] == first


def test_the_record_is_json_and_the_page_is_whole(tmp_path):
    monitor = monitored(*YEAR, model='a "b"')
    verdict = monitor.look()
    assert json.loads(json.dumps(verdict.record()))["streams"][0]["alarm"] is not None
    verdict.html(tmp_path / "page.html")
    text = (tmp_path / "page.html").read_text()
    assert text.rstrip().endswith("</html>")
    assert "Alarm" in text
    for line in verdict.prometheus().splitlines():
        assert line.startswith("# ") or float(line.rsplit(" ", 1)[1]) is not None
    assert r'model="a \"b\""' in verdict.prometheus()
    assert replace(verdict, streams=verdict.streams[:1]).frame()["rows"] == [400] * 12


def test_one_call_for_a_scheduled_job_counts_predictions_and_files(tmp_path):
    state, base = tmp_path / "state.json", rows(2000, 1, times=None, seed=4)
    YEAR[1].save(tmp_path / "2.parquet")
    first = focalcal.monitor(state, YEAR[0], baseline=base, period="month", alpha=0.1)
    again = focalcal.monitor(state, YEAR[0], tmp_path / "2.parquet", alpha=0.1)
    assert (first.by_period["rows"], again.by_period["rows"]) == ([400], [400, 400])
    with pytest.raises(MonitorError, match="alpha"):
        focalcal.monitor(state, alpha=0.01)
    assert again.baseline == 2000
