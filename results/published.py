"""Records as evidence, and the tables, numbers and sentences that the pages of results/pages ask for."""

from __future__ import annotations

import csv
import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from pyarrow import parquet

from focalcal.analysis.comparisons import comparisons
from focalcal.analysis.evidence import Evidence, RunEvidence
from focalcal.analysis.labels import objective_labels
from focalcal.analysis.numbers import Mean, best
from focalcal.reports.objectives import short_name
from focalcal.reports.study_tables.paired import comparison_table
from focalcal.reports.tables import Table
from focalcal.results import Spec

RECORDS = Path(__file__).parent / "records"
# of a metric: the title, factor and decimals of its mean
SHOWN = {
    "error": ("error %", 100, 1),
    "ece": ("ECE %", 100, 2),
    "adaptive_ece": ("adaptive ECE %", 100, 2),
    "smooth_ece": ("smooth ECE %", 100, 2),
    "nll": ("NLL", 1, 3),
    "brier": ("Brier", 1, 3),
    "posterior_distance": ("distance to the posterior", 1, 3),
    "q_distance": ("distance to its own q*", 1, 3),
    "temperature": ("T", 1, 2),
    "auroc": ("AUROC %", 100, 1),
}
_AFTER = {"test": "", "scaled": " with T", "recovered": " recovered", "recovered_scaled": " recovered, with T"}


@dataclass(frozen=True, eq=False)
class Records:
    """The records of one study. A setting is told from others by `setting_of`, which names a record's."""

    name: str
    lines: tuple[dict[str, Any], ...]
    setting_of: Callable[[dict[str, Any]], str]

    @classmethod
    def read(cls, name: str, setting_of: Callable[[dict[str, Any]], str] | None = None) -> Records:
        """Those of results/records/NAME.jsonl."""
        text = (RECORDS / f"{name}.jsonl").read_text()
        lines = tuple(json.loads(line) for line in text.splitlines())
        return cls(name, lines, setting_of or data_and_model)

    @cached_property
    def evidence(self) -> Evidence:
        """For paired tests: what is measured after scaling is a split of its own."""
        labels = objective_labels([Spec.from_dict(line["spec"]) for line in self.lines])
        runs = []
        for line in self.lines:
            spec = line["spec"]
            metrics = dict(line["metrics"])
            metrics |= {split: line[split] for split in _AFTER if split in line}
            metrics["test"] = metrics["test"] | {
                name: line[name] for name in ("temperature", "q_distance") if line.get(name) is not None
            }
            runs.append(
                RunEvidence(
                    key=line["key"],
                    setting=self.setting_of(line),
                    objective=labels[line["key"]].partition(" #")[0],
                    options=spec["objective_options"],
                    seed=spec["seed"],
                    spec=spec,
                    record=line,
                    metrics=metrics,
                    epochs=[],
                    reliability=None,
                    scaled=None,
                )
            )
        return Evidence(self.name, tuple(runs))

    def mean(self, setting: str, objective: str, metric: str, split: str = "test") -> Mean | None:
        """Over the seeds that have the metric; None without one."""
        _, factor, decimals = SHOWN[metric]
        values = self.evidence.values(setting, metric, split=split).get(objective, {})
        return Mean([factor * value for value in values.values()], decimals=decimals) if values else None

    def table(self, setting: str, *columns: str, among: Sequence[str] | None = None) -> str:
        """One row per objective; a column is a metric, or `scaled:metric` for it after scaling; the best in bold."""
        names = [name for name in self.evidence.objectives if self.evidence.of(setting, name)]
        names = [name for name in names if among is None or name in among]
        cells: dict[str, list[Any]] = {"objective": [short_name(name) for name in names]}
        bold: dict[str, list[bool]] = {}
        for column in columns:
            split, _, metric = column.rpartition(":")
            split = split or "test"
            title = SHOWN[metric][0] + _AFTER.get(split, f" on {split}")
            cells[title] = [self.mean(setting, name, metric, split) for name in names]
            if metric not in ("temperature", "auroc"):
                bold[title] = best(cells[title])
        return Table(cells, bold=bold).markdown()

    def tests(self, candidate: str, baselines: Sequence[str], *metrics: str, split: str = "test") -> str:
        """Paired tests of the candidate against baselines, setting by setting."""
        families = comparisons(self.evidence, candidate, list(baselines), metrics=metrics, split=split)
        made = comparison_table([family for family in families if family.comparisons])
        return "" if made is None else f"{made.table.markdown()}\n{made.note}\n"

    @property
    def about(self) -> str:
        """On what, with what and for how long."""
        hours = sum(line["seconds"] for line in self.lines) / 3600
        machines = sorted({f"{line['machine']['instructions']}" for line in self.lines})
        torches = sorted({line["software"]["torch"] for line in self.lines})
        seeds = sorted({line["spec"]["seed"] for line in self.lines})
        return (
            f"{len(self.lines):,} runs, {len(seeds)} seed{'s' * (len(seeds) > 1)}, {hours:.1f} hours of one thread of "
            f"a processor with {' and '.join(machines)}, torch {', '.join(torches)}."
        )


def data_and_model(line: dict[str, Any]) -> str:
    """`digits/small_cnn`."""
    return f"{line['spec']['data_set']}/{line['spec']['model']}"


def by_training_rows(line: dict[str, Any]) -> str:
    """`gaussian_mixture, 500 rows`."""
    return f"{line['spec']['data_set']}, {training_rows(line):,} rows"


def training_rows(line: dict[str, Any]) -> int:
    """How many there were."""
    spec = line["spec"]
    sizes = spec["training"]["data_options"].get("sizes")
    if spec["protocol"]["train_examples"]:
        return int(spec["protocol"]["train_examples"])
    return int(sizes[0]) if sizes else 1077  # the digits that are neither validation nor test


def theory_figures() -> dict[str, dict[str, str]]:
    """The paper's figures and ours, by what they are, from the theory study's own table."""
    path = Path(__file__).parent.parent / "docs" / "results" / "theory" / "paper.csv"
    with path.open(newline="") as file:
        return {row["figure"]: row for row in csv.DictReader(file)}


def decisions_kept() -> str:
    """In how many exact solutions of the theory study the most probable class is the posterior's."""
    path = Path(__file__).parent.parent / "docs" / "results" / "theory" / "records.parquet"
    rows = parquet.read_table(path, columns=["eta", "q"]).to_pylist()
    kept = sum(row["q"].index(max(row["q"])) == row["eta"].index(max(row["eta"])) for row in rows)
    return f"{kept} of {len(rows)}"
