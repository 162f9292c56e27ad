"""Tables of trials that shipped commands write as CSV: the cells of the operating-point study, and comparisons."""

from __future__ import annotations

import csv
import math
from collections.abc import Callable
from dataclasses import dataclass, fields
from typing import Any

from published import SHOWN
from record import RECORDS

from focalcal.analysis.numbers import Mean, Rounded
from focalcal.experiments.operating_point_trial import Role, Trial, Verdict, verdict
from focalcal.reports.tables import Table
from focalcal.stats import compare

_SHOWN = {"lam": ("lam", 1, 2), "miss": ("\\|log T\\|", 1, 3), "scaled_nll": ("NLL with T", 1, 3), **SHOWN}


@dataclass(frozen=True)
class Trials:
    """One row per run: texts and numbers by column."""

    rows: tuple[dict[str, Any], ...]

    @classmethod
    def read(cls, *names: str) -> Trials:
        """Those of results/records/NAME.csv, one below the other, of the files that are there."""
        rows: list[dict[str, Any]] = []
        for name in names:
            path = RECORDS / f"{name}.csv"
            if path.exists():
                with path.open(newline="") as file:
                    rows += [{key: _value(text) for key, text in row.items()} for row in csv.DictReader(file)]
        return cls(tuple(rows))

    def where(self, keep: Callable[[dict[str, Any]], bool] | None = None, **equal: Any) -> Trials:
        """The rows that have these values."""
        kept = [row for row in self.rows if all(row[name] == value for name, value in equal.items())]
        return Trials(tuple(row for row in kept if keep is None or keep(row)))

    def table(self, by: list[str], *columns: str) -> str:
        """One row per combination of `by`, those with the same first one together: means over the seeds."""
        groups: dict[tuple[Any, ...], list[dict[str, Any]]] = {}
        first = list(dict.fromkeys(row[by[0]] for row in self.rows))
        for row in sorted(self.rows, key=lambda row: first.index(row[by[0]])):
            groups.setdefault(tuple(row[name] for name in by), []).append(row)
        shown: dict[str, Any] = {name: [key[at] for key in groups] for at, name in enumerate(by)}
        for column in columns:
            title, factor, decimals = _SHOWN[column]
            shown[title.replace("\\", "")] = [
                _mean([factor * row[column] for row in group], decimals) for group in groups.values()
            ]
        return Table(shown).markdown()

    def mean(self, column: str, **equal: Any) -> str:
        """The mean and deviation of a column over the rows with these values, as a table shows it."""
        _, factor, decimals = _SHOWN[column]
        return Mean([factor * row[column] for row in self.where(**equal).rows], decimals=decimals).text

    @property
    def seeds(self) -> int:
        """How many there are."""
        return len({row["seed"] for row in self.rows})

    @property
    def verdict(self) -> Verdict:
        """How often the rule of the operating point held."""
        names = [field.name for field in fields(Trial)]
        rows = [{name: row[name] for name in names} for row in self.rows]
        return verdict(Trial(**row | {"role": Role(row["role"])}) for row in rows)


def _value(text: str) -> Any:
    if text in ("True", "False"):
        return text == "True"
    try:
        return float(text)
    except ValueError:
        return text


def _mean(values: list[float], decimals: int) -> Mean | None:
    finite = [value for value in values if math.isfinite(value)]
    return Mean(finite, decimals=decimals) if finite else None


def paired(trials: Trials, baseline: str, used: str) -> str:
    """Every other method against one of them, paired by seed: NLL and ECE, Holm's correction over the two."""
    values = {key: _by_seed(rows) for key, rows in _groups(trials).items()}
    reference = values[baseline, used]
    columns: dict[str, list[Any]] = {
        "method": [],
        "used": [],
        "metric": [],
        "difference": [],
        "p (Holm)": [],
        "verdict": [],
    }
    for (method, how), found in values.items():
        if (method, how) == (baseline, used):
            continue
        for test in compare(found, reference, metrics=("nll", "ece")):
            columns["method"].append(method)
            columns["used"].append(how)
            columns["metric"].append(SHOWN[test.metric][0])
            columns["difference"].append(Rounded(SHOWN[test.metric][1] * test.interval.mean, "+.4f"))
            columns["p (Holm)"].append(Rounded(test.p_adjusted, ".4f"))
            columns["verdict"].append(test.verdict if test.reachable else "cannot show")
    note = f"Difference: the method minus {baseline} {used}, paired by seed; exact sign-flip test."
    return f"{Table(columns).markdown()}\n{note}"


def _groups(trials: Trials) -> dict[tuple[str, str], list[dict[str, Any]]]:
    groups: dict[tuple[str, str], list[dict[str, Any]]] = {}
    for row in trials.rows:
        groups.setdefault((row["method"], row["used"]), []).append(row)
    return groups


def _by_seed(rows: list[dict[str, Any]]) -> dict[str, dict[int, float]]:
    return {metric: {int(row["seed"]): row[metric] for row in rows} for metric in ("nll", "ece")}
