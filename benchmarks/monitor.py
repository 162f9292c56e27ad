"""How often a monitor errs, and how soon it sees a drift.

    python benchmarks/monitor.py false-alarms [--streams 1000] [--looks 1000] [--rows 100]
    python benchmarks/monitor.py delays [--streams 400]
    python benchmarks/monitor.py breaks [--streams 400]
    python benchmarks/monitor.py networks [--shuffles 40] [--noise 0.5]
    python benchmarks/monitor.py topics
    python benchmarks/monitor.py size [--rows 10000000] [--days 90]
    python benchmarks/monitor.py peers FOLDER    # writes streams that benchmarks/monitor_nannyml.py reads
    python benchmarks/monitor.py same-streams FOLDER

Streams are of confidences drawn from Beta(8, 2), 0.8 on average, and of outcomes drawn from them. `networks` needs the
published logits in $FOCALCAL_DATA/logits, `topics` the texts in $FOCALCAL_DATA/ag_news_csv. All but `size` and
`false-alarms --looks 10000` take a minute of CPU time or two.
"""

from __future__ import annotations

import argparse
import json
import os
import tempfile
import time
from pathlib import Path

import numpy as np
from scipy.stats import norm

from focalcal import Monitor
from focalcal.auditing.monitor_rows import BINS, EDGES, LOG_ODDS
from focalcal.predictions import Predictions
from focalcal.stats.e_process import (
    DISCOUNTS,
    BinnedSums,
    Wealth,
    calibrated,
    central_range,
    change_weights,
    fixed_bets,
    learned_bets,
    log_e_values,
    stakes,
)

ALPHA, LOOKS_PLANNED, RUN_LENGTH = 0.05, 365, 1000
DRIFTS = (0.01, 0.02, 0.05, 0.10)


def draw(draws: np.random.Generator, streams: int, rows: int, drift: float) -> tuple[np.ndarray, ...]:
    """Sums over bins (4, S, B), and of each stream the mean of y - p, of p (1 - p) and of (p - y)^2 - p (1 - p)."""
    p = draws.beta(8, 2, (streams, rows))
    y = draws.random((streams, rows)) < p - drift
    cells = np.searchsorted(EDGES, p) - 1 + BINS * np.arange(streams)[:, None]
    terms = (None, p.ravel(), (p * p).ravel(), y.ravel())
    sums = np.array([np.bincount(cells.ravel(), each, minlength=streams * BINS) for each in terms])
    surplus = ((p - y) ** 2 - p * (1 - p)).mean(1)
    return sums.reshape(4, streams, BINS), (y - p).mean(1), (p * (1 - p)).mean(1), surplus


class UsualTests:
    """What people do with the same periods: tests of each period by itself, and a CUSUM of the Brier score.

    The CUSUM is two-sided, of standardised surpluses with a slack of 1/4; its bound is the one that 5 % of streams
    without drift reach in 365 periods, found by simulation: it is told what it could not know.
    """

    def __init__(self, streams: int, rows: int, bound: float) -> None:
        self.rows, self.bound, self.up, self.down = rows, bound, np.zeros(streams), np.zeros(streams)
        self.spread = surplus_spread() / np.sqrt(rows)

    def signals(self, gap: np.ndarray, variance: np.ndarray, surplus: np.ndarray) -> dict[str, np.ndarray]:
        z = np.abs(gap) / np.sqrt(variance / self.rows)
        step = surplus / self.spread
        self.up, self.down = np.maximum(0, self.up + step - 0.25), np.maximum(0, self.down - step - 0.25)
        return {
            "95 % interval per period": z > norm.ppf(1 - ALPHA / 2),
            f"Bonferroni over {LOOKS_PLANNED} periods": z > norm.ppf(1 - ALPHA / 2 / LOOKS_PLANNED),
            "CUSUM of the Brier score": np.maximum(self.up, self.down) > self.bound,
        }


def surplus_spread() -> float:
    """The standard deviation of (p - y)^2 - p (1 - p) = (1 - 2 p) (y - p), of one row."""
    p = (np.arange(200_000) + 0.5) / 200_000
    density = p**7 * (1 - p)
    return float(np.sqrt((density * (1 - 2 * p) ** 2 * p * (1 - p)).sum() / density.sum()))


def cusum_bound(rows: int) -> float:
    """Reached within 365 periods by 5 % of streams without drift."""
    draws, most = np.random.default_rng(7), np.zeros(4000)
    up, down = np.zeros(4000), np.zeros(4000)
    for _ in range(LOOKS_PLANNED):  # standardised means of that many rows are near enough to normal
        step = draws.normal(size=4000)
        up, down = np.maximum(0, up + step - 0.25), np.maximum(0, down - step - 0.25)
        most = np.maximum(most, np.maximum(up, down))
    return float(np.quantile(most, 1 - ALPHA))


def first_signals(streams: int, looks: int, rows: int, drift: float, at: int, seed: int) -> dict[str, np.ndarray]:
    """Of each method and stream the first look with a signal; `looks` if there is none."""
    draws, gaps, fixed = np.random.default_rng(seed), calibrated(BINS), fixed_bets(LOG_ODDS)
    wealth, usual = Wealth(stakes()), UsualTests(streams, rows, cusum_bound(rows))
    known, first = np.zeros((len(DISCOUNTS), 4, streams, BINS)), {}
    for look in range(looks):
        sums, gap, variance, surplus = draw(draws, streams, rows, drift if look >= at else 0.0)
        learned = learned_bets([BinnedSums(*each) for each in known], gaps, LOG_ODDS)
        wealth.add(np.concatenate([log_e_values(bets, BinnedSums(*sums), gaps) for bets in (fixed, learned)], -1))
        known = np.array(DISCOUNTS)[:, None, None, None] * known + sums
        signals = {
            "e-process": wealth.process >= -np.log(ALPHA),
            "e-detector": wealth.detector >= np.log(RUN_LENGTH),
            **usual.signals(gap, variance, surplus),
        }
        for name, signal in signals.items():
            so_far = first.setdefault(name, np.full(streams, looks))
            first[name] = np.where((so_far == looks) & signal, look, so_far)
    return first


def false_alarms(streams: int, looks: int, rows: int) -> None:
    first = first_signals(streams, looks, rows, 0.0, looks, seed=0)
    marks = [mark for mark in (30, 100, 365, 1000, 3000, 10_000) if mark <= looks]
    print(f"{streams} streams without drift, {rows} rows per look: share with a false alarm within so many looks")
    print(f"{'':32}" + "".join(f"{mark:>9,}" for mark in marks))
    for name, at in first.items():
        print(f"{name:32}" + "".join(f"{100 * (at < mark).mean():>8.1f}%" for mark in marks))


def delays(streams: int) -> None:
    before, rows = 60, 500
    print(
        f"{streams} streams of {rows} rows per period, drift after {before} periods: median periods to the first signal"
    )
    print("(of streams without a signal before it; in brackets the share with one before it)")
    for drift in DRIFTS:
        looks = before + {0.01: 250, 0.02: 80}.get(drift, 30)
        first = first_signals(streams, looks, rows, drift, before, seed=1)
        print(f"drift of {100 * drift:.0f} points")
        for name, at in first.items():
            honest = at[at >= before]
            median = np.median(honest) - before + 1
            late = f"more than {looks - before}" if median > looks - before else f"{median:.0f}"
            in_rows = "" if median > looks - before else f"{median * rows:,.0f} rows"
            print(f"  {name:32}{late:>14}  {in_rows:<14} ({100 * (at < before).mean():.1f} % before)")


def breaks(streams: int) -> None:
    """How often the range of the break holds the true period, and how wide it is, when the alarm is raised."""
    before, rows, gaps, fixed = 40, 500, calibrated(BINS), fixed_bets(LOG_ODDS)
    for drift in DRIFTS[1:]:
        monitored, draws = 0, np.random.default_rng(3)
        inside, width = 0, []
        wealth, history = Wealth(stakes()), []
        known, alarmed = np.zeros((len(DISCOUNTS), 4, streams, BINS)), np.zeros(streams, bool)
        for look in range(before + 60):
            sums, *_ = draw(draws, streams, rows, drift if look >= before else 0.0)
            learned = learned_bets([BinnedSums(*each) for each in known], gaps, LOG_ODDS)
            of_fixed = log_e_values(fixed, BinnedSums(*sums), gaps)
            history.append(of_fixed)
            wealth.add(np.concatenate([of_fixed, log_e_values(learned, BinnedSums(*sums), gaps)], -1))
            known = np.array(DISCOUNTS)[:, None, None, None] * known + sums
            now = (wealth.process >= -np.log(ALPHA)) & ~alarmed
            alarmed |= now
            for stream in np.flatnonzero(now) if look >= before else ():
                weights = change_weights(np.array(history)[:, stream], stakes()[: len(fixed)])
                low, high = central_range(weights)
                monitored, inside = monitored + 1, inside + (low <= before <= high)
                width.append(high - low + 1)
        held = f"holds the break in {100 * inside / monitored:.1f} % of {monitored} streams"
        print(f"drift of {100 * drift:.0f} points: the 95 % range {held}; median width {np.median(width):.0f} periods")


def networks(shuffles: int, noise: float) -> None:
    """Published networks of CIFAR-10: a baseline of 3,000 rows, then 35 periods of 200, the last 20 with noise."""
    archive = np.load(Path(os.environ["FOCALCAL_DATA"]) / "logits" / "cifar10_test_logits_akamaster_resnets.npz")
    labels = archive["labels"]
    print(
        "growing noise in the logits from period 16 of 35: monitors with an alarm before it, median period of the alarm"
    )
    for name in [each for each in archive.files if each != "labels"]:
        logits, early, late, none = archive[name].astype(np.float64), 0, [], 0
        for seed in range(shuffles):
            draws = np.random.default_rng(seed)
            order = draws.permutation(len(labels))
            monitor = Monitor(baseline=rows_of(logits, labels, order[:3000]))
            for period in range(35):
                chosen = order[3000 + 200 * period :][:200]
                added = noise * max(0, period - 14) * draws.normal(size=(200, logits.shape[1]))
                monitor.update(Predictions(logits=logits[chosen] + added, labels=labels[chosen], split="live"))
            alarm = monitor.look().streams[0].alarm
            early, none = early + (alarm is not None and alarm < 15), none + (alarm is None)
            late += [alarm + 1] if alarm is not None and alarm >= 15 else []
        print(
            f"  {name:12} {early} of {shuffles} before, {none} never, median period {np.median(late):.0f}"
            if late
            else f"  {name:12} {early} of {shuffles} before, {none} never"
        )


def topics() -> None:
    """AG News: a logistic regression on words; a baseline, then a share of topic 2 that grows.

    How far accuracy is from what is expected of scores alone, and of scores corrected for the label shift.
    """
    import csv

    from sklearn.feature_extraction.text import TfidfVectorizer
    from sklearn.linear_model import LogisticRegression

    def read(name: str, most: int) -> tuple[list[str], np.ndarray]:
        with open(Path(os.environ["FOCALCAL_DATA"]) / "ag_news_csv" / name, encoding="utf-8") as file:
            rows = list(csv.reader(file))
        chosen = np.random.default_rng(0).permutation(len(rows))[:most]
        return [" ".join(rows[at][1:]) for at in chosen], np.array([int(rows[at][0]) - 1 for at in chosen])

    words = TfidfVectorizer(max_features=20_000, sublinear_tf=True)
    texts, labels = read("train.csv", 30_000)
    model = LogisticRegression(max_iter=300).fit(words.fit_transform(texts), labels)
    texts, labels = read("test.csv", 7600)
    probs = model.predict_proba(words.transform(texts))
    half = len(labels) // 2
    baseline = Predictions(probs=probs[:half], labels=labels[:half], split="test")
    monitor, draws, shifts = Monitor(period="month", baseline=baseline), np.random.default_rng(1), []
    later = np.arange(half, len(labels))
    for month in range(1, 13):
        weight = 0.25 + 0.05 * max(0, month - 4)
        odds = np.where(labels[later] == 2, 3 * weight / (1 - weight), 1.0)
        chosen = draws.choice(later, 400, replace=False, p=odds / odds.sum())
        rows = Predictions(probs=probs[chosen], labels=labels[chosen], split="live")
        at = f"2026-{month:02d}"
        shifts.append(monitor.update(rows, at=at, labelled=False, source=baseline).label_shift)
        monitor.update(rows, at=at)
    verdict = monitor.look()
    print(verdict.sentence)
    print("month, topic 2 (estimate), accuracy expected, by label shift, came, p of a label shift")
    for found, shift in zip(verdict.forecasts, shifts, strict=True):
        rates = " ".join(f"{100 * each:6.1f}" for each in (found.expected, found.shifted, found.came))
        print(f"  {found.period} {100 * shift.target[2]:6.1f} {rates} {shift.p_value:8.3f}")
    for name in ("expected", "shifted"):
        errors = [abs(getattr(found, name) - found.came) for found in verdict.forecasts]
        print(f"mean absolute error, {name}: {100 * np.mean(errors):.2f} points")


def rows_of(logits: np.ndarray, labels: np.ndarray, chosen: np.ndarray) -> Predictions:
    return Predictions(logits=logits[chosen], labels=labels[chosen], split="test")


def size(rows: int, days: int) -> None:
    """CPU time, memory and state of one Parquet file of top-1 rows over so many days, with 8 groups."""
    import resource

    import pyarrow as pa
    import pyarrow.parquet as pq

    from focalcal.auditing.monitor_files import update_from_files

    draws = np.random.default_rng(0)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "rows.parquet")
        schema = None
        writer = None
        for start in range(0, rows, 1_000_000):
            n = min(1_000_000, rows - start)
            p = draws.beta(8, 2, n)
            when = np.datetime64("2026-01-01") + (days * 86400 * (start + np.arange(n)) // rows).astype(
                "timedelta64[s]"
            )
            table = pa.table({"confidence": p, "correct": draws.random(n) < p, "when": when.astype("datetime64[us]"),
                              "site": draws.integers(0, 8, n)})  # fmt: skip
            schema = schema or table.schema
            writer = writer or pq.ParquetWriter(path, schema)
            writer.write_table(table)
        writer.close()
        before, begun = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss, time.process_time()
        monitor = Monitor(period="day")
        update_from_files(monitor, path, {"times": "when", "groups": "site"})
        read, begun = time.process_time() - begun, time.process_time()
        monitor.look()
        looked = time.process_time() - begun
        assert sum(piece.rows for piece in monitor.pieces) == rows
        monitor.save(Path(folder, "state.json"))
        kilobytes = Path(folder, "state.json").stat().st_size / 1000
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    print(f"{rows:,} rows: {read:.1f} s CPU to count, {looked:.1f} s to look, at most {peak / 1000:.0f} MB "
          f"({before / 1000:.0f} MB before), state {kilobytes:.0f} kB")  # fmt: skip


def peers(folder: Path) -> None:
    """20 streams for `nannyml`: a reference of 20 periods without drift, 60 more, then 60 with it; two classes."""
    import pandas

    folder.mkdir(parents=True, exist_ok=True)
    for drift in (0.0, *DRIFTS):
        parts = []
        for stream in range(20):
            draws = np.random.default_rng([stream, round(1000 * drift)])
            p = draws.beta(8, 2, 500 * 140)
            y = draws.random(len(p)) < p - drift * (np.arange(len(p)) >= 500 * 80)
            parts.append(pandas.DataFrame({"stream": stream, "p": p, "correct": y.astype(int)}))
        pandas.concat(parts).to_parquet(folder / f"{round(1000 * drift)}.parquet", index=False)
    print(json.dumps({"folder": str(folder), "rows_per_period": 500}))


def same_streams(folder: Path) -> None:
    """This monitor on the streams of `peers`, with and without the 20 periods of the reference as its baseline."""
    import pandas

    for file in sorted(folder.glob("*.parquet"), key=lambda path: int(path.stem)):
        firsts: dict[str, list[float]] = {"no baseline": [], "baseline of 10,000 rows": []}
        errors = []
        for _, rows in pandas.read_parquet(file).groupby("stream"):
            given = Predictions(confidence=rows.p.to_numpy(), correct=rows.correct.to_numpy(), split="live")
            parts = list(given.batches(500))
            for name, at in firsts.items():
                baseline = None if name == "no baseline" else given[: 500 * 20]
                monitor = Monitor(baseline=baseline, period="day")
                for day, part in enumerate(parts[20:]):
                    when = str(np.datetime64("2026-01-01") + day)
                    monitor.update(part, at=when)
                    monitor.update(part, at=when, labelled=False)
                verdict = monitor.look()
                alarm = verdict.streams[0].alarm
                at.append(np.inf if alarm is None else alarm - 60 + 1)
            errors += [abs(each.expected - each.came) for each in verdict.forecasts[:60]]
        print(f"drift of {int(file.stem) / 10:.0f} points; mean absolute error of the rate expected before it "
              f"{100 * np.mean(errors):.2f} points")  # fmt: skip
        for name, at in firsts.items():
            early = sum(each <= 0 for each in at)
            median = np.median([each for each in at if each > 0])
            print(f"  {name}: alarm before it in {early} of {len(at)} streams, median periods after it {median:.0f}")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(dest="command", required=True)
    for name, defaults in {
        "false-alarms": {"streams": 1000, "looks": 1000, "rows": 100},
        "delays": {"streams": 400},
        "breaks": {"streams": 400},
        "networks": {"shuffles": 40, "noise": 0.5},
        "topics": {},
        "size": {"rows": 10_000_000, "days": 90},
    }.items():
        command = commands.add_parser(name)
        for option, value in defaults.items():
            command.add_argument(f"--{option}", type=type(value), default=value)
    for name in ("peers", "same-streams"):
        commands.add_parser(name).add_argument("folder", type=Path)
    options = vars(parser.parse_args())
    globals()[options.pop("command").replace("-", "_")](**options)
