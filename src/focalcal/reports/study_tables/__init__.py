"""The tables of a study, each from its evidence alone; `all_tables` makes those that apply."""

from __future__ import annotations

from dataclasses import replace

from focalcal.analysis.comparisons import comparisons, usual_candidate
from focalcal.analysis.evidence import Evidence
from focalcal.analysis.numbers import SINGLE_LABEL
from focalcal.reports.study_tables.by_metric import best_counts, metric_table, shift_auroc
from focalcal.reports.study_tables.findings import findings
from focalcal.reports.study_tables.flags import flag_note
from focalcal.reports.study_tables.paired import comparison_table, verdict_table
from focalcal.reports.study_tables.several_metrics import common_split, lam_sweep, overview, transformers
from focalcal.reports.study_tables.temperature import temperature, temperature_distance
from focalcal.reports.tables import CaptionedTable

__all__ = ["all_tables"]

_POSTERIOR = ("posterior_distance", "confidence_distance", "posterior_ece")


def all_tables(evidence: Evidence, *, candidate: str | None = None, alpha: float = 0.05) -> dict[str, CaptionedTable]:
    """By name, in reading order, those that there is something to show in.

    `candidate` is compared with every other objective; by default FCL, where it is one objective and not a sweep.
    """
    found: dict[str, CaptionedTable | None] = {"overview": overview(evidence)}
    found |= {name: metric_table(evidence, name) for name in (*SINGLE_LABEL, "confidence_gap", *_POSTERIOR)}
    found["best_counts"] = best_counts(evidence)
    found["temperature"] = temperature(evidence)
    found["temperature_distance"] = temperature_distance(evidence)
    chosen = candidate or usual_candidate(evidence)
    if chosen is not None:
        families = comparisons(evidence, chosen, alpha=alpha)
        for name, made in (("verdicts", verdict_table), ("comparisons", comparison_table)):
            table = made(families, alpha=alpha)
            found[name] = table and replace(table, note=table.note + flag_note(evidence))
    found["common_split"] = common_split(evidence)
    found["transformers"] = transformers(evidence)
    found["lam_sweep"] = lam_sweep(evidence)
    found["shift_auroc"] = shift_auroc(evidence)
    several = [setting for setting in evidence.settings if findings(evidence, setting)]
    for setting in several:
        name = "findings" if len(several) == 1 else f"findings_{setting.replace('/', '_')}"
        found[name] = findings(evidence, setting)
    return {name: table for name, table in found.items() if table is not None}
