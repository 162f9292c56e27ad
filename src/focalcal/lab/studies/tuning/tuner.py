"""Which objective, which gamma, which lam: an answer from validation data (docs/guide/tuning.md)."""

from __future__ import annotations

import math
import os
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from focalcal.core.checks import one_of, whole_number
from focalcal.core.plugins import check_name
from focalcal.lab.store import Protocol, Run, Store
from focalcal.lab.studies import LocalExecutor
from focalcal.lab.studies.own_data import own_fingerprint
from focalcal.lab.studies.spec_builder import has_validation, is_multilabel
from focalcal.lab.studies.tuning.candidates import optimizer_ranges
from focalcal.lab.studies.tuning.judgement import CRITERIA, judge
from focalcal.lab.studies.tuning.result import Finalist, TuneResult
from focalcal.lab.studies.tuning.search import BASELINE, Problem, Sampler, TuneTrial, search
from focalcal.lab.training import recipe as recipe_named
from focalcal.losses import LOSSES

if TYPE_CHECKING:
    from focalcal.lab.studies.events import OnEvent
    from focalcal.lab.studies.grid import Executor
    from focalcal.lab.studies.tuning.candidates import TuneCandidate
    from focalcal.lab.training import Recipe

OBJECTIVES = ("ce", "fcl", "focal", "brier", "ls", "dual_focal")


def tune(
    recipe: Recipe | str,
    store: Store | str | os.PathLike[str],
    *,
    objectives: Sequence[str] = OBJECTIVES,
    trials: int = 16,
    seeds: int = 3,
    finalists: int = 3,
    sampler: Sampler = "tpe",
    select: str | Sequence[str] = "nll",
    learning_rate: bool = False,
    weight_decay: bool = False,
    protocol: Protocol | None = None,
    executor: Executor | None = None,
    jobs: int = 2,
    data_dir: Path | None = None,
    storage: str | None = None,
    seed: int = 0,
    on_event: OnEvent | None = None,
) -> TuneResult:
    """Search the objective and its options for a recipe, judging by a proper score of its validation rows.

    Each candidate is judged raw and with a temperature that is cross-fitted on validation rows, and by the better
    of the two. A candidate whose error is shown to be higher than cross-entropy's is no finalist. The winner is the
    finalist with the lowest mean over the seeds, if its 95 % interval of differences from cross-entropy, paired by
    row, lies below 0. The test rows are read at the end, for the finalists.

    Args:
        recipe: a recipe or the name of one; it must hold validation rows out.
        store: every trial is a run of it: nothing is trained twice, and the same call goes on after a stop.
        objectives: names of LOSSES, or of your own as package.module:Name; cross-entropy is always among them.
        trials: how many different candidates are trained with the first seed; a grid has as many as it has points.
        seeds: how many each finalist is trained with.
        finalists: how many candidates are repeated, besides cross-entropy.
        sampler: "tpe", or "grid".
        select: "nll" or "brier"; or a pair of these and "error": the first decides, both are searched for.
        learning_rate, weight_decay: search them as well, up to a factor of sixteen from the recipe's.
        executor: where runs are trained; by default `jobs` at a time in processes of this machine.
        data_dir: the folder of the data sets, by default what FOCALCAL_DATA names; an `executor` has one of its
            own.
        storage: an Optuna storage URL, for a search by several machines; by default a file in the store.
        seed: of the sampler.
        protocol: which examples; None: all.
        jobs: how many runs at a time, where there is no `executor`.
        on_event: is told what happens.

    Returns:
        A `TuneResult`.

    >>> from focalcal.lab.studies.tuning import tune
    >>> result = tune("digits_small_cnn_lite", "runs", trials=8)  # doctest: +SKIP
    >>> print(result.sentence)  # doctest: +SKIP
    """
    chosen = recipe_named(recipe) if isinstance(recipe, str) else recipe
    criteria = (select,) if isinstance(select, str) else tuple(select)
    _check(chosen, objectives, criteria, sampler, trials=trials, seeds=seeds, finalists=finalists, jobs=jobs)
    problem = Problem(
        recipe=chosen,
        objectives=tuple(dict.fromkeys(["ce", *objectives])),
        optimizer=optimizer_ranges(chosen, learning_rate=learning_rate, weight_decay=weight_decay),
        criteria=criteria,
        protocol=protocol or Protocol(),
        store=store if isinstance(store, Store) else Store(store),
        executor=executor or LocalExecutor(jobs, options={"data_dir": data_dir}),
        fingerprint=own_fingerprint(chosen, allow_partial=(protocol or Protocol()).allow_partial, data_dir=data_dir),
        on_event=on_event,
    )
    tried, interrupted, notes = search(problem, trials=trials, sampler=sampler, seed=seed, jobs=jobs, storage=storage)
    repeated: list[Finalist] = []
    epochs = chosen.epochs * len(tried)
    if not interrupted:
        best = _best(tried, criteria, finalists)
        repeated, interrupted = repeat(problem, best, seeds)
        epochs += chosen.epochs * len(repeated) * (seeds - 1)
    ranked = sorted(repeated, key=lambda finalist: finalist.mean(criteria[0]))
    return TuneResult(tuple(tried), tuple(ranked), criteria, epochs, interrupted, notes)


def _best(trials: Sequence[TuneTrial], criteria: Sequence[str], number: int) -> list[TuneCandidate]:
    """The feasible candidates with the lowest values, and cross-entropy."""
    feasible = sorted(
        (trial for trial in trials if trial.feasible), key=lambda trial: [trial.judgement.best(c) for c in criteria]
    )
    best = [trial.candidate for trial in feasible if trial.candidate != BASELINE][:number]
    return [BASELINE, *best]


def repeat(problem: Problem, candidates: Sequence[TuneCandidate], seeds: int) -> tuple[list[Finalist], bool]:
    """Each candidate over the seeds, and whether Ctrl-C ended that early; one that failed with a seed is left out."""
    runs: dict[TuneCandidate, list[Run]] = {chosen: [] for chosen in candidates}
    for seed in range(seeds):
        trained, interrupted = problem.train(candidates, seed)
        if interrupted:
            return [], True
        for chosen, run in trained.items():
            runs[chosen].append(run)
    return [_finalist(chosen, all_runs, problem) for chosen, all_runs in runs.items() if len(all_runs) == seeds], False


def _finalist(chosen: TuneCandidate, runs: Sequence[Run], problem: Problem) -> Finalist:
    validation = tuple(problem.judgement(run) for run in runs)
    criterion = problem.criteria[0]
    gains = [part.mean(criterion, scaled=True) - part.mean(criterion, scaled=False) for part in validation]
    scaled = criterion != "error" and sum(gains) < 0 and all(math.isfinite(part.temperature) for part in validation)
    test = tuple(
        judge(run.predictions("test"), temperature=part.temperature if scaled else 1.0)
        for run, part in zip(runs, validation, strict=True)
    )
    return Finalist(chosen, scaled, validation, test)


def _check(recipe: Recipe, objectives: Sequence[str], criteria: Sequence[str], sampler: str, **numbers: int) -> None:
    for name, value in numbers.items():
        whole_number(name, value, least=1, remedy="16 trials, 3 seeds and 3 finalists are the defaults")
    one_of("sampler", sampler, ("tpe", "grid"))
    if not criteria or criteria[0] not in CRITERIA or len(criteria) > 2:
        raise ValueError(
            f"select must be one of {', '.join(CRITERIA)}, or begin with one in a pair, got {criteria!r}; a "
            "calibration error alone is lowest for a network that says the same of every row"
        )
    for criterion in criteria[1:]:
        one_of("select", criterion, (*CRITERIA, "error"))
    for name in objectives:
        check_name("objectives", name, LOSSES)
    if is_multilabel(recipe.model):
        raise ValueError(f"recipe must have one label per example, got {recipe.model}; multi-label is not searched")
    if not has_validation(recipe.data_set, recipe.data_options):
        raise ValueError(
            f"recipe must hold validation rows out to judge by, got {recipe.data_set} with none; set "
            "data_options.validation, e.g. 2000 (--data-option validation=2000)"
        )
