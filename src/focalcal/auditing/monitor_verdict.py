"""What a look at a monitor found: one sentence, its numbers as JSON, and for Prometheus and JUnit."""

from __future__ import annotations

import math
import os
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from focalcal.auditing.monitor_evidence import Break, StreamEvidence
from focalcal.auditing.monitor_forecast import Forecast, forecasts_of
from focalcal.auditing.monitor_rows import ALL, Piece
from focalcal.auditing.monitor_state import SCHEMA
from focalcal.core.atomic import write_atomically
from focalcal.core.display import Displayed
from focalcal.pages.numbers import Percent

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from focalcal.auditing.monitoring import Monitor


@dataclass(frozen=True, eq=False, repr=False)
class MonitorVerdict(Displayed):
    """Whether probabilities still hold: what `Monitor.look` and `monitor` find.

    Attributes:
        streams: the evidence of all rows, and of each group.
        by_period: one row per period: rows, mean score, mean outcome, and their difference with a 95 % interval.
        forecasts: of periods with rows that were scored before their outcomes were known.
        alpha, within, run_length, model: as of the `Monitor`.
        baseline: the number of its rows; None if "holds" means calibrated.
        event: whether the probability of one class is followed.
        bins: one array per period, (4, B): sums of 1, score, score^2 and outcome in each bin of the score.

    >>> from focalcal.auditing import Monitor
    >>> from focalcal.predictions import Predictions
    >>> monitor = Monitor()
    >>> _ = monitor.update(Predictions(confidence=[0.9] * 300, correct=[True] * 150 + [False] * 150, split="live"))
    >>> monitor.look().alarm  # right in half of the rows, at a confidence of 0.9
    True
    """

    streams: tuple[StreamEvidence, ...]
    by_period: Mapping[str, list[Any]]
    forecasts: tuple[Forecast, ...]
    alpha: float
    within: float
    run_length: float
    baseline: int | None
    event: bool
    model: str | None
    bins: tuple[NDArray[np.float64], ...]

    @classmethod
    def of(cls, monitor: Monitor, streams: tuple[StreamEvidence, ...], order: Mapping[str, int]) -> MonitorVerdict:
        """Of a monitor, whose streams have been tested; `order` is the place of each period."""
        settings, sums = monitor.settings, _period_sums(monitor.pieces, order)
        return cls(
            streams,
            _by_period(monitor.pieces, order, sums),
            forecasts_of(monitor),
            settings.alpha,
            settings.within,
            settings.run_length,
            None if monitor.baseline is None else monitor.baseline.rows,
            settings.column is not None,
            settings.model,
            tuple(sums),
        )

    @property
    def alarms(self) -> tuple[StreamEvidence, ...]:
        """The streams that do not hold, those with the most evidence first."""
        found = (each for each in self.streams if each.alarm is not None)
        return tuple(sorted(found, key=lambda each: -each.largest - math.log(each.level)))

    @property
    def alarm(self) -> bool:
        """Whether all rows or any group ever raised an alarm."""
        return bool(self.alarms)

    @property
    def broke(self) -> Break | None:
        """When, of the stream with the most evidence."""
        return self.alarms[0].broke if self.alarm else None

    @property
    def sentence(self) -> str:
        """The finding in words."""
        whole, periods = self.streams[0], self.by_period["period"]
        seen = f"{whole.rows:,} rows in {len(periods)} period{'s' * (len(periods) != 1)}"
        if not self.alarm:
            text = (
                f"Holds: {seen} do not show that outcomes are off by more than {self._allowed}; the evidence has "
                f"reached {_factor(whole.largest)}, and {1 / whole.level:.3g} is an alarm, which at most "
                f"{100 * self.alpha:g} % of streams that hold ever raise."
            )
            if whole.warnings and whole.broke:
                text += (
                    f" The detector, which errs once in {self.run_length:,.0f} periods on average at most, points at "
                    f"{whole.broke.period}."
                )
            return text
        first, *others = self.alarms
        names = [f"group {each.name}" if each.name else "all rows together" for each in others[:5]]
        who = f"Group {first.name}" if first.name else "All rows together"
        assert first.alarm is not None
        broke = first.broke
        assert broke is not None
        what = "the event" if self.event else "a right prediction"
        low, high = (Percent(end, signed=True).text for end in (broke.low, broke.high))
        text = (
            f"Alarm: outcomes are off by more than {self._allowed} ({seen}; evidence {_factor(first.largest)} where "
            f"{1 / first.level:.3g} was needed, first in {first.periods[first.alarm]}). {who}: since about "
            f"{broke.period} (from {broke.earliest} to {broke.latest}) {what} is "
            f"{Percent(abs(broke.gap)).text[:-2]} points {'rarer' if broke.gap < 0 else 'more frequent'} than the "
            f"scores say (95 % interval {low} to {high}); most clearly at scores around {Percent(broke.said).text}, of "
            f"which {Percent(broke.was).text} came true."
        )
        return text + (f" Also in {', '.join(names)}{', ...' if len(others) > 5 else ''}." if others else "")

    @property
    def _allowed(self) -> str:
        within = f"{100 * self.within:g} points" if self.within else ""
        if self.baseline is None:
            return within or "chance"
        return f"the baseline's {self.baseline:,} rows allow{f', by {within}' if within else ''}"

    def frame(self) -> dict[str, list[Any]]:
        """One row per period."""
        return dict(self.by_period)

    def __str__(self) -> str:
        """The sentence."""
        return self.sentence

    def record(self) -> dict[str, Any]:
        """For JSON. `schema` changes when a name or meaning does."""
        return {
            "schema": SCHEMA,
            "alarm": self.alarm,
            "sentence": self.sentence,
            "model": self.model,
            "alpha": self.alpha,
            "within": self.within,
            "baseline_rows": self.baseline,
            "run_length": self.run_length,
            "streams": [_stream(each) for each in self.streams],
            "periods": [
                dict(zip(self.by_period, row, strict=True)) for row in zip(*self.by_period.values(), strict=True)
            ],
            "forecasts": [asdict(each) for each in self.forecasts],
        }

    def prometheus(self) -> str:
        """In Prometheus' text format, for the textfile collector of node_exporter."""
        last = {name: values[-1] for name, values in self.by_period.items()}
        lines = []
        for name, about, value in (
            ("alarm", "1 if this stream ever left what is allowed", lambda each: int(each.alarm is not None)),
            ("log_e", "Logarithm of the evidence against this stream, now", lambda each: each.log_e[-1:].sum()),
            ("log_e_bound", "Logarithm of the evidence that is an alarm", lambda each: -math.log(each.level)),
            ("detector_warnings", "How often the detector pointed at a break", lambda each: len(each.warnings)),
            ("rows", "Rows with outcomes that were counted", lambda each: each.rows),
        ):
            lines += [f"# HELP focalcal_monitor_{name} {about}.", f"# TYPE focalcal_monitor_{name} gauge"]
            lines += [f"focalcal_monitor_{name}{self._labels(each.name)} {value(each):.10g}" for each in self.streams]
        for name, about in (("gap", "Mean outcome minus mean score"), ("score", "Mean score"),
                            ("outcome", "Mean outcome")):  # fmt: skip
            lines += [f"# HELP focalcal_monitor_last_{name} {about} in the last period.",
                      f"# TYPE focalcal_monitor_last_{name} gauge",
                      f"focalcal_monitor_last_{name}{self._labels(ALL)} {last[name]:.10g}"]  # fmt: skip
        return "\n".join(lines) + "\n"

    def _labels(self, group: str) -> str:
        pairs = {"group": group} | ({} if self.model is None else {"model": self.model})
        said = (f'{name}="{_escaped(value)}"' for name, value in pairs.items())
        return f"{{{','.join(said)}}}"

    def junit(self) -> bytes:
        """One test case per stream, as JUnit's XML."""
        from xml.etree import ElementTree

        count = str(len(self.alarms))
        suite = ElementTree.Element(
            "testsuite", name="focalcal monitor", tests=str(len(self.streams)), failures=count, errors="0"
        )
        for each in self.streams:
            name = f"{each.name or 'all rows'} still holds"
            case = ElementTree.SubElement(suite, "testcase", classname="focalcal.monitor", name=name)
            if each.alarm is not None:
                message = f"evidence {_factor(each.largest)} where {1 / each.level:.3g} was needed"
                ElementTree.SubElement(case, "failure", message=message).text = self.sentence
        return bytes(ElementTree.tostring(suite, encoding="utf-8", xml_declaration=True))

    def html(self, path: str | os.PathLike[str]) -> None:
        """Write the page, one file that needs no network; one that is there is replaced as a whole."""
        from focalcal.auditing.monitor_page import monitor_page

        write_atomically(Path(path), monitor_page(self).encode())


def _period_sums(pieces: list[Piece], order: Mapping[str, int]) -> list[NDArray[np.float64]]:
    sums: list[Any] = [0.0] * len(order)
    for piece in pieces:
        sums[order[piece.period]] = sums[order[piece.period]] + piece.sums[ALL]
    return sums


def _by_period(pieces: list[Piece], order: Mapping[str, int], sums: list[NDArray[np.float64]]) -> dict[str, list[Any]]:
    columns: dict[str, list[Any]] = {name: [] for name in ("period", "rows", "score", "outcome", "gap", "low", "high")}
    for period, (rows, score, _, outcome) in zip(sorted(order, key=lambda name: order[name]), sums, strict=True):
        n = rows.sum()
        gap = (outcome - score).sum() / n
        half = 1.96 * math.sqrt(max(0.0, (outcome - outcome**2 / rows.clip(1e-300)).sum())) / n
        counted = sum(piece.rows for piece in pieces if piece.period == period)
        values = (period, counted, score.sum() / n, outcome.sum() / n, gap, gap - half,
                  gap + half)  # fmt: skip
        for name, value in zip(columns, values, strict=True):
            columns[name].append(value)
    return columns


def _stream(each: StreamEvidence) -> dict[str, Any]:
    alarm = None if each.alarm is None else each.periods[each.alarm]
    return {
        "group": each.name or None,
        "rows": each.rows,
        "level": each.level,
        "log_e": each.log_e[-1:].sum(),
        "largest_log_e": each.largest,
        "log_e_bound": -math.log(each.level),
        "alarm": alarm,
        "broke": None if each.broke is None else asdict(each.broke),
        "detector_warnings": [each.periods[at] for at in each.warnings],
        "steps": [
            {"period": period, "look": look, "log_e": log_e, "log_detector": log_detector}
            for period, look, log_e, log_detector in zip(
                each.periods, each.looks, each.log_e.tolist(), each.log_detector.tolist(), strict=True
            )
        ],
    }


def _factor(log: float) -> str:
    """A number that may be too large for a float."""
    if log < math.log(1e4):
        return f"{math.exp(log):.3g}"
    return f"10^{log / math.log(10):,.0f}"


def _escaped(text: str) -> str:
    return text.replace("\\", r"\\").replace('"', r"\"").replace("\n", r"\n")
