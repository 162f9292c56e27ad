"""The same number of trials for every objective of a study, then its seeds: what `[tune]` asks for."""

from __future__ import annotations

import json
import math
import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any

from focalcal.core.atomic import write_atomically
from focalcal.lab.store import Evaluations, Store
from focalcal.lab.studies.executors.local import LocalExecutor
from focalcal.lab.studies.search_space import dimension, rounded
from focalcal.lab.studies.study_file import Study, load_study, parse_study
from focalcal.lab.studies.study_run import StudyResult, run_study
from focalcal.lab.studies.tuning.chosen_study import chosen_study
from focalcal.lab.studies.tuning.search import Search, TuneCandidate, TunedMethod, TuneTrial
from focalcal.pages.tables import Table

if TYPE_CHECKING:
    from focalcal.lab.studies.events import OnEvent
    from focalcal.lab.studies.grid import Executor
    from focalcal.lab.studies.study_file import Tuning

_SMOKE_TRIALS = 2


@dataclass(frozen=True, eq=False)
class TunedStudy:
    """What was tried, what was chosen, and the study of what was chosen, over its seeds.

    Args:
        study: as it was read.
        trials: in the order of the study, those that have a result.
        chosen: the best of each objective in each setting.
        notes: what else there is to know, in sentences: budgets that could not be used, choices at an end of a
            range.
        file: the study of what was chosen, which `focalcal study` and `focalcal report --study` read.
        result: that study, run; None if Ctrl-C came before.

    >>> from focalcal.lab.studies.tuning import tune_study
    >>> tuned = tune_study("study.toml", "runs")  # doctest: +SKIP
    >>> print(tuned.table())  # doctest: +SKIP
    """

    study: Study
    trials: tuple[TuneTrial, ...]
    chosen: tuple[TuneTrial, ...]
    notes: tuple[str, ...]
    file: Path | None = None
    result: StudyResult | None = None

    @property
    def interrupted(self) -> bool:
        """Whether Ctrl-C ended it; the same call goes on."""
        return self.result is None or self.result.outcome.interrupted

    def record(self) -> dict[str, Any]:
        """Plain values, for JSON."""
        rows = {"chosen": [_row(trial) for trial in self.chosen], "trials": [_row(trial) for trial in self.trials]}
        return {"title": self.study.title, "notes": list(self.notes), **rows}

    def table(self) -> Table:
        """One row per objective and setting: what was chosen, out of how many trials."""
        tried = [sum(trial.method is each.method for trial in self.trials) for each in self.chosen]
        return Table(
            {
                "setting": [trial.method.place for trial in self.chosen],
                "objective": [trial.method.name for trial in self.chosen],
                "trials": tried,
                "chosen": [trial.candidate.name for trial in self.chosen],
                "validation nll": [trial.judgement.mean("nll", scaled=False) for trial in self.chosen],
                "scaled": [trial.judgement.mean("nll", scaled=True) for trial in self.chosen],
                "T": [trial.judgement.temperature for trial in self.chosen],
            },
            digits=4,
        )


def tune_study(
    study: Study | str | os.PathLike[str],
    store: Store | str | os.PathLike[str],
    executor: Executor | None = None,
    *,
    smoke: bool = False,
    on_event: OnEvent | None = None,
) -> TunedStudy:
    """Search the options of every objective of a study with `[tune]`, with equal budgets, then train its seeds.

    In each setting every objective has the same number of trials with the first seed: learning rate and weight decay
    are always searched, its own options where its table says `search`. Points are those of a Halton sequence, so that
    all objectives see the same learning rates. The trial with the lowest validation NLL after a temperature, which is
    cross-fitted, is chosen. What was chosen is written as a study, STORE/tuning/NAME-tuned.toml, and trained with all
    seeds; test rows choose nothing. Every trial is a run of the store: the same call goes on where it was.

    Args:
        study: a .toml file, or what `load_study` read; see `Tuning` for `[tune]`, and docs/guide/tuning.md.
        store: a folder, made if it is not there, or a `Store`.
        executor: where runs are trained; by default two at a time in processes of this machine.
        smoke: the study's smallest size, with two trials.
        on_event: is told what happens.

    Returns:
        A `TunedStudy`.

    >>> tuned = tune_study("study.toml", "runs")  # doctest: +SKIP
    >>> print(tuned.table())  # doctest: +SKIP
    """
    chosen_from = study if isinstance(study, Study) else load_study(study)
    if chosen_from.tune is None:
        raise ValueError(f"{chosen_from.file}: tune must be given, got no such table; add [tune] and its `trials`")
    grid = chosen_from.grids[smoke]
    asked = grid.evaluations  # made of what is chosen alone, from weights that are kept for them
    search = Search(
        store if isinstance(store, Store) else Store(store),
        executor or LocalExecutor(),
        grid.protocol,
        Evaluations(keep_weights=True if asked.names else asked.keep_weights),
        chosen_from.data_dir,
        on_event,
    )
    budget = _SMOKE_TRIALS if smoke else chosen_from.tune.trials
    trials: dict[TunedMethod, list[TuneTrial]] = {TunedMethod(*pair): [] for pair in grid.pairs}

    def told(**more: Any) -> TunedStudy:
        best = tuple(_best(chosen_from.tune, trials.values()))
        return TunedStudy(chosen_from, tuple(chain.from_iterable(trials.values())), best, search.sentences(), **more)

    def predicted(method: TunedMethod) -> dict[str, float]:
        factor, setting = method.objective.predicted, method.setting
        if factor is None:
            return {}
        of_setting = [trial for trial in told().chosen if trial.method.setting.path == setting.path]
        cross_entropy = next((trial for trial in of_setting if trial.candidate.objective == "ce"), None)
        if cross_entropy is None:
            raise ValueError(f"{setting.base}: cross-entropy must have a result for lam to be predicted, got none")
        return {"lam": rounded(factor * search.predicted_lam(cross_entropy, method.objective.options["gamma"]))}

    for of_prediction in (False, True):  # cross-entropy and whatever needs no prediction of its first
        methods = [method for method in trials if (method.objective.predicted is not None) is of_prediction]
        tried = {method: _points(search, method, chosen_from.tune, budget, predicted(method)) for method in methods}
        runs, interrupted = search.train(chain.from_iterable(tried.values()), grid.seeds[0])
        for trial in search.trials(runs):
            trials[trial.method].append(trial)
        if interrupted:
            return told()
        for method in methods:
            _look_at(search, method, trials[method], len(tried[method]), chosen_from.tune)
    if not told().chosen:
        raise ValueError(
            f"some trial must have a result, got none of {len(trials)} objectives; `focalcal runs failures` says why"
        )
    file = search.store.path / "tuning" / f"{chosen_from.name}{'-smoke' if smoke else ''}-tuned.toml"
    file.parent.mkdir(exist_ok=True)
    text = chosen_study(chosen_from, grid, [trial.candidate for trial in told().chosen])
    write_atomically(file, text.encode())
    seeds = parse_study(text, str(file), data_dir=chosen_from.data_dir)
    tuned = told(file=file, result=run_study(seeds, search.store, search.executor, on_event=on_event))
    write_atomically(file.with_suffix(".json"), (json.dumps(tuned.record(), indent=1) + "\n").encode())
    return tuned


def _points(
    search: Search, method: TunedMethod, tuning: Tuning, budget: int, known: Mapping[str, float]
) -> list[TuneCandidate]:
    """What is tried of a method: the recipe's and the objective's own values first."""
    rate, decay = dimension(tuning.learning_rate), dimension(tuning.weight_decay)
    drawn = method.candidates(rate, decay, budget, tuning.seed, None, **known)
    tried = list(dict.fromkeys([method.first(rate, decay, **known), *drawn]))[:budget]
    if len(tried) < budget:
        what = f"can use {len(tried)} of {budget} trials, since the space has no more points"
        search.note(what, f"{method.place} {method.name}")
    return tried


def _best(tuning: Tuning | None, by_method: Iterable[list[TuneTrial]]) -> list[TuneTrial]:
    scaled = tuning is not None and tuning.select == "scaled_nll"
    return [min(trials, key=lambda trial: trial.judgement.mean("nll", scaled=scaled)) for trials in by_method if trials]


def _look_at(search: Search, method: TunedMethod, trials: list[TuneTrial], number: int, tuning: Tuning) -> None:
    """Note what a reader should know before believing the choice."""
    who = f"{method.place} {method.name}"
    if len(trials) < number:
        search.note(f"a result in {len(trials)} of {number} trials; see `focalcal runs failures`", who)
    rates = sorted({trial.candidate.recipe.optimizer.lr for trial in trials})
    for best in _best(tuning, [trials]):
        if len(rates) > 2 and (lr := best.candidate.recipe.optimizer.lr) in (rates[0], rates[-1]):
            end = "lowest" if lr == rates[0] else "highest"
            search.note(f"best at the {end} learning rate that was tried; a wider range may be better", who)


def _row(trial: TuneTrial) -> dict[str, Any]:
    """Plain values, for JSON."""
    optimizer, judgement = trial.candidate.recipe.optimizer, trial.judgement
    return {
        "setting": trial.method.place,
        "objective": trial.method.name,
        "options": dict(trial.candidate.options),
        "lr": optimizer.lr,
        "weight_decay": optimizer.weight_decay,
        "nll": judgement.mean("nll", scaled=False),
        "scaled_nll": judgement.mean("nll", scaled=True),
        "error": judgement.error,
        "temperature": None if math.isnan(judgement.temperature) else judgement.temperature,
        "key": trial.run.key,
    }
