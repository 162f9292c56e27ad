"""The tables of a study, each from its evidence alone; `all_tables` makes those that apply."""

from __future__ import annotations

from dataclasses import replace

from focalcal.lab.evidence.evidence import Evidence
from focalcal.lab.evidence.findings import study_families
from focalcal.lab.evidence.metric_names import SINGLE_LABEL
from focalcal.lab.report.study_tables.by_metric import best_counts, metric_means, shift_auroc
from focalcal.lab.report.study_tables.flags import flag_note
from focalcal.lab.report.study_tables.paired import comparison_table, verdict_table
from focalcal.lab.report.study_tables.scaled_metrics import temperature_distances, temperature_table
from focalcal.lab.report.study_tables.several_metrics import (
    common_split,
    finding_table,
    lam_sweep,
    overview,
    transformer_table,
)
from focalcal.pages.tables import CaptionedTable

__all__ = ["all_tables"]

_POSTERIOR = ("posterior_distance", "confidence_distance", "posterior_ece")


def all_tables(evidence: Evidence) -> dict[str, CaptionedTable]:
    """The tables of a study that there is something to show in. The candidate is compared with every other objective
    (`study_families`).

    Args:
        evidence: what the runs say, of `gather`.

    Returns:
        The tables by name, in reading order.

    >>> from tempfile import TemporaryDirectory
    >>> from focalcal import Predictions
    >>> from focalcal.lab.evidence.evidence import gather
    >>> from focalcal.lab.store import Store
    >>> test = Predictions(probs=[[0.8, 0.2], [0.3, 0.7]], labels=[0, 0], split="test")
    >>> with TemporaryDirectory() as folder:
    ...     runs = [Store(folder).record(name="mine", predictions=test, seed=seed) for seed in (0, 1)]
    ...     evidence = gather(runs, title="Two runs")
    ...     print(list(all_tables(evidence))[:3])
    ['overview', 'error', 'ece']
    """
    made: dict[str, CaptionedTable | None] = {"overview": overview(evidence)}
    made |= {name: metric_means(evidence, name) for name in (*SINGLE_LABEL, "confidence_gap", *_POSTERIOR)}
    made["best_counts"] = best_counts(evidence)
    made["temperature"] = temperature_table(evidence)
    made["temperature_distance"] = temperature_distances(evidence)
    families = study_families(evidence)
    for name, paired in (("verdicts", verdict_table), ("comparisons", comparison_table)):
        table = paired(families)
        made[name] = table and replace(table, note=table.note + flag_note(evidence))
    made["common_split"] = common_split(evidence)
    made["transformers"] = transformer_table(evidence)
    made["lam_sweep"] = lam_sweep(evidence)
    made["shift_auroc"] = shift_auroc(evidence)
    several = {setting: table for setting in evidence.settings if (table := finding_table(evidence, setting))}
    for setting, table in several.items():
        made["findings" if len(several) == 1 else f"findings_{setting.replace('/', '_')}"] = table
    return {name: table for name, table in made.items() if table is not None}
