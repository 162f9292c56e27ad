"""The same number of trials for every objective of a study, then its seeds: what `[tune]` asks for."""

from __future__ import annotations

import json
import math
import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any

from focalcal.core.atomic import write_atomically
from focalcal.lab.store import Evaluations, Run, Spec, Store
from focalcal.lab.studies.completeness import examine_cells
from focalcal.lab.studies.executors.local import LocalExecutor
from focalcal.lab.studies.grid import run_grid
from focalcal.lab.studies.own_data import own_fingerprint
from focalcal.lab.studies.search_space import dimension, points, rounded
from focalcal.lab.studies.spec_builder import known_options, override_recipe, spec_of
from focalcal.lab.studies.study_file import Study, load_study, parse_study
from focalcal.lab.studies.study_run import StudyResult, run_study
from focalcal.lab.studies.tuning.chosen_study import chosen_study
from focalcal.lab.studies.tuning.judgement import check_held_out, judge
from focalcal.pages.tables import Table
from focalcal.posthoc import operating_point

if TYPE_CHECKING:
    from focalcal.lab.studies.events import OnEvent
    from focalcal.lab.studies.grid import Executor
    from focalcal.lab.studies.study_grid import StudyObjective, StudySetting
    from focalcal.lab.training import Recipe

_DECAY = 1e-4  # of which multiples are tried where a recipe has no weight decay
_SMOKE_TRIALS = 2
_NOTHING_TO_CANCEL = 8.0  # lam where cross-entropy is not over-confident: the Brier score has most of the say


@dataclass(frozen=True, eq=False)
class TunedMethod:
    """An objective in a setting, with its recipe and the options that its search begins with."""

    setting: StudySetting
    objective: StudyObjective

    @property
    def place(self) -> str:
        """What the setting is called."""
        return self.setting.label or f"{self.setting.recipe.data_set}/{self.setting.recipe.model}"

    @property
    def name(self) -> str:
        """What the objective is called."""
        return self.objective.label or self.objective.name

    @property
    def text(self) -> str:
        """Both."""
        return f"{self.place} {self.name}"


@dataclass(frozen=True)
class TrialPoint:
    """The options that were tried, and the recipe with the learning rate and weight decay of the trial."""

    options: tuple[tuple[str, Any], ...]
    recipe: Recipe

    @property
    def text(self) -> str:
        """For tables: what was searched."""
        optimizer = self.recipe.optimizer
        shown = {**dict(self.options), "lr": optimizer.lr, "weight_decay": optimizer.weight_decay}
        return ", ".join(
            f"{name}={value:g}" if isinstance(value, float) else f"{name}={value}" for name, value in shown.items()
        )


@dataclass(frozen=True, eq=False)
class EqualTrial:
    """A run with the first seed, and what validation rows say of it.

    Args:
        method: the objective in its setting.
        point: learning rate, weight decay and options.
        run: of the store.
        nll, error: of the validation rows.
        scaled_nll: after a temperature that other rows chose.
        temperature: the best one of all validation rows; NaN where there is none.

    >>> from focalcal.lab.studies.tuning import tune_study
    >>> tuned = tune_study("study.toml", "runs")  # doctest: +SKIP
    >>> min(tuned.trials, key=lambda trial: trial.scaled_nll).row()  # doctest: +SKIP
    """

    method: TunedMethod
    point: TrialPoint
    run: Run
    nll: float
    scaled_nll: float
    error: float
    temperature: float

    def row(self) -> dict[str, Any]:
        """Plain values, for JSON."""
        optimizer, temperature = self.point.recipe.optimizer, self.temperature
        return {
            "setting": self.method.place,
            "objective": self.method.name,
            "options": dict(self.point.options),
            "lr": optimizer.lr,
            "weight_decay": optimizer.weight_decay,
            **{name: getattr(self, name) for name in ("nll", "scaled_nll", "error")},
            "temperature": None if math.isnan(temperature) else temperature,
            "key": self.run.key,
        }


@dataclass(frozen=True, eq=False)
class TunedStudy:
    """What was tried, what was chosen, and the study of what was chosen, over its seeds.

    Args:
        trials: in the order of the study, those that have a result.
        chosen: the best of each objective in each setting.
        notes: what else there is to know, in sentences: budgets that could not be used, choices at an end of a
            range.
        file: the study of what was chosen, which `focalcal study` and `focalcal report --study` read.
        result: that study, run; None if Ctrl-C came before.
        study: as it was read.

    >>> from focalcal.lab.studies.tuning import tune_study
    >>> tuned = tune_study("study.toml", "runs")  # doctest: +SKIP
    >>> print(tuned.table())  # doctest: +SKIP
    """

    study: Study
    trials: tuple[EqualTrial, ...]
    chosen: tuple[EqualTrial, ...]
    notes: tuple[str, ...]
    file: Path | None = None
    result: StudyResult | None = None

    @property
    def interrupted(self) -> bool:
        """Whether Ctrl-C ended it; the same call goes on."""
        return self.result is None or self.result.outcome.interrupted

    def record(self) -> dict[str, Any]:
        """Plain values, for JSON."""
        rows = {"chosen": [trial.row() for trial in self.chosen], "trials": [trial.row() for trial in self.trials]}
        return {"title": self.study.title, "notes": list(self.notes), **rows}

    def table(self) -> Table:
        """One row per objective and setting: what was chosen, out of how many trials."""
        tried = [sum(trial.method is each.method for trial in self.trials) for each in self.chosen]
        return Table(
            {
                "setting": [trial.method.place for trial in self.chosen],
                "objective": [trial.method.name for trial in self.chosen],
                "trials": tried,
                "chosen": [trial.point.text for trial in self.chosen],
                "validation nll": [trial.nll for trial in self.chosen],
                "scaled": [trial.scaled_nll for trial in self.chosen],
                "T": [trial.temperature for trial in self.chosen],
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

    In each setting every objective has the same number of trials with the first seed: learning rate and weight
    decay are always searched, its own options where its table says `search`. Points are those of a Halton sequence,
    so that all objectives see the same learning rates. The trial with the lowest validation NLL after a
    temperature, which is cross-fitted, is chosen. What was chosen is written as a study,
    STORE/tuning/NAME-tuned.toml, and trained with all seeds; test rows choose nothing. Every trial is a run of the
    store: the same call goes on where it was.

    Args:
        study: a .toml file, or what `load_study` read; see `Tuning` for `[tune]`, and docs/guide/tuning.md.
        executor: where runs are trained; by default two at a time in processes of this machine.
        smoke: the study's smallest size, with two trials.
        store: a folder, made if it is not there, or a `Store`.
        on_event: is told what happens.

    Returns:
        A `TunedStudy`.

    >>> tuned = tune_study("study.toml", "runs")  # doctest: +SKIP
    >>> print(tuned.table())  # doctest: +SKIP
    """
    chosen_from = study if isinstance(study, Study) else load_study(study)
    if chosen_from.tune is None:
        raise ValueError(f"{chosen_from.file}: tune must be given, got no such table; add [tune] and its `trials`")
    search = _Search(chosen_from, store if isinstance(store, Store) else Store(store), executor, smoke, on_event)
    return search.result()


class _Search:
    """One call of `tune_study`."""

    def __init__(
        self, study: Study, store: Store, executor: Executor | None, smoke: bool, on_event: OnEvent | None
    ) -> None:
        assert study.tune is not None
        self.study, self.tuning, self.grid, self.store = study, study.tune, study.grids[smoke], store
        self.executor, self.smoke, self.on_event = executor or LocalExecutor(), smoke, on_event
        self.budget = _SMOKE_TRIALS if smoke else study.tune.trials
        self.methods = [TunedMethod(*pair) for pair in self.grid.pairs]
        self.notes: dict[str, list[str]] = {}  # by what there is to say, of whom
        self.trials: dict[TunedMethod, list[EqualTrial]] = {method: [] for method in self.methods}
        self.fingerprints: dict[Any, str | None] = {}

    def result(self) -> TunedStudy:
        """Cross-entropy and whatever needs no prediction of its, then the rest, then the seeds of what is best."""
        of_prediction = [method for method in self.methods if method.objective.predicted is not None]
        for methods in ([method for method in self.methods if method not in of_prediction], of_prediction):
            if self._train({method: self._points(method) for method in methods}):
                return self._told()
        name = f"{self.study.name}{'-smoke' if self.smoke else ''}-tuned"
        file = self.store.path / "tuning" / f"{name}.toml"
        file.parent.mkdir(exist_ok=True)
        picks = [
            (trial.method.setting, trial.method.objective, trial.point.recipe, dict(trial.point.options))
            for trial in self._best()
        ]
        if not picks:
            raise ValueError(
                f"some trial must have a result, got none of {len(self.methods)} objectives; "
                "`focalcal runs failures` says why"
            )
        text = chosen_study(self.study, self.grid, picks)
        write_atomically(file, text.encode())
        result = run_study(
            parse_study(text, str(file), data_dir=self.study.data_dir),
            self.store,
            self.executor,
            on_event=self.on_event,
        )
        told = replace(self._told(), file=file, result=result)
        write_atomically(file.with_suffix(".json"), (json.dumps(told.record(), indent=1) + "\n").encode())
        return told

    def _told(self) -> TunedStudy:
        trials = tuple(chain.from_iterable(self.trials.values()))
        notes = tuple(f"{'; '.join(places)}: {what}" for what, places in self.notes.items())
        return TunedStudy(self.study, trials, tuple(self._best()), notes)

    def _best(self) -> Iterator[EqualTrial]:
        for trials in self.trials.values():
            if trials:
                yield self._lowest(trials)

    def _lowest(self, trials: Sequence[EqualTrial]) -> EqualTrial:
        return min(trials, key=lambda trial: getattr(trial, self.tuning.select))

    def _points(self, method: TunedMethod) -> list[TrialPoint]:
        """What is tried of a method: the recipe's and the objective's own values first."""
        recipe, objective = method.setting.recipe, method.objective
        given = dict(objective.options)
        if objective.predicted is not None:
            given["lam"] = rounded(objective.predicted * self._predicted_lam(method.setting, given["gamma"]))
        rate, decay = dimension(self.tuning.learning_rate), dimension(self.tuning.weight_decay)
        space = [rate, decay, *objective.search.values()]
        known = known_options(objective.name)
        first = (
            rate.start(1),
            decay.start(1),
            *(given.get(option, where.start(known[option])) for option, where in objective.search.items()),
        )
        drawn = list(dict.fromkeys([first, *points(space, self.budget, seed=self.tuning.seed)]))[: self.budget]
        if len(drawn) < self.budget:
            what = f"can use {len(drawn)} of {self.budget} trials, since the space has no more points"
            self.notes.setdefault(what, []).append(method.text)
        return [self._point(recipe, given, objective.search, point) for point in drawn]

    def _point(
        self, recipe: Recipe, given: Mapping[str, Any], search: Mapping[str, Any], point: Sequence[Any]
    ) -> TrialPoint:
        rate, decay, *values = point
        own = recipe.optimizer
        changes = {
            "lr": own.lr if rate == 1 else rounded(rate * own.lr),
            "weight_decay": own.weight_decay if decay == 1 else rounded(decay * (own.weight_decay or _DECAY)),
        }
        options = {**given, **dict(zip(search, values, strict=True))}
        return TrialPoint(tuple(options.items()), override_recipe(recipe, {"optimizer": changes}))

    def _predicted_lam(self, setting: StudySetting, gamma: float) -> float:
        """By the validation rows of the best cross-entropy of the setting."""
        of_setting = [trial for trial in self._best() if trial.method.setting.path == setting.path]
        best = next((trial for trial in of_setting if trial.method.objective.name == "ce"), None)
        if best is None:
            raise ValueError(f"{setting.base}: cross-entropy must have a result for lam to be predicted, got none")
        try:
            point = operating_point(best.run.predictions("val"), gamma=gamma, resamples=20)
            lam, reason = point.lam, str(point.status)
        except ValueError as error:
            lam, reason = math.nan, str(error)
        if math.isfinite(lam):
            return max(lam, 0.0)
        what = f"lam = {_NOTHING_TO_CANCEL:g} stands for the predicted one: {reason}"
        self.notes.setdefault(what, []).append(best.method.place)
        return _NOTHING_TO_CANCEL

    def _train(self, tried: Mapping[TunedMethod, Sequence[TrialPoint]]) -> bool:
        """Train and judge; whether Ctrl-C ended that early."""
        specs = {(method, point): self._spec(method, point) for method, all_of in tried.items() for point in all_of}
        asked = self.grid.evaluations  # made of what is chosen alone, from weights that are kept for them
        keeping = Evaluations(keep_weights=True if asked.names else asked.keep_weights)
        outcome = run_grid(
            specs.values(), self.store, executor=self.executor, evaluations=keeping, on_event=self.on_event
        )
        stored = examine_cells(specs.values(), self.store)
        for (method, point), spec in specs.items():
            run = stored.get(spec.key)
            if isinstance(run, Run) and math.isfinite(run.metrics("val")["nll"]):
                self.trials[method].append(self._judged(method, point, run))
        if not outcome.interrupted:
            for method, all_of in tried.items():
                self._look_at(method, len(all_of))
        return outcome.interrupted

    def _judged(self, method: TunedMethod, point: TrialPoint, run: Run) -> EqualTrial:
        held_out = run.predictions("val")
        check_held_out(held_out)
        found = judge(held_out)
        nll, scaled = (found.mean("nll", scaled=scaled) for scaled in (False, True))
        return EqualTrial(method, point, run, nll, scaled, found.error, found.temperature)

    def _look_at(self, method: TunedMethod, number: int) -> None:
        """Note what a reader should know before believing the choice."""
        trials = self.trials[method]
        if len(trials) < number:
            what = f"a result in {len(trials)} of {number} trials; see `focalcal runs failures`"
            self.notes.setdefault(what, []).append(method.text)
        if not trials:
            return
        best = self._lowest(trials)
        rates = sorted({trial.point.recipe.optimizer.lr for trial in trials})
        if len(rates) > 2 and (lr := best.point.recipe.optimizer.lr) in (rates[0], rates[-1]):
            end = "lowest" if lr == rates[0] else "highest"
            what = f"best at the {end} learning rate that was tried; a wider range may be better"
            self.notes.setdefault(what, []).append(method.text)

    def _spec(self, method: TunedMethod, point: TrialPoint) -> Spec:
        protocol, recipe = self.grid.protocol, point.recipe
        if (data := (recipe.data_set, recipe.data_options)) not in self.fingerprints:
            partial, folder = protocol.allow_partial, self.study.data_dir
            self.fingerprints[data] = own_fingerprint(recipe, allow_partial=partial, data_dir=folder)
        fingerprint = self.fingerprints[data]
        return spec_of(
            recipe,
            method.objective.name,
            point.options,
            seed=self.grid.seeds[0],
            protocol=protocol,
            fingerprint=fingerprint,
        )
