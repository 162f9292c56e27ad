"""Paired comparisons: every test of every family, and how many are better, worse and indistinguishable."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from focalcal.analysis.comparisons import Family, counts
from focalcal.analysis.metric_names import PERCENT, shown, title, titled
from focalcal.analysis.numbers import Rounded
from focalcal.reports.comparison_text import limits_of_comparisons
from focalcal.reports.study_tables.captioned import CaptionedTable
from focalcal.reports.tables import Table
from focalcal.stats import VERDICTS

CANNOT_SHOW = "cannot show"


def comparison_table(families: Sequence[Family], *, alpha: float = 0.05) -> CaptionedTable | None:
    """A row a test; significant ones in bold. None without a test."""
    rows = [(family, one) for family in families for one in family.comparisons]
    if not rows:
        return None
    candidate = rows[0][0].candidate
    columns: dict[str, list[Any]] = {
        "setting": [family.setting for family, _ in rows],
        "baseline": [family.baseline for family, _ in rows],
        "metric": [titled(one.metric) for _, one in rows],
        "n": [one.test.n for _, one in rows],
        "difference": [_signed(one.metric, one.test.mean) for _, one in rows],
        "low": [_signed(one.metric, one.interval.low) for _, one in rows],
        "high": [_signed(one.metric, one.interval.high) for _, one in rows],
        "d_z": [Rounded(one.effect, ".2f") for _, one in rows],
        "p": [_p(one.test.p_value) for _, one in rows],
        "p_holm": [_p(one.p_adjusted) for _, one in rows],
        "verdict": [one.verdict if one.reachable else CANNOT_SHOW for _, one in rows],
    }
    level = f"{rows[0][1].interval.level:.0%}"
    headings = {"low": f"{level} from", "high": "to", "p_holm": "p (Holm)"}
    bold = {"verdict": [one.verdict != "indistinguishable" for _, one in rows]}
    told = limits_of_comparisons(families, alpha)
    small = any(one.test.n < 10 for _, one in rows)
    exact = "exact " * all(one.test.method == "enumerated" for _, one in rows)
    note = (
        f"Difference: {candidate} minus baseline, paired by seed; {exact}sign-flip test, two-sided; Holm's correction "
        f"over the metrics of each setting and baseline; alpha = {alpha:g}."
        + " The interval is the paired bootstrap's (BCa)"
        + ", which is too short with so few seeds: decide by the test." * small
        + "." * (not small)
        + "".join(f" {sentence}." for sentence in told)
    )
    return CaptionedTable(f"{candidate} against each baseline", Table(columns, headings=headings, bold=bold), note)


def verdict_table(families: Sequence[Family], *, alpha: float = 0.05) -> CaptionedTable | None:
    """A row a setting, and the total: counts of verdicts, and of tests that could not have been significant."""
    tested = [family for family in families if family.comparisons]
    if not tested:
        return None
    settings = list(dict.fromkeys(family.setting for family in tested))
    groups = {setting: [family for family in tested if family.setting == setting] for setting in settings}
    if len(settings) > 1:
        groups["all settings"] = tested
    columns: dict[str, list[Any]] = {"setting": list(groups)}
    columns |= {verdict: [counts(group)[verdict] for group in groups.values()] for verdict in VERDICTS}
    out_of_reach = [sum(not one.reachable for one in _tests(group)) for group in groups.values()]
    columns["cannot"] = out_of_reach
    columns["tests"] = [len(_tests(group)) for group in groups.values()]
    metrics = ", ".join(dict.fromkeys(title(one.metric) for one in _tests(tested)))
    return CaptionedTable(
        f"How often {tested[0].candidate} is better, worse and indistinguishable",
        Table(columns, headings={"cannot": "of these: cannot show"}),
        f"{metrics}; alpha = {alpha:g} after Holm's correction within each setting and baseline. "
        "Indistinguishable is not equal; a test that cannot show a difference has too few seeds to be significant "
        "whatever it finds.",
    )


def _tests(families: Sequence[Family]) -> list[Any]:
    return [one for family in families for one in family.comparisons]


def _signed(metric: str, value: float) -> Rounded:
    return Rounded(shown(metric, value), f"+.{3 if metric in PERCENT else 4}f")


def _p(value: float) -> Rounded:
    return Rounded(value, ".4f" if value >= 1e-4 else ".1e")
