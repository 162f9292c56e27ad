"""Tables of trials that shipped commands write as CSV: the cells of the operating-point study, and comparisons."""

from __future__ import annotations

import csv
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields
from typing import Any

from focalcal.pages.numbers import Mean, Rounded, best
from focalcal.pages.tables import Table
from focalcal.stats import compare
from paper.operating_point.trial import TOLERANCE, Role, Trial, TrialVerdict, verdict
from paper.published import SHOWN
from paper.record import RECORDS

_SHOWN = {"lam": ("lam", 1, 2), "miss": ("\\|log T\\|", 1, 3), "scaled_nll": ("NLL with T", 1, 3), **SHOWN}


@dataclass(frozen=True)
class Trials:
    """One row per run: texts and numbers by column."""

    rows: tuple[dict[str, Any], ...]

    @classmethod
    def read(cls, *names: str) -> Trials:
        """Those of paper/records/NAME.csv, one below the other, of the files that are there."""
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
        mean = _mean([factor * row[column] for row in self.where(**equal).rows], decimals)
        return "-" if mean is None else mean.text

    def largest(self, column: str, **equal: Any) -> str:
        """The largest value of a column in the rows with these values, as a table shows it."""
        _, factor, decimals = _SHOWN[column]
        return f"{max(factor * row[column] for row in self.where(**equal).rows):.{decimals}f}"

    def near(self, **equal: Any) -> str:
        """How many runs with these values need no temperature: `46 of 49`."""
        misses = [row["miss"] for row in self.where(**equal).rows]
        return f"{sum(miss <= TOLERANCE for miss in misses)} of {len(misses)}"

    @property
    def seeds(self) -> int:
        """How many there are."""
        return len({row["seed"] for row in self.rows})

    @property
    def verdict(self) -> TrialVerdict:
        """How often the rule of the operating point held."""
        names = [field.name for field in fields(Trial)]
        rows = [{name: row.get(name, math.nan) for name in names} for row in self.rows]
        return verdict(Trial(**row | {"role": Role(row["role"])}) for row in rows)


def _value(text: str) -> Any:
    if text in ("True", "False"):
        return text == "True"
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    return text


def _mean(values: list[float], decimals: int) -> Mean | None:
    finite = [value for value in values if math.isfinite(value)]
    return Mean(finite, decimals=decimals) if finite else None


def recorded_tasks(kind: str) -> list[str]:
    """Of paper/records/KIND-TASK.csv."""
    return [path.stem.removeprefix(f"{kind}-") for path in sorted(RECORDS.glob(f"{kind}-*.csv"))]


def across(column: str, names: Sequence[str]) -> str:
    """One row per method and use, one column per comparison of paper/records: means over the seeds, best in bold."""
    by_name = {name: _groups(Trials.read(f"equal-access-{name}")) for name in names}
    keys = list(dict.fromkeys(key for groups in by_name.values() for key in groups))
    title, factor, decimals = _SHOWN[column]
    shown: dict[str, list[Any]] = {"method": [key[0] for key in keys], "used": [key[1] for key in keys]}
    bold = {}
    for name, groups in by_name.items():
        heading = f"{title}, {name}"
        shown[heading] = [
            _mean([factor * row[column] for row in groups[key]], decimals) if key in groups else None for key in keys
        ]
        bold[heading] = best(shown[heading])
    return Table(shown, bold=bold).markdown()


def paired(trials: Trials, baseline: str, used: str) -> str:
    """Every other method against one of them."""
    values = seeds_of(trials)
    others = [key for key in values if key != (baseline, used)]
    rows = [{"method": key[0], "used": key[1]} | _tested(values[key], values[baseline, used]) for key in others]
    note = f"Difference: the method minus {baseline} {used}, paired by seed; exact sign-flip test, Holm's correction."
    return f"{_rows_table(rows)}\n{note}"


def contest(key: tuple[str, str], baselines: Sequence[tuple[str, str]], *kinds: str) -> str:
    """One method against others, task by task of paper/records/KIND-TASK.csv, the seeds of all kinds together."""
    rows = []
    for name in recorded_tasks(kinds[0]):
        trials = Trials.read(*(f"{kind}-{name}" for kind in kinds))
        values = seeds_of(trials)
        rows += [
            {"task": name, "seeds": trials.seeds, "against": " ".join(other)} | _tested(values[key], values[other])
            for other in baselines
        ]
    return _rows_table(rows)


def won(key: tuple[str, str], baselines: Sequence[tuple[str, str]], *kinds: str) -> list[str]:
    """The tasks in which one method has a lower NLL and a lower ECE than each of the others, beyond chance."""
    return [
        name
        for name in recorded_tasks(kinds[0])
        for values in (seeds_of(Trials.read(*(f"{kind}-{name}" for kind in kinds))),)
        if all(
            test.verdict == "better"
            for other in baselines
            for test in compare(values[key], values[other], metrics=("nll", "ece"))
        )
    ]


def largest_p(key: tuple[str, str], baselines: Sequence[tuple[str, str]], *kinds: str, tasks: Sequence[str]) -> float:
    """Of the tests of NLL and ECE against each of the others on these tasks."""
    return max(
        test.p_adjusted
        for name in tasks
        for values in (seeds_of(Trials.read(*(f"{kind}-{name}" for kind in kinds))),)
        for other in baselines
        for test in compare(values[key], values[other], metrics=("nll", "ece"))
    )


def recipe_of_tasks(loss: str) -> list[str]:
    """The tasks on which the recipe kept this loss."""
    return [
        task
        for task in recorded_tasks("equal-access")
        if Trials.read(f"equal-access-{task}").where(method="recipe").rows[0]["choice"].startswith(f"{loss}(")
    ]


def difference(metric: str, key: tuple[str, str], other: tuple[str, str], task: str) -> str:
    """The mean of one method minus that of another, paired by seed over all seeds of a task, in points for ECE."""
    values = seeds_of(Trials.read(f"equal-access-{task}", f"confirmation-{task}"))
    [test] = compare(values[key], values[other], metrics=(metric,))
    _, factor, decimals = SHOWN[metric]
    return f"{factor * test.interval.mean:+.{decimals}f}"


def _tested(found: dict[str, dict[int, float]], reference: dict[str, dict[int, float]]) -> dict[str, Any]:
    """Differences of NLL and ECE, paired by seed, with p-values that are corrected for there being two."""
    cells: dict[str, Any] = {}
    for test in compare(found, reference, metrics=("nll", "ece")):
        title, factor, _ = SHOWN[test.metric]
        cells[f"{title} difference"] = Rounded(factor * test.interval.mean, "+.4f" if factor == 1 else "+.2f")
        p = test.p_adjusted
        cells[f"p of {title.split()[0]}"] = Rounded(p, ".4f") if p >= 0.0001 else "< 0.0001"
        cells[f"{title.split()[0]}"] = test.verdict if test.reachable else "cannot show"
    return cells


def _rows_table(rows: Sequence[dict[str, Any]]) -> str:
    return Table({name: [row[name] for row in rows] for name in rows[0]}).markdown()


def _groups(trials: Trials) -> dict[tuple[str, str], list[dict[str, Any]]]:
    groups: dict[tuple[str, str], list[dict[str, Any]]] = {}
    for row in trials.rows:
        groups.setdefault((row["method"], row["used"]), []).append(row)
    return groups


def seeds_of(trials: Trials) -> dict[tuple[str, str], dict[str, dict[int, float]]]:
    """NLL and ECE by seed, of each method and use."""
    return {
        key: {metric: {int(row["seed"]): row[metric] for row in rows} for metric in ("nll", "ece")}
        for key, rows in _groups(trials).items()
    }
