"""What stored runs answer to a number of the paper's text: each query takes the runs last, and gives None if they lack
what it asks for."""

from __future__ import annotations

import math
import statistics
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Literal

from focalcal.lab.evidence.cell_means import label_means, metric_cells, shift_aurocs
from focalcal.lab.evidence.evidence import RunEvidence
from focalcal.lab.evidence.metric_names import HIGHER_IS_BETTER, mean_shown
from focalcal.lab.evidence.temperature_effect import NEAR_ONE
from focalcal.pages.numbers import Mean, best
from focalcal.stats import Comparison
from paper.claims.paper_runs import PaperRuns
from paper.claims.printed_numbers import GROUPS, Protocol

Names = Sequence[str]


@dataclass(frozen=True)
class ClaimAnswer:
    """A number of ours, metrics not in percent; of a count, `of` says of how many, and `ties` how many were neither."""

    value: float
    of: int | None = None
    ties: int = 0

    def __str__(self) -> str:
        """`3`, `3 of 9`, or `3 of 9 (2 tied)`."""
        counted = f"{self.value:.4g}" if self.of is None else f"{self.value:g} of {self.of}"
        return counted + f" ({self.ties} tied)" * bool(self.ties)


Query = Callable[[PaperRuns], ClaimAnswer | None]
_CHEST = "chestxray14/chexnet"


def named_query(ask: str, **arguments: Any) -> Query:
    """A query of the data files: the function of this module, and its arguments; "all" is None, groups have names."""

    def plain(value: Any) -> Any:
        return None if value == "all" else GROUPS.get(value, value) if isinstance(value, str) else value

    function = globals()[ask]
    keywords = {argument: plain(value) for argument, value in arguments.items()}
    return lambda runs: function(**keywords, runs=runs)


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
) -> ClaimAnswer | None:
    """The mean over seeds on the test split, or of one: of a cell of the paper's tables, or of a point of a sweep."""
    if lam is None:
        own = runs.grid(protocol).of(setting, objective)
    else:
        own = runs.at(setting, objective, protocol=protocol, gamma=gamma, lam=lam)
    return _mean(_values((run for run in own if seed is None or run.seed == seed), metric))


def extreme(
    which: Literal["lowest", "highest"],
    objective: str,
    metric: str,
    settings: Names,
    runs: PaperRuns,
    *,
    protocol: Protocol,
) -> ClaimAnswer | None:
    """The lowest or highest over settings of the mean over seeds."""
    means = [mean_of(setting, objective, metric, runs, protocol=protocol) for setting in settings]
    return _extreme(min if which == "lowest" else max, [answer.value for answer in means if answer is not None])


def times_best(
    objectives: Names, metric: str, settings: Names, runs: PaperRuns, *, protocol: Protocol = "main", among: Names = ()
) -> ClaimAnswer | None:
    """In how many settings one of these objectives has the lowest mean as printed, whatever its error.

    A setting counts if all of `among` were run there; without them, one of the objectives and another one.
    """
    cells = metric_cells(runs.grid(protocol), metric)
    return _wins((cells.get(setting, {}) for setting in settings), objectives, among)


def times_worst(objective: str, metric: str, settings: Names, runs: PaperRuns, *, among: Names) -> ClaimAnswer | None:
    """In how many settings the objective has the highest mean as printed."""
    cells = metric_cells(runs.grid(), metric)
    return _wins((cells.get(setting, {}) for setting in settings), [objective], among, higher=True)


def times_best_scaled(
    objectives: Names, metric: str, settings: Names, runs: PaperRuns, *, among: Names
) -> ClaimAnswer | None:
    """`times_best` after temperature scaling, on the rows that the temperature was not fitted on."""
    grid, rows = runs.grid(), []
    for setting in settings:
        values = {
            name: [run.optimum.after.get(metric, math.nan) for run in grid.of(setting, name) if run.optimum]
            for name in grid.objectives
        }
        rows.append({name: cell for name, own in values.items() if (cell := mean_shown(metric, own)) is not None})
    return _wins(rows, objectives, among)


def times_lower(
    objective: str, other: str, metric: str, settings: Names, runs: PaperRuns, *, protocol: Protocol = "main"
) -> ClaimAnswer | None:
    """In how many settings the mean is lower than that of another objective, as they are printed."""
    cells = metric_cells(runs.grid(protocol), metric)
    pairs = ({name: cells.get(setting, {}).get(name) for name in (objective, other)} for setting in settings)
    rows = ({name: cell for name, cell in pair.items() if cell is not None} for pair in pairs)
    return _wins(rows, [objective], [objective, other])


def times_best_of_sweep(
    name: str, metric: str, settings: Names, lams: Sequence[float], runs: PaperRuns, *, among: Names = ()
) -> ClaimAnswer | None:
    """From scratch: in how many settings `name` has the lowest mean of ce, focal and "fcl lam=..." of every lam.

    `among` leaves others out.
    """
    wanted = among or ("ce", "focal", *(f"fcl lam={lam:g}" for lam in lams))
    rows = []
    for setting in settings:
        grid = runs.grid("from scratch")
        cells = {name: grid.of(setting, name) for name in ("ce", "focal")}
        cells |= {f"fcl lam={lam:g}": runs.at(setting, "fcl", protocol="from scratch", lam=lam) for lam in lams}
        means = {name: mean_shown(metric, _values(cells[name], metric)) for name in wanted}
        rows.append({name: cell for name, cell in means.items() if cell is not None})
    return _wins(rows, [name], wanted)


def largest_excess(
    objective: str, metric: str, settings: Names, runs: PaperRuns, *, protocol: Protocol = "main"
) -> ClaimAnswer | None:
    """How far the mean is above the lowest of the others, in the setting where that is most."""
    excesses = []
    for setting in settings:
        means = {name: _mean(values.values()) for name, values in runs.grid(protocol).values(setting, metric).items()}
        known = {name: answer.value for name, answer in means.items() if answer is not None}
        if objective in known and len(known) > 1:
            excesses.append(known[objective] - min(value for name, value in known.items() if name != objective))
    return _extreme(max, excesses)


def temperature_distance(objective: str, settings: Names, runs: PaperRuns) -> ClaimAnswer | None:
    """The mean over settings of |T - 1|, T the mean over seeds."""
    return _mean(abs(t - 1) for t in _temperatures(objective, settings, runs))


def temperatures_near_one(objective: str, settings: Names, runs: PaperRuns) -> ClaimAnswer | None:
    """In how many settings T, the mean over seeds, is between 0.9 and 1.1."""
    low, high = NEAR_ONE
    return _count(low <= t <= high for t in _temperatures(objective, settings, runs))


def shift_wins(
    objectives: Names, shifts: Names, settings: Names, runs: PaperRuns, *, among: Names = ()
) -> ClaimAnswer | None:
    """In how many pairs of a setting and a shift one of the objectives has the highest mean AUROC as printed."""
    rows = (shift_aurocs(runs.grid(), setting, shift) for setting in settings for shift in shifts)
    return _wins(rows, objectives, among, higher=True)


def shifts_below_median(
    objective: str, shifts: Names, settings: Names, runs: PaperRuns, *, among: Names
) -> ClaimAnswer | None:
    """In how many pairs of a setting and a shift the mean AUROC is below the median of the others', as printed."""
    rows = [shift_aurocs(runs.grid(), setting, shift) for setting in settings for shift in shifts]
    printed = [{name: float(row[name].printed) for name in among} for row in rows if row.keys() >= set(among)]
    medians = [statistics.median(value for name, value in row.items() if name != objective) for row in printed]
    return _count(row[objective] < middle for row, middle in zip(printed, medians, strict=True))


def finding_wins(setting: str, objective: str, metric: str, runs: PaperRuns) -> ClaimAnswer | None:
    """On how many findings the objective is best as printed."""
    cells = label_means(runs.grid(), setting, metric)
    rows = (
        {name: means[label] for name, means in cells.items() if label in means} for label in cells.get(objective, {})
    )
    return _wins(rows, [objective], higher=metric in HIGHER_IS_BETTER)


def verdicts(
    verdict: str, settings: Names, runs: PaperRuns, *, baselines: Names = (), metric: str | None = None
) -> ClaimAnswer | None:
    """How many comparisons of FCL end so, of those with enough seeds to be significant; of all baselines by default."""
    return _count(test.verdict == verdict for test in _comparisons(settings, runs, baselines, metric))


def largest_effect(settings: Names, baseline: str, metric: str, runs: PaperRuns) -> ClaimAnswer | None:
    """The largest |d_z| over settings."""
    return _extreme(max, [abs(test.effect) for test in _comparisons(settings, runs, [baseline], metric)])


def least_p(settings: Names, runs: PaperRuns, *, adjusted: bool) -> ClaimAnswer | None:
    """The least p that a comparison could have had, before or after Holm's correction."""
    tests = _comparisons(settings, runs)
    return _extreme(min, [test.floor_adjusted if adjusted else test.test.floor for test in tests])


def sweep(
    setting: str,
    objective: str,
    metric: str,
    lams: Sequence[float],
    runs: PaperRuns,
    *,
    protocol: Protocol = "main",
    gamma: float | None = None,
    seed: int | None = 0,
) -> list[float] | None:
    """The value at every lam; None unless all were run."""
    cells = [
        mean_of(setting, objective, metric, runs, protocol=protocol, gamma=gamma, lam=lam, seed=seed) for lam in lams
    ]
    values = [answer.value for answer in cells if answer is not None]
    return values if len(values) == len(lams) else None


def best_lam(
    setting: str,
    objective: str,
    metric: str,
    lams: Sequence[float],
    runs: PaperRuns,
    *,
    protocol: Protocol = "main",
    gamma: float | None = None,
) -> ClaimAnswer | None:
    """The lam with the lowest value at seed 0; needs the whole sweep."""
    values = sweep(setting, objective, metric, lams, runs, protocol=protocol, gamma=gamma)
    return None if values is None else ClaimAnswer(lams[values.index(min(values))], ties=values.count(min(values)) - 1)


def times_rising(
    settings: Names,
    objective: str,
    metric: str,
    lams: Sequence[float],
    runs: PaperRuns,
    *,
    protocol: Protocol = "main",
    gammas: Sequence[float | None] = (None,),
    seed: int | None = 0,
) -> ClaimAnswer | None:
    """In how many whole sweeps, one per setting and gamma, the value rises from each lam to the next."""
    sweeps = [
        sweep(setting, objective, metric, lams, runs, protocol=protocol, gamma=gamma, seed=seed)
        for setting in settings
        for gamma in gammas
    ]
    return _count(all(low < high for low, high in pairwise(values)) for values in sweeps if values is not None)


def gamma_of_lowest_bin(setting: str, runs: PaperRuns) -> ClaimAnswer | None:
    """AdaFocal's gamma of the bin of lowest confidence after the last epoch, mean over seeds."""
    return _mean(gammas[0] for gammas in _last_gammas(setting, runs) if gammas[0] is not None)


def times_high_bins_below(most: float, settings: Names, runs: PaperRuns) -> ClaimAnswer | None:
    """In how many settings no gamma of AdaFocal's upper half of bins, mean over seeds, is above `most` at the end."""
    outcomes = []
    for setting in settings:
        bins = [
            [gamma for gamma in column if gamma is not None]
            for column in zip(*_last_gammas(setting, runs), strict=False)
        ]
        upper = [statistics.fmean(column) for column in bins[len(bins) // 2 :] if column]
        outcomes += [max(upper) <= most] if upper else []
    return _count(outcomes)


def elsewhere(runs: PaperRuns) -> ClaimAnswer | None:
    """Significantly worse comparisons other than on CIFAR-100/ResNet-110 against the focal family."""
    every = verdicts("worse", GROUPS["ten seeds"], runs)
    there = verdicts("worse", ["cifar100/resnet110"], runs, baselines=GROUPS["focal family"]) or ClaimAnswer(0, 0)
    if every is None or not every.value:
        return None  # where nothing is worse, it is not "all there" either
    return ClaimAnswer(every.value - there.value, (every.of or 0) - (there.of or 0))


def plateau(runs: PaperRuns) -> ClaimAnswer | None:
    """By how much of itself ECE changes from the last lam but one of the chest sweep to the last."""
    values = sweep(_CHEST, "multilabel_fcl", "ece", GROUPS["chest lams"][-2:], runs)
    return None if values is None else ClaimAnswer(abs(values[1] / values[0] - 1))


def over_bce(runs: PaperRuns) -> ClaimAnswer | None:
    """At how many lam of the chest sweep ECE is above that of binary cross-entropy, both at seed 0."""
    theirs = mean_of(_CHEST, "multilabel_bce", "ece", runs, seed=0)
    ours = [mean_of(_CHEST, "multilabel_fcl", "ece", runs, lam=lam, seed=0) for lam in GROUPS["chest lams"]]
    known = [answer.value for answer in ours if answer is not None]
    return ClaimAnswer(sum(value > theirs.value for value in known), len(known)) if theirs and known else None


def _last_gammas(setting: str, runs: PaperRuns) -> list[list[float | None]]:
    """AdaFocal's after the last epoch that tells them, from the lowest bin to the highest: a row per seed."""
    histories = [
        [epoch["gammas"] for epoch in run.epochs if epoch.get("gammas")]
        for run in runs.grid("common split").of(setting, "adafocal")
    ]
    return [gammas[-1] for gammas in histories if gammas]


def _values(runs: Iterable[RunEvidence], metric: str) -> list[float]:
    return [run.metrics.get("test", {}).get(metric, math.nan) for run in runs]


def _wins(
    rows: Iterable[Mapping[str, Mean]], objectives: Names, among: Names = (), *, higher: bool = False
) -> ClaimAnswer | None:
    """In how many rows the best as printed are these objectives alone; a row where others share it is a tie."""
    outcomes = []
    for row in rows:
        if not (row.keys() >= set(among) and row.keys() & set(objectives) and row.keys() - set(objectives)):
            continue
        cells = {name: row[name] for name in among or row}
        first = {
            name for name, is_best in zip(cells, best(list(cells.values()), higher=higher), strict=True) if is_best
        }
        outcomes.append("win" if first and first <= set(objectives) else "tie" if first & set(objectives) else "")
    return ClaimAnswer(outcomes.count("win"), len(outcomes), outcomes.count("tie")) if outcomes else None


def _mean(values: Iterable[float]) -> ClaimAnswer | None:
    there = [value for value in values if not math.isnan(value)]
    return ClaimAnswer(statistics.fmean(there)) if there else None


def _extreme(which: Callable[[list[float]], float], values: list[float]) -> ClaimAnswer | None:
    return ClaimAnswer(which(values)) if values else None


def _count(outcomes: Iterable[bool]) -> ClaimAnswer | None:
    every = list(outcomes)
    return ClaimAnswer(sum(every), len(every)) if every else None


def _temperatures(objective: str, settings: Names, runs: PaperRuns) -> list[float]:
    """By setting, without those at a bound, where no T is best."""
    fitted = [
        [run.optimum.temperature for run in runs.grid().of(setting, objective) if run.optimum] for setting in settings
    ]
    return [statistics.fmean(temperatures) for temperatures in fitted if temperatures]


def _comparisons(
    settings: Names, runs: PaperRuns, baselines: Names = (), metric: str | None = None
) -> list[Comparison]:
    return [
        test
        for family in runs.families
        if family.setting in settings and (not baselines or family.baseline in baselines)
        for test in family.comparisons
        if metric in (None, test.metric)
    ]
