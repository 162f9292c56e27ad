"""Tables of docs/results/regimes.md, from records/regimes-NAME.csv: finished runs at the chosen learning rates."""

from __future__ import annotations

import json
import math
import statistics
from typing import Any

from focalcal.pages.numbers import Rounded
from focalcal.pages.tables import Table
from focalcal.stats import sign_flip_test
from paper.regimes import BASELINE, STUDIES, Regime, chosen_rates
from paper.tasks.cells import OBJECTIVES, is_predicted
from paper.tasks.measure import UNIT
from paper.trials import Trials, _mean

Row = dict[str, Any]
REFINED = "cross-entropy, refined"
COLUMNS = {  # of a record: heading, factor, decimals
    "error": ("error %", 100, 1),
    "nll": ("NLL", 1, 3),
    "scaled_nll": ("NLL with T", 1, 3),
    "calibrated_nll": ("NLL calibrated", 1, 3),
    "debiased_ece": ("debiased ECE %", 100, 2),
    "temperature": ("T", 1, 2),
    "lam": ("lam", 1, 1),
}
SHIFTED = {
    "svhn_auroc": ("AUROC % on svhn", 100, 1),
    "cifar10c_auroc": ("AUROC % on cifar10c", 100, 1),
    "cifar10c_error": ("error % on cifar10c", 100, 1),
    "cifar10c_nll": ("NLL on cifar10c", 1, 3),
}
# Of questions 1 to 3 of the plan: the first minus the second, each with the column of its NLL.
COMPARISONS = (
    (("FCL", "nll"), ("FCL(3, 3)", "nll")),
    (("FCL", "scaled_nll"), ("FCL(3, 3)", "scaled_nll")),
    (("FCL", "nll"), (BASELINE, "scaled_nll")),
    (("FCL", "scaled_nll"), (BASELINE, "scaled_nll")),
    ((REFINED, "scaled_nll"), (BASELINE, "scaled_nll")),
    ((REFINED, "scaled_nll"), ("FCL", "scaled_nll")),
)


class RegimeTables:
    """The record of one regime."""

    def __init__(self, regime: Regime, rows: list[Row]) -> None:
        self.regime, self.rows = regime, rows
        self.cells: dict[str, dict[int, Row]] = {name: self._cells(name, "last") for name in OBJECTIVES}
        self.cells[REFINED] = self._cells(BASELINE, "refined")

    @classmethod
    def read(cls, name: str) -> RegimeTables:
        """Of paper/records."""
        return cls(Regime.read(name), list(Trials.read(f"regimes-{name}").rows))

    def _cells(self, name: str, rule: str) -> dict[int, Row]:
        """By seed; where the rule kept cross-entropy, its row. None before every learning rate was tried."""
        tried = {row["lr"] for row in self.rows if row["objective"] == name}
        rate = chosen_rates(self.rows, name).get(rule) if tried >= set(self.regime.rates) else None
        cells = {
            row["seed"]: row
            for row in self.rows
            if (row["objective"], row["lr"], row["rule"], row["failed"]) == (name, rate, rule, False)
        }
        if not is_predicted(name):
            return cells
        return {seed: row for seed, row in self._cells(BASELINE, "last").items() if row["lam"] == math.inf} | cells

    @property
    def about(self) -> str:
        """What was trained, where, and how much of the plan that is."""
        trained = [row for row in self.rows if row["rule"] == "last" and not row["failed"]]
        failed = sum(bool(row["failed"]) for row in self.rows)
        seeds = {name: len(cells) for name, cells in self.cells.items() if cells}
        least, most = min(seeds.values()), max(seeds.values())
        counts = f"{most} seed{'s' * (most > 1)}" if least == most else f"{least} to {most} seeds"
        hours = sum(row["seconds"] for row in trained) / 3600
        machines = sorted({f"{row['instructions']}, {row['precision']}, torch {row['torch']}" for row in trained})
        kept = sum(row["lam"] == math.inf for row in self.cells[BASELINE].values())
        missing = [name for name in OBJECTIVES if not self.cells[name]]
        told = [
            f"{len(trained)} run{'s' * (len(trained) > 1)}, {counts} of each objective of the {self.regime.seeds} that "
            f"are planned, {hours:.1f} hours of one thread of a shared processor, waiting included "
            f"({'; '.join(machines)}).",
            f"The rule kept cross-entropy for {kept} of {len(self.cells[BASELINE])} seeds." if kept else "",
            f"{failed} runs failed." if failed else "",
            f"Not trained yet, or not at every learning rate: {', '.join(missing)}." if missing else "",
        ]
        return " ".join(part for part in told if part)

    def means(self, shifted: bool = False) -> str:
        """One row per objective, its means over the seeds that it has."""
        cells = {name: list(of.values()) for name, of in self.cells.items() if of}
        columns = SHIFTED if shifted else COLUMNS
        shown: dict[str, list[Any]] = {"objective": list(cells), "seeds": [len(rows) for rows in cells.values()]}
        shown["learning rate"] = [f"{rows[0]['lr']:g}" for rows in cells.values()]
        for column, (title, factor, decimals) in columns.items():
            shown[title] = [
                _mean([factor * row[column] for row in rows if _number(row.get(column))], decimals)
                for rows in cells.values()
            ]
        return Table(shown).markdown()

    @property
    def has_shifts(self) -> bool:
        """Whether networks were tested on other images."""
        return any(_number(row.get("svhn_auroc")) for row in self.rows)

    @property
    def comparisons(self) -> str:
        """The planned ones, paired by seed; "" before there are any."""
        rows = []
        for (name, column), (other, column_of_other) in COMPARISONS:
            shared = sorted(self.cells[name].keys() & self.cells[other].keys())
            pairs = [(self.cells[name][seed], self.cells[other][seed]) for seed in shared]
            differences = [first[column] - second[column_of_other] for first, second in pairs]
            if not differences:
                continue
            enough = len(differences) > 1 and any(differences)
            rows.append(
                {
                    "first": name + " with T" * (column != "nll"),
                    "minus": other + " with T" * (column_of_other != "nll"),
                    "seeds": len(differences),
                    "difference of NLL": Rounded(statistics.fmean(differences), "+.4f"),
                    "test rows ±": Rounded(_row_error(pairs, column, column_of_other), ".4f"),
                    "p": Rounded(sign_flip_test(differences).p_value, ".3f") if enough else "-",
                }
            )
        return Table({name: [row[name] for row in rows] for name in rows[0]}).markdown() if rows else ""


def _number(value: Any) -> bool:
    return isinstance(value, int | float) and math.isfinite(value)


def _row_error(pairs: list[tuple[Row, Row]], column: str, other: str) -> float:
    """The standard error that test rows leave in the mean difference, from the bootstrap samples of each run."""
    samples = [
        [
            (ours - theirs) * UNIT * first["entropy"]
            for ours, theirs in zip(_samples(first, column), _samples(second, other), strict=True)
        ]
        for first, second in pairs
    ]
    means = [statistics.fmean(of_seeds) for of_seeds in zip(*samples, strict=True)]
    return statistics.stdev(means)


def _samples(row: Row, column: str) -> list[int]:
    values: list[int] = json.loads(row[column.replace("nll", "samples")])
    return values


def recorded_regimes() -> list[RegimeTables]:
    """Those that have a cross-entropy run at least."""
    found = [RegimeTables.read(path.stem) for path in sorted(STUDIES.glob("*.toml"))]
    return [tables for tables in found if tables.cells[BASELINE]]
