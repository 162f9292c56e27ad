"""The page of a monitor: one HTML file that needs no network, written anew by every look."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from focalcal.auditing.event import RARE
from focalcal.auditing.monitor_evidence import StreamEvidence
from focalcal.auditing.monitor_forecast import ASSUMPTIONS
from focalcal.auditing.monitor_rows import EDGES
from focalcal.pages.numbers import Percent, Rounded
from focalcal.pages.page import Page, Section, html_table, render
from focalcal.pages.tables import Table

if TYPE_CHECKING:
    from focalcal.auditing.monitor_verdict import MonitorVerdict

SCRIPTS = ("kit/intervals.js", f"{__package__}/monitor.js")
_LOG10 = math.log(10)
_EVIDENCE = (
    "The e-process is the factor by which bets against 'it holds' have won. What holds ever reaches the bound with at "
    "most the probability that was asked for, however often one looks."
)
_PERIODS = "Intervals are of each period by itself, at 95 %; the alarm is not read from them."
_PANELS = 60  # periods that are drawn, the last ones


def monitor_page(verdict: MonitorVerdict, title: str = "Does it still hold?") -> str:
    """The page as HTML."""
    tables = {"streams": _stream_table(verdict), "periods": Table(verdict.by_period, missing="")}
    sections = [
        _section("evidence", "Evidence against it", "The e-process against its bound", "streams", tables, _EVIDENCE),
        _section("gaps", "Periods", "Mean outcome minus mean score of each period", "periods", tables, _PERIODS),
        Section("moved", "What moved", render(f"{__package__}/monitor_moved.html.j2", broke=_moved(verdict))),
    ]
    if verdict.forecasts:
        tables["forecasts"] = _forecast_table(verdict)
        note = "; ".join(f"{name} assumes {what}" for name, what in ASSUMPTIONS.items())
        body = html_table("forecasts", "Before outcomes are known", tables["forecasts"], f"{note}.", every_column=True)
        sections.append(Section("forecasts", "Before outcomes are known", body))
    return Page(
        title=title if verdict.model is None else f"{title} {verdict.model}",
        lead=render(f"{__package__}/monitor_lead.html.j2", sentence=verdict.sentence),
        sections=sections,
        data=_data(verdict),
        tables=tables,
        scripts=SCRIPTS,
        styles=("kit/marks.css", f"{__package__}/monitor.css"),
    ).html()


def _section(name: str, heading: str, what: str, table: str, tables: dict[str, Table], note: str) -> Section:
    body = html_table(table, heading, tables[table], quiet=True, every_column=True)
    return Section(name, heading, render(f"{__package__}/monitor.html.j2", name=name, what=what, note=note, table=body))


def _name(each: StreamEvidence) -> str:
    return f"group {each.name}" if each.name else "all rows"


def _stream_table(verdict: MonitorVerdict) -> Table:
    streams = verdict.streams
    return Table(
        {
            "rows of": [_name(each) for each in streams],
            "rows": [each.rows for each in streams],
            "says": ["alarm" if each.alarm is not None else "holds" for each in streams],
            "log10 of the evidence, now": [Rounded(each.log_e[-1:].sum() / _LOG10, ".2f") for each in streams],
            "at most": [Rounded(each.largest / _LOG10, ".2f") for each in streams],
            "bound": [Rounded(-math.log10(each.level), ".2f") for each in streams],
            "since about": [each.broke.period if each.broke else "" for each in streams],
            "from": [each.broke.earliest if each.broke else "" for each in streams],
            "to": [each.broke.latest if each.broke else "" for each in streams],
        },
        missing="",
    )


def _forecast_table(verdict: MonitorVerdict) -> Table:
    found = verdict.forecasts
    return Table(
        {
            "period": [each.period for each in found],
            "rows": [each.rows for each in found],
            "expected %": [100 * each.expected for each in found],
            "low": [100 * each.low for each in found],
            "high": [100 * each.high for each in found],
            "by label shift %": [None if each.shifted is None else 100 * each.shifted for each in found],
            "came %": [None if each.came is None else 100 * each.came for each in found],
            "shift of scores": [each.shift for each in found],
            "its low": [each.shift_low for each in found],
            "its high": [each.shift_high for each in found],
        },
        missing="",
    )


def _moved(verdict: MonitorVerdict) -> list[str]:
    said = []
    for each in verdict.streams:
        if (broke := each.broke) is None:
            continue
        said.append(
            f"In {_name(each)} since {broke.period} ({broke.rows:,} rows) mean outcome minus mean score is "
            f"{Percent(broke.gap, signed=True).text} points ({Percent(broke.low, signed=True).text} to "
            f"{Percent(broke.high, signed=True).text}), most clearly where "
            f"{Percent(broke.said).text} were said and {Percent(broke.was).text} came."
        )
    return said


def _data(verdict: MonitorVerdict) -> dict[str, Any]:
    periods = verdict.by_period["period"]
    first = max(0, len(periods) - _PANELS)
    broke = verdict.broke
    return {
        "evidence": [
            {
                "name": _name(each),
                "bound": -math.log10(each.level),
                "periods": each.periods,
                "values": (each.log_e / _LOG10).tolist(),
                "alarm": each.alarm,
            }
            for each in verdict.streams
        ],
        "gaps": [
            {
                "name": period,
                "mean": verdict.by_period["gap"][at],
                "low": verdict.by_period["low"][at],
                "high": verdict.by_period["high"][at],
                "rows": verdict.by_period["rows"][at],
                "bins": _bins(verdict.bins[at]),
                "broken": broke is not None and periods.index(broke.period) <= at,
            }
            for at, period in enumerate(periods)
            if at >= first
        ],
        "left": first,
        "rare": sum(sums[3].sum() for sums in verdict.bins) < RARE * sum(sums[0].sum() for sums in verdict.bins),
    }


def _bins(sums: np.ndarray[Any, Any]) -> list[list[float]]:
    """Of each bin with rows: its edges, mean score, mean outcome, and one standard error if the scores are right."""
    rows, score, square, outcome = sums
    return [
        [EDGES[at], EDGES[at + 1], score[at] / rows[at], outcome[at] / rows[at],
         math.sqrt(max(score[at] - square[at], 0.0)) / rows[at]]
        for at in np.flatnonzero(rows)
    ]  # fmt: skip
