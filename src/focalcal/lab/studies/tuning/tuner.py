"""Which objective, which gamma, which lam: an answer from validation data (docs/guide/tuning.md)."""

from __future__ import annotations

import math
import os
import shlex
from collections.abc import Iterator, Mapping, Sequence
from itertools import chain, islice
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Literal

from focalcal.core.checks import one_of, whole_number
from focalcal.core.plugins import check_name
from focalcal.lab.store import Protocol, Run, Store
from focalcal.lab.studies import LocalExecutor
from focalcal.lab.studies.search_space import SPACE, Choices, Dimension, Range
from focalcal.lab.studies.spec_builder import has_validation, is_multilabel
from focalcal.lab.studies.study_grid import StudyObjective, StudySetting
from focalcal.lab.studies.tuning.judgement import CRITERIA, judge
from focalcal.lab.studies.tuning.result import Finalist, TuneResult
from focalcal.lab.studies.tuning.search import Search, TuneCandidate, TunedMethod, TuneTrial
from focalcal.lab.training import recipe as recipe_named
from focalcal.losses import LOSSES

if TYPE_CHECKING:
    from focalcal.lab.studies.events import OnEvent
    from focalcal.lab.studies.grid import Executor
    from focalcal.lab.training import Recipe

OBJECTIVES = ("ce", "fcl", "focal", "brier", "ls", "dual_focal")
# The options that papers use; an objective that is not here begins at its defaults.
_USUAL: Mapping[str, Mapping[str, float]] = MappingProxyType(
    {"focal": {"gamma": 3.0}, "dual_focal": {"gamma": 3.0}, "ls": {"epsilon": 0.05}, "mmce": {"lam": 2.0}}
)
# The learning rate of the recipe is cross-entropy's; on this scale it carries over.
_MATCHED = ("fcl", "focal", "brier")
_GAMMAS = (3.0, 2.0, 5.0)  # for which cross-entropy predicts lam
_OWN = Choices((1.0,))
_AROUND = Range(1 / 16, 16.0, (0.25, 1.0, 4.0), log=True)  # times the recipe's
_EVERY_POINT = 10**6
_AT_LEAST = 2  # trials of an objective before the others are looked at again


def tune(
    recipe: Recipe | str,
    store: Store | str | os.PathLike[str],
    *,
    objectives: Sequence[str] = OBJECTIVES,
    trials: int = 16,
    seeds: int = 3,
    finalists: int = 3,
    sampler: Literal["halton", "grid"] = "halton",
    select: str = "nll",
    learning_rate: bool = False,
    weight_decay: bool = False,
    protocol: Protocol | None = None,
    executor: Executor | None = None,
    jobs: int = 2,
    data_dir: Path | None = None,
    seed: int = 0,
    on_event: OnEvent | None = None,
) -> TuneResult:
    """Search the objective and its options for a recipe, judging by a proper score of its validation rows.

    Each candidate is judged raw and with a temperature that is cross-fitted on validation rows, and by the better
    of the two. A candidate whose error is shown to be higher than cross-entropy's is no finalist. The winner is the
    finalist with the lowest mean over the seeds, if its 95 % interval of differences from cross-entropy, paired by
    row, lies below 0. The test rows are read at the end, for the finalists. Several machines that share the store
    search together: the sequence is the same for all, and a run that another one trains is waited for.

    Args:
        recipe: a recipe or the name of one; it must hold validation rows out.
        store: every trial is a run of it: nothing is trained twice, and the same call goes on after a stop.
        objectives: names of LOSSES, or of your own as package.module:Name; cross-entropy is always among them.
        trials: how many different candidates are trained with the first seed; a grid has as many as it has points.
        seeds: how many each finalist is trained with.
        finalists: how many candidates are repeated, besides cross-entropy.
        sampler: "halton", points of the objective that is best so far, in the end around its best; or "grid".
        select: "nll" or "brier".
        learning_rate, weight_decay: search them as well, up to a factor of sixteen from the recipe's.
        protocol: which examples; None: all.
        executor: where runs are trained; by default `jobs` at a time in processes of this machine.
        jobs: how many runs at a time, where there is no `executor`.
        data_dir: the folder of the data sets, by default what FOCALCAL_DATA names; an `executor` has one of its
            own.
        seed: of the sequence.
        on_event: is told what happens.

    Returns:
        A `TuneResult`.

    >>> from focalcal.lab.studies.tuning import tune
    >>> result = tune("digits_small_cnn_lite", "runs", trials=8)  # doctest: +SKIP
    >>> print(result.sentence)  # doctest: +SKIP
    """
    chosen = recipe_named(recipe) if isinstance(recipe, str) else recipe
    _check(chosen, objectives, select, sampler, trials=trials, seeds=seeds, finalists=finalists, jobs=jobs)
    search = Search(
        store if isinstance(store, Store) else Store(store),
        executor or LocalExecutor(jobs, options={"data_dir": data_dir}),
        protocol or Protocol(),
        data_dir=data_dir,
        on_event=on_event,
    )
    grid = sampler == "grid"
    methods = methods_of(chosen, objectives, grid=grid)
    around: Dimension = Choices(_AROUND.grid) if grid else _AROUND
    spaces = around if learning_rate else _OWN, around if weight_decay else _OWN
    tried, interrupted = _searched(search, methods, spaces, None if grid else trials, seed, select)
    repeated: list[Finalist] = []
    epochs = chosen.epochs * len(tried)
    if not interrupted:
        baseline = tried[0].candidate
        feasible = sorted((trial for trial in tried if trial.feasible), key=lambda trial: trial.judgement.best(select))
        best = [trial.candidate for trial in feasible if trial.candidate != baseline][:finalists]
        repeated, interrupted = repeat(search, [baseline, *best], seeds, select)
        if not interrupted and all(finalist.candidate != baseline for finalist in repeated):
            raise ValueError(_without_baseline(search, baseline, *range(seeds)))
        epochs += chosen.epochs * len(repeated) * (seeds - 1)
    ranked = sorted(repeated, key=lambda finalist: finalist.mean(select))
    return TuneResult(tuple(tried), tuple(ranked), select, epochs, interrupted, search.sentences())


def methods_of(recipe: Recipe, objectives: Sequence[str], *, grid: bool = False) -> dict[str, TunedMethod]:
    """Cross-entropy and the objectives, each searched where `SPACE` says; one that is not there has its defaults."""
    setting, methods = StudySetting(("settings", 0), "", recipe), {}
    for name in dict.fromkeys(["ce", *objectives]):
        given = {"scale": "matched"} if name in _MATCHED else {}
        space = {option: Choices(where.grid) if grid else where for option, where in SPACE.get(name, {}).items()}
        methods[name] = TunedMethod(setting, StudyObjective((), name, given, {}, search=space))
    return methods


def _searched(
    search: Search,
    methods: Mapping[str, TunedMethod],
    spaces: tuple[Dimension, Dimension],
    number: int | None,
    seed: int,
    select: str,
) -> tuple[list[TuneTrial], bool]:
    """The trials, cross-entropy first, and whether Ctrl-C ended the search early; every point of a grid if no number.

    The first guesses, then points of the objective that is best so far, half of the trials that are left at a time:
    first of its whole space, then around its best one.
    """
    baseline = methods["ce"].candidate({})
    runs, interrupted = search.train([baseline], 0)
    if interrupted and not runs:
        return [], True
    first = search.trials(runs)
    if not first:
        raise ValueError(_without_baseline(search, baseline, 0))
    cross_entropy = first[0]
    asked = dict.fromkeys([baseline, *_first_guesses(search, methods, cross_entropy)])
    if number is None:
        every = (method.candidates(*spaces, _EVERY_POINT, seed) for method in methods.values())
        asked |= dict.fromkeys(chain.from_iterable(every))
    batch = list(asked)[:number]
    asked = dict.fromkeys(batch)
    tried, drawn = [cross_entropy], set[str]()
    while batch and not interrupted:
        runs, interrupted = search.train(batch, 0)
        tried += [trial for trial in search.trials(runs) if trial.candidate != baseline]
        batch, left = [], (number or 0) - len(asked)
        for trial in sorted(tried, key=lambda trial: trial.judgement.best(select)) if left > 0 else ():
            name = trial.candidate.objective
            near = trial.candidate if name in drawn else None
            points = methods[name].candidates(*spaces, number or 0, seed, near)
            unasked = (point for point in points if point not in asked)
            if batch := list(islice(unasked, min(left, max(_AT_LEAST, left // 2)))):
                drawn.add(name)
                break
        asked |= dict.fromkeys(batch)
    return [trial.against(cross_entropy) for trial in tried], interrupted


def _without_baseline(search: Search, baseline: TuneCandidate, *seeds: int) -> str:
    names = ", ".join(search.spec(baseline, seed).name for seed in seeds)
    return (
        f"cross-entropy must be trained to a finite validation NLL, and a run of {names} was not; "
        f"`focalcal runs failures --store {shlex.quote(str(search.store.path))}` says why"
    )


def _first_guesses(
    search: Search, methods: Mapping[str, TunedMethod], cross_entropy: TuneTrial
) -> Iterator[TuneCandidate]:
    """In the order of what is expected of them, since a search may have fewer trials: FCL where it should need no T."""

    def predicted(gammas: Sequence[float]) -> Iterator[TuneCandidate]:
        for gamma in gammas if "fcl" in methods else ():
            lam = SPACE["fcl"]["lam"].clip(search.predicted_lam(cross_entropy, gamma))
            yield methods["fcl"].candidate({"gamma": gamma, "lam": lam})

    usual = {name: method.candidate(_USUAL.get(name, {})) for name, method in methods.items()}
    if "focal" in usual:
        yield usual["focal"]
    yield from predicted(_GAMMAS[:1])
    yield from (chosen for name, chosen in usual.items() if name not in ("ce", "focal", "fcl"))
    yield from predicted(_GAMMAS[1:])


def repeat(
    search: Search, candidates: Sequence[TuneCandidate], seeds: int, criterion: str = "nll"
) -> tuple[list[Finalist], bool]:
    """Each candidate over the seeds, and whether Ctrl-C ended that early; one that failed with a seed is left out."""
    runs: dict[TuneCandidate, list[Run]] = {chosen: [] for chosen in candidates}
    for seed in range(seeds):
        trained, interrupted = search.train(candidates, seed)
        if interrupted:
            return [], True
        for chosen, run in trained.items():
            runs[chosen].append(run)
    whole = {chosen: all_runs for chosen, all_runs in runs.items() if len(all_runs) == seeds}
    return [_finalist(chosen, all_runs, search, criterion) for chosen, all_runs in whole.items()], False


def _finalist(chosen: TuneCandidate, runs: Sequence[Run], search: Search, criterion: str) -> Finalist:
    validation = tuple(search.judgement(run) for run in runs)
    gains = [part.mean(criterion, scaled=True) - part.mean(criterion, scaled=False) for part in validation]
    scaled = sum(gains) < 0 and all(math.isfinite(part.temperature) for part in validation)
    test = tuple(
        judge(run.predictions("test"), temperature=part.temperature if scaled else 1.0)
        for run, part in zip(runs, validation, strict=True)
    )
    return Finalist(chosen, scaled, validation, test)


def _check(recipe: Recipe, objectives: Sequence[str], select: str, sampler: str, **numbers: int) -> None:
    for name, value in numbers.items():
        whole_number(name, value, least=1, remedy="16 trials, 3 seeds and 3 finalists are the defaults")
    one_of("sampler", sampler, ("halton", "grid"))
    if select not in CRITERIA:
        raise ValueError(
            f"select must be one of {', '.join(CRITERIA)}, got {select!r}; a calibration error alone is lowest for a "
            "network that says the same of every row"
        )
    for name in objectives:
        check_name("objectives", name, LOSSES)
    if is_multilabel(recipe.model):
        raise ValueError(f"recipe must have one label per example, got {recipe.model}; multi-label is not searched")
    if not has_validation(recipe.data_set, recipe.data_options):
        raise ValueError(
            f"recipe must hold validation rows out to judge by, got {recipe.data_set} with none; set "
            "data_options.validation, e.g. 2000 (--data-option validation=2000)"
        )
