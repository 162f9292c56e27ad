"""What stored runs answer to a number of the paper's text: each query takes the runs last, and gives None if they lack
what it asks for."""

from __future__ import annotations

import math
import statistics
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from focalcal.analysis.cell_means import label_means, metric_cells, shift_aurocs
from focalcal.analysis.metric_names import HIGHER_IS_BETTER
from focalcal.analysis.numbers import best
from focalcal.analysis.paper_numbers import Protocol
from focalcal.analysis.paper_runs import PaperRuns
from focalcal.analysis.temperature_effect import NEAR_ONE
from focalcal.stats import Comparison

Names = Sequence[str]


@dataclass(frozen=True)
class Answer:
    """A number of ours, metrics not in percent; where it counts, `of` says of how many."""

    value: float
    of: int | None = None

    def __str__(self) -> str:
        """`3`, or `3 of 9`."""
        return f"{self.value:g}" if self.of is None else f"{self.value:g} of {self.of}"


Query = Callable[[PaperRuns], Answer | None]


def mean_of(
    setting: str,
    objective: str,
    metric: str,
    runs: PaperRuns,
    *,
    protocol: Protocol = "main",
    gamma: float | None = None,
    lam: float | None = None,
    seed: int | None = None,
) -> Answer | None:
    """The mean over seeds on the test split, or of one: of a cell of the paper's tables, or of a point of a sweep."""
    if lam is None:
        own = runs.grid(protocol).of(setting, objective)
    else:
        own = runs.at(setting, objective, protocol=protocol, gamma=gamma, lam=lam)
    return _mean(run.metrics.get("test", {}).get(metric, math.nan) for run in own if seed is None or run.seed == seed)


def extreme(
    which: Callable[[list[float]], float],
    objective: str,
    metric: str,
    settings: Names,
    runs: PaperRuns,
    *,
    protocol: Protocol,
) -> Answer | None:
    """The `min` or `max` over settings of the mean over seeds."""
    means = [mean_of(setting, objective, metric, runs, protocol=protocol) for setting in settings]
    return _extreme(which, [answer.value for answer in means if answer is not None])


def times_best(
    objectives: Names, metric: str, settings: Names, runs: PaperRuns, *, protocol: Protocol = "main"
) -> Answer | None:
    """In how many settings one of these objectives has the lowest mean as printed, whatever its error."""
    cells = metric_cells(runs.grid(protocol), metric)
    rows = [cells[setting] for setting in settings if setting in cells]
    return _count(
        any(first and name in objectives for name, first in zip(row, best(list(row.values())), strict=True))
        for row in rows
        if row.keys() & set(objectives) and row.keys() - set(objectives)
    )


def times_lower(
    objective: str, other: str, metric: str, settings: Names, runs: PaperRuns, *, protocol: Protocol = "main"
) -> Answer | None:
    """In how many settings the mean is lower than that of another objective."""
    cells = metric_cells(runs.grid(protocol), metric)
    rows = [cells[setting] for setting in settings if {objective, other} <= cells.get(setting, {}).keys()]
    return _count(float(row[objective]) < float(row[other]) for row in rows)


def largest_excess(
    objective: str, metric: str, settings: Names, runs: PaperRuns, *, protocol: Protocol = "main"
) -> Answer | None:
    """How far the mean is above the lowest of the others, in the setting where that is most."""
    excesses = []
    for setting in settings:
        means = {name: _mean(values.values()) for name, values in runs.grid(protocol).values(setting, metric).items()}
        known = {name: answer.value for name, answer in means.items() if answer is not None}
        if objective in known and len(known) > 1:
            excesses.append(known[objective] - min(value for name, value in known.items() if name != objective))
    return _extreme(max, excesses)


def temperature_distance(objective: str, settings: Names, runs: PaperRuns) -> Answer | None:
    """The mean over settings of |T - 1|, T the mean over seeds."""
    return _mean(abs(t - 1) for t in _temperatures(objective, settings, runs))


def temperatures_near_one(objective: str, settings: Names, runs: PaperRuns) -> Answer | None:
    """In how many settings T, the mean over seeds, is between 0.9 and 1.1."""
    low, high = NEAR_ONE
    return _count(low <= t <= high for t in _temperatures(objective, settings, runs))


def shift_wins(objective: str, shifts: Names, settings: Names, runs: PaperRuns) -> Answer | None:
    """In how many pairs of a setting and a shift the objective has the highest mean AUROC as printed."""
    rows = [shift_aurocs(runs.grid(), setting, shift) for setting in settings for shift in shifts]
    return _count(
        best(list(row.values()), higher=True)[list(row).index(objective)]
        for row in rows
        if objective in row and len(row) > 1
    )


def finding_wins(setting: str, objective: str, metric: str, runs: PaperRuns) -> Answer | None:
    """On how many findings the objective is best as printed."""
    cells = label_means(runs.grid(), setting, metric)
    others = [means for name, means in cells.items() if name != objective]
    if objective not in cells or not others:
        return None
    return _count(
        best([value, *(means.get(label) for means in others)], higher=metric in HIGHER_IS_BETTER)[0]
        for label, value in cells[objective].items()
    )


def verdicts(
    verdict: str, settings: Names, runs: PaperRuns, *, baseline: str | None = None, metric: str | None = None
) -> Answer | None:
    """How many comparisons of FCL end so, of those with enough seeds to be significant."""
    return _count(test.verdict == verdict for test in _comparisons(settings, runs, baseline, metric))


def largest_effect(settings: Names, baseline: str, metric: str, runs: PaperRuns) -> Answer | None:
    """The largest |d_z| over settings."""
    return _extreme(max, [abs(test.effect) for test in _comparisons(settings, runs, baseline, metric)])


def least_p(settings: Names, runs: PaperRuns, *, adjusted: bool) -> Answer | None:
    """The least p that a comparison could have had, before or after Holm's correction."""
    tests = _comparisons(settings, runs)
    return _extreme(min, [test.floor_adjusted if adjusted else test.test.floor for test in tests])


def best_lam(
    setting: str,
    objective: str,
    metric: str,
    lams: Sequence[float],
    runs: PaperRuns,
    *,
    protocol: Protocol = "main",
    gamma: float | None = None,
) -> Answer | None:
    """The lam with the lowest value at seed 0; needs the whole sweep."""
    sweep = [mean_of(setting, objective, metric, runs, protocol=protocol, gamma=gamma, lam=lam, seed=0) for lam in lams]
    values = [answer.value for answer in sweep if answer is not None]
    return Answer(lams[values.index(min(values))]) if len(values) == len(lams) else None


def gamma_of_lowest_bin(setting: str, runs: PaperRuns) -> Answer | None:
    """AdaFocal's gamma of the bin of lowest confidence after the last epoch, mean over seeds."""
    histories = [
        [epoch["gammas"][0] for epoch in run.epochs if epoch.get("gammas")]
        for run in runs.grid("common split").of(setting, "adafocal")
    ]
    return _mean(gammas[-1] for gammas in histories if gammas and gammas[-1] is not None)


def _mean(values: Iterable[float]) -> Answer | None:
    there = [value for value in values if not math.isnan(value)]
    return Answer(statistics.fmean(there)) if there else None


def _extreme(which: Callable[[list[float]], float], values: list[float]) -> Answer | None:
    return Answer(which(values)) if values else None


def _count(outcomes: Iterable[bool]) -> Answer | None:
    every = list(outcomes)
    return Answer(sum(every), len(every)) if every else None


def _temperatures(objective: str, settings: Names, runs: PaperRuns) -> list[float]:
    """By setting, without those at a bound, where no T is best."""
    fitted = [
        [run.optimum.temperature for run in runs.grid().of(setting, objective) if run.optimum] for setting in settings
    ]
    return [statistics.fmean(temperatures) for temperatures in fitted if temperatures]


def _comparisons(
    settings: Names, runs: PaperRuns, baseline: str | None = None, metric: str | None = None
) -> list[Comparison]:
    return [
        test
        for family in runs.families
        if family.setting in settings and baseline in (None, family.baseline)
        for test in family.comparisons
        if metric in (None, test.metric)
    ]
