"""Records as evidence, and the tables, numbers and sentences that the pages of paper/pages ask for."""

from __future__ import annotations

import csv
import json
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from pyarrow import parquet

from focalcal.lab.evidence.comparisons import comparisons
from focalcal.lab.evidence.evidence import Evidence, RunEvidence
from focalcal.lab.evidence.labels import run_labels
from focalcal.lab.objectives import short_name
from focalcal.lab.report.study_tables.paired import comparison_table
from focalcal.lab.store import Spec
from focalcal.lab.training.recipes import operating_points
from focalcal.pages.numbers import Mean, Rounded, best
from focalcal.pages.tables import Table
from paper.claims.claims import judged_claims
from paper.claims.paper_runs import PaperRuns
from paper.claims.printed_numbers import paper_number
from paper.overhead.__main__ import overhead_text
from paper.overhead.measure import Overhead, Timing
from paper.record import RECORDS

# of a metric: the title, factor and decimals of its mean
SHOWN = {
    "error": ("error %", 100, 1),
    "ece": ("ECE %", 100, 2),
    "adaptive_ece": ("adaptive ECE %", 100, 2),
    "smooth_ece": ("smooth ECE %", 100, 2),
    "nll": ("NLL", 1, 3),
    "brier": ("Brier", 1, 3),
    "posterior_distance": ("to the truth", 1, 3),
    "q_distance": ("to its q*", 1, 3),
    "posterior_ece": ("exact ECE %", 100, 2),
    "temperature": ("T", 1, 2),
    "auroc": ("AUROC %", 100, 1),
}
_AFTER = {"test": "", "scaled": " with T", "recovered": " recovered", "recovered_scaled": " recovered, with T"}


@dataclass(frozen=True, eq=False)
class Records:
    """The records of one study. A setting is told from others by `setting_of`, which names a record's.

    Of a setting, seeds are read that all of its objectives have: means over other seeds are not comparable.
    """

    name: str
    lines: tuple[dict[str, Any], ...]
    setting_of: Callable[[dict[str, Any]], str]

    @classmethod
    def read(cls, name: str, setting_of: Callable[[dict[str, Any]], str] | None = None) -> Records:
        """Those of paper/records/NAME.jsonl."""
        text = (RECORDS / f"{name}.jsonl").read_text()
        lines = [json.loads(line) for line in text.splitlines()]
        setting_of = setting_of or data_and_model
        counts = Counter((setting_of(line), line["spec"]["seed"]) for line in lines)
        most = {setting: max(n for (other, _), n in counts.items() if other == setting) for setting, _ in counts}
        whole = {cell for cell, number in counts.items() if number == most[cell[0]]}
        kept = tuple(line for line in lines if (setting_of(line), line["spec"]["seed"]) in whole)
        return cls(name, kept, setting_of)

    @cached_property
    def evidence(self) -> Evidence:
        """For paired tests: what is measured after scaling is a split of its own."""
        labels = run_labels([Spec.from_dict(line["spec"]) for line in self.lines])
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
                    objective=labels[line["key"]].objective,
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

    def table(self, setting: str, *columns: str, paper: Sequence[str] = ()) -> str:
        """One row per objective, the best in bold, and beside them what the paper prints of the metrics in `paper`.

        A column is a metric, or `scaled:metric` for it after scaling.
        """
        names = [name for name in self.evidence.objectives if self.evidence.of(setting, name)]
        cells: dict[str, list[Any]] = {"objective": [short_name(name) for name in names]}
        bold: dict[str, list[bool]] = {}
        for column in columns:
            split, _, metric = column.rpartition(":")
            split = split or "test"
            title = SHOWN[metric][0] + _AFTER.get(split, f" on {split}")
            cells[title] = [self.mean(setting, name, metric, split) for name in names]
            if metric not in ("temperature", "auroc"):
                bold[title] = best(cells[title])
        place = self.evidence.of(setting, names[0])[0].spec
        for metric in paper:
            printed = [paper_number(f"{place['data_set']}/{place['model']}", name.split()[0], metric) for name in names]
            cells[f"paper's {SHOWN[metric][0]}"] = [None if number is None else number.value for number in printed]
        return Table(cells, bold=bold).markdown()

    def by_epoch(self, setting: str, metric: str) -> str:
        """One row per objective, one column per epoch after which test rows were evaluated: means over the seeds."""
        title, factor, decimals = SHOWN[metric]
        names = [name for name in self.evidence.objectives if self.evidence.of(setting, name)]
        cells: dict[str, list[Any]] = {"objective": [short_name(name) for name in names]}
        for epoch in self.lines[0]["test_by_epoch"]:
            cells[f"{title}, epoch {epoch}"] = [
                Mean(
                    [factor * run.record["test_by_epoch"][epoch][metric] for run in self.evidence.of(setting, name)],
                    decimals=decimals,
                )
                for name in names
            ]
        return Table(cells).markdown()

    def tests(self, candidate: str, baselines: Sequence[str], *metrics: str, split: str = "test") -> str:
        """Paired tests of the candidate against baselines, setting by setting."""
        families = comparisons(self.evidence, candidate, list(baselines), metrics=metrics, split=split)
        made = comparison_table([family for family in families if family.comparisons])
        return "" if made is None else f"{made.table.markdown()}\n{made.note}\n"

    def seeds(self, setting: str | None = None) -> str:
        """How many there are, `3 seeds`; by default in any setting."""
        found = {line["spec"]["seed"] for line in self.lines if setting in (None, self.setting_of(line))}
        return f"{len(found)} seed{'s' * (len(found) > 1)}"

    @property
    def about(self) -> str:
        """On what, with what and for how long."""
        hours = sum(line["seconds"] for line in self.lines) / 3600
        machines = sorted({f"{line['machine']['instructions']}" for line in self.lines})
        torches = sorted({line["software"]["torch"] for line in self.lines})
        return (
            f"{len(self.lines):,} runs, {self.seeds()}, {hours:.1f} hours of one thread of "
            f"a shared processor with {' and '.join(machines)}, torch {', '.join(torches)}."
        )


def surface_corners(records: Records) -> str:
    """One row per setting and scale: the lowest test NLL of a surface, and that of points one would try first."""
    rows: list[dict[str, Any]] = []
    for setting in records.evidence.settings:
        for scale in ("paper", "matched"):
            cells = {
                (options["gamma"], options["lam"]): line["metrics"]["test"]["nll"]
                for line in records.lines
                for options in (line["spec"]["objective_options"],)
                if records.setting_of(line) == setting and scale_of(line) == scale
            }
            gamma, lam = min(cells, key=lambda cell: cells[cell])
            named = {
                "cross-entropy": (0, 0),
                "focal loss, gamma 3": (3, 0),
                "FCL(3, 1)": (3, 1),
                "FCL(5, 0.1)": (5, 0.1),
            }
            rows.append(
                {"setting": setting, "scale": scale, "lowest at gamma, lam": f"{gamma:g}, {lam:g}"}
                | {"lowest": Rounded(cells[gamma, lam], ".3f")}
                | {name: Rounded(cells[cell], ".3f") for name, cell in named.items()}
            )
    return Table({name: [row[name] for row in rows] for name in rows[0]}).markdown()


def paper_claims() -> str:
    """One row per claim of the paper that a shipped study can judge: its verdict in all records, and the numbers."""
    named = [path.stem for path in sorted(RECORDS.glob("*.jsonl")) if path.stem != "audits"]
    runs = [run for name in named for run in Records.read(name).evidence.runs]
    judged = judged_claims(PaperRuns(Evidence("records", tuple(runs)), operating_points()))
    columns: dict[str, list[str]] = {
        "claim": [one.claim.says for one in judged],
        "where": [one.claim.section for one in judged],
        "verdict": [one.verdict for one in judged],
        "the paper's numbers": [
            "; ".join(f"{part.part.what}: {part.part.printed}" for part in one.parts) for one in judged
        ],
        "ours": ["; ".join(str(part.answer or "not run") for part in one.parts) for one in judged],
        "command": [f"focalcal study paper/studies/{one.claim.study}.toml" for one in judged],
    }
    if not any(part.answer for one in judged for part in one.parts):
        del columns["ours"]
    return Table(columns).markdown()


def scale_of(line: dict[str, Any]) -> str:
    """That of FCL: `paper` or `matched`."""
    return str(line["spec"]["objective_options"].get("scale", "paper"))


def data_and_model(line: dict[str, Any]) -> str:
    """`digits/small_cnn`."""
    return f"{line['spec']['data_set']}/{line['spec']['model']}"


def exponents(records: Records, objective: str, metric: str = "q_distance") -> str:
    """Of the number of training rows, between each size and the next: how fast the mean of a distance falls there."""
    points = {}
    for line in records.lines:
        mean = records.mean(by_training_rows(line), objective, metric)
        if mean is not None:
            points[training_rows(line)] = float(mean)
    sizes = sorted(points)
    slopes = np.diff(np.log([points[size] for size in sizes])) / np.diff(np.log(sizes))
    return ", ".join(f"{slope:.2f}" for slope in slopes)


def with_tags(line: dict[str, Any]) -> str:
    """`FinSen, tags removed`: whether the tags that give its labels away were."""
    removed = line["spec"]["training"]["data_options"].get("strip_tags")
    name = {"newsgroups_19997": "20 Newsgroups", "finsen": "FinSen"}[line["spec"]["data_set"]]
    return name + {None: "", True: ", tags removed", False: ", as it is"}[removed]


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


def overhead_tables() -> str:
    """The tables of `python -m paper.overhead`, from what its --json printed."""
    found = json.loads((RECORDS / "overhead.json").read_text())
    timings = {part: tuple(Timing(**timing) for timing in found[part]) for part in ("loss", "step")}
    known = {field.name: found[field.name] for field in fields(Overhead)}
    return overhead_text(Overhead(**known | timings))


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
