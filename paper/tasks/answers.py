"""What the records of the tasks say: the comparisons of paper/plan.md, their intervals, and its verdicts."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from focalcal.core.rng import numpy_stream
from focalcal.pages.numbers import Rounded
from focalcal.pages.tables import Table
from focalcal.stats import sign_flip_test
from focalcal.stats.differences import holm
from paper.record import RECORDS
from paper.tasks.cells import LENGTHS, OBJECTIVES, SEEDS, TASKS
from paper.tasks.measure import SAMPLES, UNIT
from paper.tasks.records import read_rows

DRAWS = 10_000
MARGIN = 0.25  # points of the labels' entropy: a difference that would matter
PRELIMINARY = (20, 3)  # tasks and seeds, below which an answer is called so
Cell = tuple[str, str, str]  # objective, rule, and "", "scaled_" or "calibrated_"
_CE, _FCL = ("cross-entropy", "last", "scaled_"), ("FCL", "last", "scaled_")
_REFINED = ("refined", "refined", "scaled_")
_OTHERS = [name for name in OBJECTIVES if name != "cross-entropy"]
FAMILIES: dict[str, dict[str, tuple[str, Cell, Cell]]] = {
    "1 to 3": {
        "predicted - constant, as they are": ("1", ("FCL", "last", ""), ("FCL(3, 3)", "last", "")),
        "predicted - constant, both with T": ("1", _FCL, ("FCL(3, 3)", "last", "scaled_")),
        "predicted as it is - cross-entropy with T": ("2", ("FCL", "last", ""), _CE),
        "predicted - cross-entropy, both with T": ("2", _FCL, _CE),
        "refined - last epoch, both with T": ("3", _REFINED, _CE),
        "refined cross-entropy - predicted, both with T": ("3", _REFINED, _FCL),
    },
    "4": {
        f"{name}: refined - {rule}": ("4", (name, "refined", "scaled_"), (name, rule, "scaled_"))
        for name in ("cross-entropy", "label smoothing", "FCL")
        for rule in ("last", "nll", "error")
    },
    "5": {
        f"{name} - cross-entropy, calibrated": (
            "5",
            (name, "last", "calibrated_"),
            ("cross-entropy", "last", "calibrated_"),
        )
        for name in _OTHERS
    },
}


@dataclass(frozen=True, eq=False)
class Answer:
    """One comparison over tasks, in points of the labels' entropy; below zero the first is better."""

    question: str
    name: str
    by_task: dict[str, float]
    seeds: int
    low: float
    high: float
    p: float
    missing: int
    adjusted: float = math.nan

    @property
    def difference(self) -> float:
        """The mean over tasks."""
        return float(np.mean(list(self.by_task.values())))

    @property
    def verdict(self) -> str:
        """By the plan's rule."""
        if self.adjusted < 0.05:
            said = "yes" if self.difference < 0 else "no"
        else:
            said = "no difference" if self.low > -MARGIN and self.high < MARGIN else "cannot tell"
        early = len(self.by_task) < PRELIMINARY[0] or self.seeds < PRELIMINARY[1]
        return f"{said} (preliminary)" if early else said


@dataclass(frozen=True, eq=False)
class TaskRecords:
    """All rows of paper/records/tasks.parquet, by what they are."""

    rows: dict[tuple[str, str, int, str, str], dict[str, Any]]

    @classmethod
    @cache
    def read(cls) -> TaskRecords:
        """As they are on disk."""
        rows = read_rows(RECORDS / "tasks.parquet")
        return cls({(row["task"], row["length"], row["seed"], row["objective"], row["rule"]): row for row in rows})

    @property
    def units(self) -> list[tuple[str, str, int]]:
        """The tasks, lengths and seeds that are finished."""
        return list(dict.fromkeys(key[:3] for key in self.rows))

    def differences(
        self, first: Cell, second: Cell, lengths: Sequence[str] = LENGTHS
    ) -> tuple[dict[str, list[tuple[float, NDArray[np.float64]]]], int]:
        """By task, of each seed the means over the lengths, of all rows and of each sample; how many lack a cell."""
        found: dict[str, dict[int, list[tuple[float, NDArray[np.float64]]]]] = {}
        missing = 0
        for task, length, seed in self.units:
            if length not in lengths:
                continue
            rows = [self.rows.get((task, length, seed, *cell[:2])) for cell in (first, second)]
            one, other = (_loss(row, cell[2]) for row, cell in zip(rows, (first, second), strict=True))
            if one is None or other is None:
                missing += 1
                continue
            found.setdefault(task, {}).setdefault(seed, []).append((one[0] - other[0], one[1] - other[1]))
        return {
            task: [
                (float(np.mean([d for d, _ in each])), np.mean([s for _, s in each], axis=0)) for each in by.values()
            ]
            for task, by in found.items()
        }, missing

    def answer(self, question: str, name: str, first: Cell, second: Cell, lengths: Sequence[str] = LENGTHS) -> Answer:
        """The comparison, with the interval of the hierarchical bootstrap."""
        by_task, missing = self.differences(first, second, lengths)
        draws = bootstrap_means([np.array([_centred(*each) for each in seeds]) for seeds in by_task.values()], name)
        means = {task: float(np.mean([d for d, _ in seeds])) for task, seeds in by_task.items()}
        low, high = np.quantile(draws, (0.025, 0.975))
        side = min(float((draws <= 0).mean()), float((draws >= 0).mean()))
        seeds = min(len(each) for each in by_task.values())
        return Answer(
            question, name, means, seeds, float(low), float(high), min(1.0, max(2 * side, 2 / DRAWS)), missing
        )

    @cache  # noqa: B019 - one object for the time of a process
    def family(self, name: str) -> list[Answer]:
        """Its answers, corrected by Holm."""
        answers = [self.answer(asked[0], said, *asked[1:]) for said, asked in FAMILIES[name].items()]
        adjusted = holm([answer.p for answer in answers])
        return [replace(answer, adjusted=float(p)) for answer, p in zip(answers, adjusted, strict=True)]

    def table(self, family: str, question: str | None = None) -> str:
        """One row per comparison."""
        answers = [answer for answer in self.family(family) if question in (None, answer.question)]
        columns: dict[str, list[Any]] = {
            "comparison": [answer.name for answer in answers],
            "tasks": [len(answer.by_task) for answer in answers],
            "difference": [Rounded(answer.difference, "+.2f") for answer in answers],
            "95 %": [f"{answer.low:+.2f} to {answer.high:+.2f}" for answer in answers],
            "lower on": [f"{sum(d < 0 for d in answer.by_task.values())}" for answer in answers],
            "higher on": [f"{sum(d > 0 for d in answer.by_task.values())}" for answer in answers],
            "within tasks": [self.within_tasks(family, answer.name) for answer in answers],
            "p, Holm": ["< 0.001" if answer.adjusted < 0.001 else f"{answer.adjusted:.3f}" for answer in answers],
            "answer": [answer.verdict for answer in answers],
        }
        return Table(columns).markdown()

    def lead(self) -> str:
        """The answers to questions 1 to 3, the best rule of question 4 and the objectives that question 5 finds."""
        told = [
            f"* **{answer.verdict}**: {answer.name}, {answer.difference:+.2f} points of NLL "
            f"[{answer.low:+.2f}, {answer.high:+.2f}] over {len(answer.by_task)} tasks"
            for answer in self.family("1 to 3")
        ]
        for family in ("4", "5"):
            decided = [answer for answer in self.family(family) if answer.adjusted < 0.05]
            said = "; ".join(f"{answer.name}, {answer.difference:+.2f} ({answer.verdict})" for answer in decided)
            told.append(f"* Question {family}, beyond chance: {said or 'none'}")
        return "\n".join(told)

    def by_length(self) -> str:
        """The comparisons of questions 1 to 3 in each length alone, for description."""
        said = FAMILIES["1 to 3"]
        columns: dict[str, list[Any]] = {"comparison": list(said)}
        for length in LENGTHS:
            if any(unit[1] == length for unit in self.units):
                answers = [self.answer(asked[0], name, *asked[1:], lengths=(length,)) for name, asked in said.items()]
                columns[f"{length}: difference"] = [
                    f"{answer.difference:+.2f} [{answer.low:+.2f}, {answer.high:+.2f}]" for answer in answers
                ]
        return Table(columns).markdown()

    def within_tasks(self, family: str, name: str) -> str:
        """`3 lower, 1 higher`: tasks by exact sign-flip tests over seeds, p < 0.1 (five seeds give 0.0625)."""
        by_task, _ = self.differences(*FAMILIES[family][name][1:])
        sides = Counter(
            np.sign(np.mean(each))
            for seeds in by_task.values()
            if len(each := [d for d, _ in seeds]) > 1 and sign_flip_test(each).p_value < 0.1
        )
        return f"{sides[-1.0]} lower, {sides[1.0]} higher"

    def means(self) -> str:
        """One row per objective: means over all finished units, tasks weighing alike."""
        columns: dict[str, list[Any]] = {"objective": [], "units": []}
        shown = {
            "NLL %": ("nll", True), "NLL % with T": ("scaled_nll", True), "NLL % calibrated": ("calibrated_nll", True),
            "error %": ("error", False), "Brier": ("brier", False), "Brier with T": ("scaled_brier", False),
            "debiased ECE %": ("debiased_ece", False), "with T": ("scaled_debiased_ece", False),
            "smooth ECE %": ("smooth_ece", False), "AURC %": ("aurc", False), "to the posterior": ("distance", False),
        }  # fmt: skip
        columns |= {title: [] for title in shown}
        for name, rule in [(name, "last") for name in OBJECTIVES] + [("refined", "refined")]:
            rows = [row for key, row in self.rows.items() if key[3:] == (name, rule) and not row["failed"]]
            columns["objective"].append("cross-entropy, refined" if name == "refined" else name)
            columns["units"].append(len(rows))
            for title, (column, relative) in shown.items():
                mean = _mean_over_tasks(rows, column, relative=relative)
                factor = 100.0 if "%" in title or title == "with T" else 1.0
                digits = ".3f" if factor == 1 else ".2f"
                columns[title].append(None if mean is None else Rounded(factor * mean, digits))
        return Table(columns).markdown()

    def misses(self, name: str, *, scaled: bool = False) -> list[float]:
        """|log T| that test rows need after training with an objective, `scaled` by validation rows or not."""
        found = []
        for key, row in self.rows.items():
            if key[3:] == (name, "last") and row["test_temperature"] is not None:
                own = (row["temperature"] or 1.0) if scaled else 1.0
                found.append(abs(math.log(row["test_temperature"] / own)))
        return sorted(found)

    def kept(self) -> str:
        """`120 of 300`: how often the rule keeps cross-entropy."""
        lams = [row["lam"] for key, row in self.rows.items() if key[3:] == ("FCL", "last")]
        return f"{sum(math.isinf(lam) for lam in lams)} of {len(lams)}"

    def extent(self) -> str:
        """How much of the plan is there."""
        tasks = {unit[0] for unit in self.units}
        whole = len(TASKS) * len(LENGTHS) * SEEDS
        seeds = Counter(unit[2] for unit in self.units)
        by_seed = ", ".join(f"seed {seed}: {seeds[seed]}" for seed in sorted(seeds))
        failed = sum(row["failed"] for row in self.rows.values())
        return (
            f"{len(self.units)} of {whole} units of a task, a length and a seed ({by_seed}; each seed has "
            f"{len(TASKS) * len(LENGTHS)}), {len(tasks)} of {len(TASKS)} tasks; {failed} runs failed."
        )

    def origins(self) -> str:
        """Machine, versions and commits of the records."""
        told = [
            f"{what} {', '.join(sorted({str(row[column]) for row in self.rows.values() if row[column]}))}"
            for what, column in (("instructions", "instructions"), ("torch", "torch"), ("commits", "commit"))
        ]
        return "; ".join(told)


def bootstrap_means(tasks: Sequence[NDArray[np.float64]], name: str) -> NDArray[np.float64]:
    """(DRAWS,): means over tasks drawn with replacement, of seeds drawn within them, of a sample of rows each.

    tasks  (seeds, SAMPLES) of each
    """
    draws = numpy_stream(0, "paper.tasks.bootstrap", name)
    most = max(len(task) for task in tasks)
    padded = np.zeros((len(tasks), most, SAMPLES))
    counts = np.array([len(task) for task in tasks])
    for at, task in enumerate(tasks):
        padded[at, : len(task)] = task
    total = np.zeros(DRAWS)
    for _ in tasks:
        chosen = draws.integers(len(tasks), size=DRAWS)
        count = counts[chosen][:, None]
        seeds = (draws.random((DRAWS, most)) * count).astype(int)
        samples = draws.integers(SAMPLES, size=(DRAWS, most))
        values = padded[chosen[:, None], seeds, samples]
        total += (values * (np.arange(most) < count)).sum(1) / count[:, 0]
    return total / len(tasks)


def _centred(mean: float, samples: NDArray[np.float64]) -> NDArray[np.float64]:
    """The samples about what all rows say, with the variance of many of them."""
    return np.asarray(mean + (samples - samples.mean()) * math.sqrt(SAMPLES / (SAMPLES - 1)))


def _loss(row: dict[str, Any] | None, kind: str) -> tuple[float, NDArray[np.float64]] | None:
    """In points of the labels' entropy: of all rows, and of each sample."""
    if row is None or row["failed"] or row[f"{kind}nll"] is None or not math.isfinite(row[f"{kind}nll"]):
        return None
    mean = 100 * row[f"{kind}nll"] / row["entropy"]
    return mean, mean + 100 * UNIT * np.array(row[f"{kind}samples"], float)


def _mean_over_tasks(rows: list[dict[str, Any]], column: str, *, relative: bool) -> float | None:
    by_task: dict[str, list[float]] = {}
    for row in rows:
        if row[column] is not None:
            by_task.setdefault(row["task"], []).append(row[column] / (row["entropy"] if relative else 1.0))
    return float(np.mean([np.mean(each) for each in by_task.values()])) if by_task else None
