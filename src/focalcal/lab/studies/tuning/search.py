"""Candidates of a search, their runs, and what validation rows say of them: for `[tune]` of a study and for `tune`."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from focalcal.lab.store import Run
from focalcal.lab.store.spec import NOTHING_MORE
from focalcal.lab.studies.completeness import examine_cells
from focalcal.lab.studies.grid import run_grid
from focalcal.lab.studies.own_data import own_fingerprint
from focalcal.lab.studies.search_space import Dimension, points, rounded
from focalcal.lab.studies.spec_builder import known_options, override_recipe, spec_of
from focalcal.lab.studies.tuning.judgement import Judgement, check_held_out, judge
from focalcal.posthoc import operating_point

if TYPE_CHECKING:
    from pathlib import Path

    from focalcal.lab.store import Evaluations, Protocol, Spec, Store
    from focalcal.lab.studies.events import OnEvent
    from focalcal.lab.studies.grid import Executor
    from focalcal.lab.studies.study_grid import StudyObjective, StudySetting
    from focalcal.lab.training import Recipe

_DECAY = 1e-4  # of which multiples are tried where a recipe has no weight decay
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

    def candidate(self, options: Mapping[str, Any], rate: float = 1.0, decay: float = 1.0) -> TuneCandidate:
        """At these options, beside those that are given, and multiples of the recipe's learning rate and weight decay.

        Of a recipe without weight decay these are multiples of 1e-4, and 1 stands for none.
        """
        own = self.setting.recipe.optimizer
        changes: dict[str, float] = {}
        if rate != 1:
            changes["lr"] = rounded(rate * own.lr)
        if decay != 1:
            changes["weight_decay"] = rounded(decay * (own.weight_decay or _DECAY))
        recipe = override_recipe(self.setting.recipe, {"optimizer": changes}) if changes else self.setting.recipe
        return TuneCandidate(self, tuple(sorted({**self.objective.options, **options}.items())), recipe)

    def candidates(
        self,
        rate: Dimension,
        decay: Dimension,
        number: int,
        seed: int,
        near: TuneCandidate | None = None,
        **known: Any,
    ) -> Iterator[TuneCandidate]:
        """At most `number` points of the space, or of half of it around one; options that are known are not searched.

        See `search_space.points`.
        """
        space = {name: where for name, where in self.objective.search.items() if name not in known}
        if near is not None:
            mine, own, options = near.recipe.optimizer, self.setting.recipe.optimizer, dict(near.options)
            rate = rate.around(mine.lr / own.lr)
            decay = decay.around(mine.weight_decay / (own.weight_decay or _DECAY) or 1.0)
            space = {name: where.around(options[name]) for name, where in space.items()}
        for at_rate, at_decay, *values in points([rate, decay, *space.values()], number, seed=seed):
            yield self.candidate({**known, **dict(zip(space, values, strict=True))}, at_rate, at_decay)

    def first(self, rate: Dimension, decay: Dimension, **known: Any) -> TuneCandidate:
        """The recipe's own values and the objective's defaults, where the space has them."""
        given, defaults = {**self.objective.options, **known}, known_options(self.objective.name)
        options = {name: given.get(name, where.start(defaults[name])) for name, where in self.objective.search.items()}
        return self.candidate({**options, **known}, rate.start(1), decay.start(1))


@dataclass(frozen=True)
class TuneCandidate:
    """An objective with its options, and its recipe at a learning rate and weight decay.

    Args:
        method: the objective in its setting.
        options: pairs of name and value.
        recipe: with the learning rate and weight decay of the candidate.

    >>> from focalcal.lab.studies.tuning.tuner import methods_of
    >>> from focalcal.lab.training import recipe
    >>> method = methods_of(recipe("digits_mlp_lite"), ["fcl"])["fcl"]
    >>> method.candidate({"gamma": 3.0, "lam": 0.5}, rate=0.5).name
    'fcl(gamma=3, lam=0.5, lr=0.05)'
    """

    method: TunedMethod
    options: tuple[tuple[str, Any], ...]
    recipe: Recipe

    @property
    def objective(self) -> str:
        """The name of the loss."""
        return self.method.objective.name

    @property
    def changed(self) -> dict[str, float]:
        """Learning rate and weight decay where they are not the recipe's own."""
        mine, own = self.recipe.optimizer, self.method.setting.recipe.optimizer
        names = ("lr", "weight_decay")
        return {name: getattr(mine, name) for name in names if getattr(mine, name) != getattr(own, name)}

    @property
    def name(self) -> str:
        """For tables, e.g. fcl(gamma=3, lam=0.5)."""
        shown = {
            name: value
            for name, value in self.options
            if isinstance(value, int | float) or name in self.method.objective.search
        }
        parts = [
            f"{name}={value:g}" if isinstance(value, int | float) else f"{name}={value}"
            for name, value in {**shown, **self.changed}.items()
        ]
        return f"{self.objective}({', '.join(parts)})" if parts else self.objective


@dataclass(frozen=True, eq=False)
class TuneTrial:
    """A candidate that was trained with the first seed, and what validation rows say of it.

    feasible  whether its error is not shown to be higher than cross-entropy's, row by row, by two standard errors
    """

    candidate: TuneCandidate
    run: Run
    judgement: Judgement
    feasible: bool = True

    @property
    def method(self) -> TunedMethod:
        """Of which it is a trial."""
        return self.candidate.method

    def against(self, baseline: TuneTrial) -> TuneTrial:
        """The same, `feasible` told."""
        more_wrong = self.judgement.wrong.astype(float) - baseline.judgement.wrong
        standard_error = more_wrong.std() / math.sqrt(len(more_wrong))
        return replace(self, feasible=bool(more_wrong.mean() <= 2 * standard_error))


@dataclass(eq=False)
class Search:
    """Where candidates are trained; `notes` are what there is to know, and of whom."""

    store: Store
    executor: Executor
    protocol: Protocol
    evaluations: Evaluations = NOTHING_MORE
    data_dir: Path | None = None
    on_event: OnEvent | None = None
    notes: dict[str, list[str]] = field(default_factory=dict)
    _judgements: dict[str, Judgement] = field(default_factory=dict, init=False)
    _fingerprints: dict[Any, str | None] = field(default_factory=dict, init=False)

    def note(self, what: str, whom: str) -> None:
        """Say it, once for all of whom it is true."""
        self.notes.setdefault(what, []).append(whom)

    def sentences(self) -> tuple[str, ...]:
        """The notes."""
        return tuple(f"{'; '.join(dict.fromkeys(whom))}: {what}" for what, whom in self.notes.items())

    def train(self, candidates: Iterable[TuneCandidate], seed: int) -> tuple[dict[TuneCandidate, Run], bool]:
        """The runs that there are after the missing ones were trained; and whether Ctrl-C ended that early."""
        specs = {candidate: self.spec(candidate, seed) for candidate in candidates}
        outcome = run_grid(
            specs.values(), self.store, executor=self.executor, evaluations=self.evaluations, on_event=self.on_event
        )
        stored = examine_cells(specs.values(), self.store)
        runs = {candidate: stored.get(spec.key) for candidate, spec in specs.items()}
        return {candidate: run for candidate, run in runs.items() if isinstance(run, Run)}, outcome.interrupted

    def spec(self, candidate: TuneCandidate, seed: int) -> Spec:
        """The run of a candidate."""
        recipe, partial = candidate.recipe, self.protocol.allow_partial
        if (data := (recipe.data_set, recipe.data_options)) not in self._fingerprints:
            self._fingerprints[data] = own_fingerprint(recipe, allow_partial=partial, data_dir=self.data_dir)
        return spec_of(
            recipe,
            candidate.objective,
            candidate.options,
            seed=seed,
            protocol=self.protocol,
            fingerprint=self._fingerprints[data],
        )

    def judgement(self, run: Run) -> Judgement:
        """What the validation rows say of a run, worked out once."""
        if run.key not in self._judgements:
            held_out = run.predictions("val")
            check_held_out(held_out)
            self._judgements[run.key] = judge(held_out)
        return self._judgements[run.key]

    def trials(self, runs: Mapping[TuneCandidate, Run]) -> list[TuneTrial]:
        """Those of the runs that validation rows can judge."""
        return [
            TuneTrial(candidate, run, self.judgement(run))
            for candidate, run in runs.items()
            if math.isfinite(run.metrics("val")["nll"])
        ]

    def predicted_lam(self, cross_entropy: TuneTrial, gamma: float) -> float:
        """The lam that cross-entropy's validation rows predict for gamma."""
        try:
            point = operating_point(cross_entropy.run.predictions("val"), gamma=gamma, resamples=20)
            lam, reason = point.lam, str(point.status)
        except ValueError as error:  # labels that leave no best temperature: every one predicted, say
            lam, reason = math.nan, str(error)
        if math.isfinite(lam):
            return max(lam, 0.0)
        self.note(f"lam = {_NOTHING_TO_CANCEL:g} stands for the predicted one: {reason}", cross_entropy.method.place)
        return _NOTHING_TO_CANCEL
