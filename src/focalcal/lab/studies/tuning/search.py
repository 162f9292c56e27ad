"""The search itself: an Optuna study whose trials are runs of a store."""

from __future__ import annotations

import hashlib
import json
import math
import shlex
import warnings
from collections.abc import Iterable, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from focalcal.core.extras import required
from focalcal.lab.store import Run
from focalcal.lab.studies.completeness import examine_cells
from focalcal.lab.studies.grid import run_grid
from focalcal.lab.studies.search_space import SPACE
from focalcal.lab.studies.tuning.candidates import TuneCandidate, candidate, grid, suggest, usual
from focalcal.lab.studies.tuning.judgement import Judgement, check_held_out, judge
from focalcal.posthoc import operating_point

if TYPE_CHECKING:
    from collections.abc import Iterator

    import optuna

    from focalcal.lab.store import Protocol, Spec, Store
    from focalcal.lab.studies.events import OnEvent
    from focalcal.lab.studies.grid import Executor
    from focalcal.lab.studies.search_space import Range
    from focalcal.lab.training import Recipe

Sampler = Literal["tpe", "grid"]
BASELINE = candidate("ce")
_GAMMA, _OTHER_GAMMAS = 3.0, (2.0, 5.0)  # of the first guesses
_ASKED_AT_MOST = 5  # times the trials wanted: a small space has fewer different candidates than that


@dataclass(frozen=True)
class Problem:
    """What is searched, and where it is trained; `fingerprint` is of data that are not shipped."""

    recipe: Recipe
    objectives: tuple[str, ...]
    optimizer: Mapping[str, Range]
    criteria: tuple[str, ...]
    protocol: Protocol
    store: Store
    executor: Executor
    fingerprint: str | None = None
    on_event: OnEvent | None = field(default=None, repr=False)
    _judgements: dict[str, Judgement] = field(default_factory=dict, init=False, repr=False)

    def spec(self, chosen: TuneCandidate, seed: int = 0) -> Spec:
        """The run of a candidate."""
        return chosen.spec(self.recipe, seed=seed, protocol=self.protocol, fingerprint=self.fingerprint)

    @property
    def name(self) -> str:
        """Of the Optuna study: the same for the same question, so that the same call goes on with it."""
        ranges = sorted((name, values.low, values.high) for name, values in self.optimizer.items())
        asked = [self.spec(BASELINE).key, self.objectives, ranges, self.criteria]
        digest = hashlib.sha256(json.dumps(asked).encode()).hexdigest()[:10]
        return f"{self.recipe.data_set.replace(':', '.')}-{self.recipe.model.replace(':', '.')}-{digest}"

    def params(self, chosen: TuneCandidate) -> dict[str, Any] | None:
        """A candidate as the sampler names it; None if the recipe's own value of what is searched is out of range."""
        own = {name: limits.own for name, limits in self.optimizer.items()} | chosen.params
        return None if None in own.values() else own

    def candidate(self, params: Mapping[str, Any]) -> TuneCandidate:
        """What Optuna's parameters stand for."""
        import optuna

        return suggest(optuna.trial.FixedTrial(dict(params)), self.objectives, self.optimizer)

    def judgement(self, run: Run) -> Judgement:
        """What the validation rows say of a run, worked out once."""
        if run.key not in self._judgements:
            self._judgements[run.key] = judge(run.predictions("val"))
        return self._judgements[run.key]

    def values(self, run: Run) -> list[float]:
        """What Optuna minimises."""
        return [self.judgement(run).best(criterion) for criterion in self.criteria]

    def train(self, candidates: Iterable[TuneCandidate], seed: int = 0) -> tuple[dict[TuneCandidate, Run], bool]:
        """The runs that there are after the missing ones were trained; and whether Ctrl-C ended that early."""
        specs = {chosen: self.spec(chosen, seed) for chosen in candidates}
        outcome = run_grid(specs.values(), self.store, executor=self.executor, on_event=self.on_event)
        stored = examine_cells(specs.values(), self.store)
        runs = {chosen: stored.get(spec.key) for chosen, spec in specs.items()}
        return {chosen: run for chosen, run in runs.items() if isinstance(run, Run)}, outcome.interrupted


@dataclass(frozen=True, eq=False)
class TuneTrial:
    """A candidate that was trained with the first seed, and what validation rows say of it.

    feasible  whether its error is not shown to be higher than cross-entropy's, row by row, by two standard errors
    """

    candidate: TuneCandidate
    run: Run
    judgement: Judgement
    feasible: bool


class Searched(NamedTuple):
    """The trials, whether Ctrl-C ended the search early, and what else there is to know, in sentences."""

    trials: list[TuneTrial]
    interrupted: bool
    notes: tuple[str, ...] = ()


def search(
    problem: Problem, *, trials: int, sampler: Sampler, seed: int, jobs: int, storage: str | None = None
) -> Searched:
    """Train and judge candidates until so many different ones are there.

    Cross-entropy comes first, then focal loss (FCL with lam = 0), FCL at the lams that cross-entropy's validation rows
    predict for several gammas, and every other objective at its usual options; then every point of a grid, or what
    Optuna's TPE asks for. Trials of an earlier call count. A run that fails is left out.
    """
    runs, interrupted = problem.train([BASELINE])
    if BASELINE not in runs:
        if interrupted:
            return Searched([], interrupted=True)
        raise ValueError(
            f"cross-entropy must be trained first, and {problem.spec(BASELINE).name} could not be; "
            f"`focalcal runs failures --store {shlex.quote(str(problem.store.path))}` says why"
        )
    check_held_out(runs[BASELINE].predictions("val"))
    baseline, notes, predicted = problem.judgement(runs[BASELINE]), list[str](), list[TuneCandidate]()
    try:
        predicted = _predicted(problem, runs[BASELINE])
    except ValueError as error:  # labels that leave no best temperature: every one predicted, say
        notes.append(f"Cross-entropy's validation rows predict no lam: {error}.")
    guesses = _first_guesses(problem, predicted)
    guesses = [*guesses, *grid(problem.objectives, problem.optimizer)] if sampler == "grid" else guesses[:trials]
    if not interrupted:
        runs, interrupted = problem.train(guesses)
    if sampler == "tpe" and not interrupted:
        interrupted = _sample(problem, runs, trials=trials, seed=seed, jobs=jobs, storage=storage)
    tried = [_trial(chosen, run, problem.judgement(run), baseline) for chosen, run in runs.items()]
    return Searched(tried, interrupted, tuple(notes))


def _first_guesses(problem: Problem, predicted: Sequence[TuneCandidate]) -> list[TuneCandidate]:
    """In the order of what is expected of them: a search may have fewer trials."""
    others = [usual(name) for name in problem.objectives if name not in ("ce", "fcl", "focal")]
    focal = [usual("focal")] if "focal" in problem.objectives else []
    return [BASELINE, *focal, *predicted[:1], *others, *predicted[1:]]


def _sample(
    problem: Problem, runs: dict[TuneCandidate, Run], *, trials: int, seed: int, jobs: int, storage: str | None
) -> bool:
    """Add what TPE asks for to `runs`; whether Ctrl-C ended that early."""
    with _quiet_optuna() as optuna:
        states = optuna.trial.TrialState
        study = _open(optuna, problem, storage, seed)
        if not study.get_trials(deepcopy=False):
            for chosen, run in runs.items():
                if (params := problem.params(chosen)) is None:
                    continue
                study.enqueue_trial(params)
                trial = study.ask()
                suggest(trial, problem.objectives, problem.optimizer)
                study.tell(trial, problem.values(run))
        earlier = {
            state: study.get_trials(deepcopy=False, states=(state,)) for state in (states.COMPLETE, states.RUNNING)
        }
        complete = [problem.candidate(trial.params) for trial in earlier[states.COMPLETE]]
        found, interrupted = problem.train(complete)
        runs |= found
        batch = [(trial.number, problem.candidate(trial.params)) for trial in earlier[states.RUNNING] if trial.params]
        asked = 0
        while not interrupted and (batch or (len(runs) < trials and asked < _ASKED_AT_MOST * trials)):
            while len(batch) < min(jobs, trials - len(runs)):
                trial = study.ask()
                batch.append((trial.number, suggest(trial, problem.objectives, problem.optimizer)))
            asked += len(batch)
            found, interrupted = problem.train([chosen for _, chosen in batch])
            runs |= found
            for number, chosen in batch:
                if chosen in found:
                    study.tell(number, problem.values(found[chosen]), skip_if_finished=True)
                elif not interrupted:  # else it is trained by the call that goes on
                    study.tell(number, state=states.FAIL, skip_if_finished=True)
            batch = []
    return interrupted


def _predicted(problem: Problem, run: Run) -> list[TuneCandidate]:
    """FCL where cross-entropy's validation rows say that it cancels the overfitting."""
    if "fcl" not in problem.objectives:
        return []
    point = operating_point(run.predictions("val"), gamma=_GAMMA, gammas=_OTHER_GAMMAS, resamples=200)
    space = SPACE["fcl"]
    gamma = _GAMMA if point.gamma_needed is None else space["gamma"].clip(point.gamma_needed)
    lams = {gamma: point.lam} | {match.gamma: match.lam for match in point.matches if match.matched}
    return [candidate("fcl", gamma=gamma, lam=space["lam"].clip(lam)) for gamma, lam in lams.items()]


def _trial(chosen: TuneCandidate, run: Run, scores: Judgement, baseline: Judgement) -> TuneTrial:
    more_wrong = scores.wrong.astype(float) - baseline.wrong
    standard_error = more_wrong.std() / math.sqrt(len(more_wrong))
    return TuneTrial(chosen, run, scores, feasible=bool(more_wrong.mean() <= 2 * standard_error))


def _open(library: Any, problem: Problem, storage: str | None, seed: int) -> optuna.Study:
    if storage is None:
        folder = problem.store.path / "tuning"
        folder.mkdir(exist_ok=True)
        journal = library.storages.journal.JournalFileBackend(str(folder / f"{problem.name}.log"))
        opened: Any = library.storages.JournalStorage(journal)
    else:
        opened = storage
    study: optuna.Study = library.create_study(
        study_name=problem.name,
        storage=opened,
        sampler=library.samplers.TPESampler(seed=seed, multivariate=True, group=True, constant_liar=True),
        directions=["minimize"] * len(problem.criteria),
        load_if_exists=True,
    )
    return study


@contextmanager
def _quiet_optuna() -> Iterator[Any]:
    """Optuna, without a line per trial and without warnings that parts of it may change."""
    optuna = required("optuna", purpose="search by TPE")
    before = optuna.logging.get_verbosity()
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", optuna.exceptions.ExperimentalWarning)
            yield optuna
    finally:
        optuna.logging.set_verbosity(before)
