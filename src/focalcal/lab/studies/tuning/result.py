"""What a search ends in: trials, finalists over seeds, and one look at the test split."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from focalcal.core.atomic import write_atomically
from focalcal.losses import LOSSES
from focalcal.pages.tables import Table
from focalcal.stats import PairedInterval, bootstrap_ci

if TYPE_CHECKING:
    from focalcal.lab.studies.tuning.judgement import Judgement
    from focalcal.lab.studies.tuning.search import TuneCandidate, TuneTrial


@dataclass(frozen=True, eq=False)
class Finalist:
    """A candidate over all seeds: what validation rows say of each, and what test rows say at validation's T.

    scaled  whether it is judged, and to be used, with a temperature
    """

    candidate: TuneCandidate
    scaled: bool
    validation: tuple[Judgement, ...]
    test: tuple[Judgement, ...]

    def mean(self, criterion: str, split: str = "validation") -> float:
        """The mean over rows and seeds."""
        parts: Sequence[Judgement] = getattr(self, split)
        return float(np.mean([part.mean(criterion, scaled=self.scaled) for part in parts]))

    @property
    def temperature(self) -> float:
        """The mean over seeds of the best one; 1 where the candidate is to be used as it is."""
        return float(np.mean([part.temperature for part in self.test])) if self.scaled else 1.0

    @property
    def name(self) -> str:
        """The candidate's, and the temperature if there is one."""
        return f"{self.candidate.name}, temperature {self.temperature:.3g}" if self.scaled else self.candidate.name

    def differences(self, other: Finalist, criterion: str, split: str = "validation") -> PairedInterval:
        """This minus the other, row by row, each row's difference averaged over the seeds, and a 95 % interval."""
        pairs = zip(getattr(self, split), getattr(other, split), strict=True)
        key, other_key = (criterion, self.scaled), (criterion, other.scaled)
        rows = np.mean([mine.losses[key] - theirs.losses[other_key] for mine, theirs in pairs], axis=0)
        return bootstrap_ci(rows, resamples=2000)


@dataclass(frozen=True, eq=False)
class TuneResult:
    """What was tried and what was chosen, on validation rows; the test rows were read for the finalists alone.

    Args:
        trials: in the order of the search, with the first seed.
        finalists: best first, cross-entropy always among them, over all seeds; empty if the search was interrupted.
        criterion: what was minimised, "nll" or "brier".
        epochs: trained by this search in all, runs that were there before included.
        interrupted: whether Ctrl-C ended the search; the same call goes on.
        notes: what else there is to know, in sentences.

    >>> from focalcal.lab.studies.tuning import tune
    >>> result = tune("digits_small_cnn_lite", "runs", trials=8)  # doctest: +SKIP
    >>> print(result.sentence)  # doctest: +SKIP
    """

    trials: tuple[TuneTrial, ...]
    finalists: tuple[Finalist, ...]
    criterion: str
    epochs: int
    interrupted: bool
    notes: tuple[str, ...] = ()

    @cached_property
    def winner(self) -> Finalist:
        """The best finalist, unless cross-entropy cannot be told from it: then that."""
        best, baseline = self.finalists[0], self.baseline
        if best is baseline:
            return best
        return best if best.differences(baseline, self.criterion).high < 0 else baseline

    @property
    def baseline(self) -> Finalist:
        """Cross-entropy with the recipe as it is, which the search may have beaten at another learning rate."""
        return next(
            finalist
            for finalist in self.finalists
            if finalist.candidate.objective == "ce" and not finalist.candidate.changed
        )

    @property
    def runner_up(self) -> Finalist | None:
        """The best finalist but the winner."""
        return next((finalist for finalist in self.finalists if finalist is not self.winner), None)

    @property
    def paste(self) -> str:
        """The line to train with."""
        return _line(self.winner.candidate)

    @property
    def sentence(self) -> str:
        """What to do, and what it is worth on test rows."""
        if not self.finalists:
            return "The search was interrupted before its finalists were trained; the same call goes on."
        criterion, winner, baseline = self.criterion, self.winner, self.baseline
        if winner is baseline:
            with_temperature = f", with temperature {winner.temperature:.3g}" if winner.scaled else ""
            return (
                f"Keep cross-entropy{with_temperature}: no candidate is shown to have a lower validation {criterion}."
            )
        gain = winner.differences(baseline, criterion, "test")
        changed = "".join(f", {name} = {value:g}" for name, value in winner.candidate.changed.items())
        return (
            f"Train with {self.paste}{changed}"
            + (f" and use temperature {winner.temperature:.3g}" if winner.scaled else "")
            + f": test {criterion} {winner.mean(criterion, 'test'):.4g} instead of cross-entropy's "
            f"{baseline.mean(criterion, 'test'):.4g}{' with a temperature' if baseline.scaled else ''} "
            f"(difference {gain.mean:+.3g}, 95 % interval {gain.low:+.3g} to {gain.high:+.3g})."
        )

    def front(self, first: str = "nll", second: str = "error") -> list[TuneTrial]:
        """The trials that no other is at least as good as in both criteria and better in one, by the first."""
        front: list[TuneTrial] = []
        for trial in sorted(self.trials, key=lambda trial: [trial.judgement.best(name) for name in (first, second)]):
            if not front or trial.judgement.best(second) < front[-1].judgement.best(second):
                front.append(trial)
        return front

    def frame(self) -> dict[str, list[Any]]:
        """One row per trial as columns, which `pandas.DataFrame` takes."""
        rows = [trial_row(trial) for trial in self.trials]
        return {name: [row[name] for row in rows] for name in (rows[0] if rows else ())}

    def trial_table(self) -> Table:
        """One row per trial, best first, as validation rows judge it with the first seed."""
        criterion = self.criterion
        trials = sorted(self.trials, key=lambda trial: trial.judgement.best(criterion))
        scores = [trial.judgement for trial in trials]
        return Table(
            {
                "candidate": [trial.candidate.name for trial in trials],
                criterion: [score.mean(criterion, scaled=False) for score in scores],
                f"{criterion} scaled": [score.mean(criterion, scaled=True) for score in scores],
                "error %": [100 * score.error for score in scores],
                "T": [score.temperature for score in scores],
                "error guard": ["passed" if trial.feasible else "higher error" for trial in trials],
            },
            digits=4,
        )

    def finalist_table(self) -> Table:
        """One row per finalist, best first, over all seeds, with its difference from cross-entropy."""
        criterion, baseline = self.criterion, self.baseline
        gains = [finalist.differences(baseline, criterion) for finalist in self.finalists]
        return Table(
            {
                "finalist": [finalist.name for finalist in self.finalists],
                f"validation {criterion}": [finalist.mean(criterion) for finalist in self.finalists],
                "minus cross-entropy": [gain.mean for gain in gains],
                "low": [gain.low for gain in gains],
                "high": [gain.high for gain in gains],
                f"test {criterion}": [finalist.mean(criterion, "test") for finalist in self.finalists],
            },
            digits=4,
        )

    def html(self, path: str | os.PathLike[str], *, title: str = "Which objective, gamma and lam?") -> None:
        """Write a page that needs nothing else."""
        from focalcal.lab.studies.tuning.page import tuning_page  # the page kit is loaded where a page is asked for

        write_atomically(Path(path), tuning_page(self, title).encode())

    def record(self) -> dict[str, Any]:
        """Plain values, for JSON."""
        finalists = [
            {
                "candidate": finalist.name,
                "scaled": finalist.scaled,
                "temperature": finalist.temperature,
                "validation": {name: finalist.mean(name) for name in (self.criterion, "error")},
                "test": {name: finalist.mean(name, "test") for name in (self.criterion, "error")},
                "minus_cross_entropy": asdict(finalist.differences(self.baseline, self.criterion)),
            }
            for finalist in self.finalists
        ]
        chosen = {"winner": self.winner.name, "paste": self.paste} if finalists else {}
        trials = [trial_row(trial) for trial in self.trials]
        return {
            "sentence": self.sentence,
            **chosen,
            "notes": list(self.notes),
            "epochs": self.epochs,
            "finalists": finalists,
            "trials": trials,
        }

    def __str__(self) -> str:
        """Trials and finalists as tables, best first, then the sentence and the line to paste."""
        parts = [self.trial_table().text()] if self.trials else []
        parts += [self.finalist_table().text()] if self.finalists else []
        parts += [self.sentence, *self.notes]
        return "\n".join([*parts, *([f"\n    loss = {self.paste}"] if self.finalists else [])])

    def __repr__(self) -> str:
        """The sentence."""
        return f"TuneResult({len(self.trials)} trials): {self.sentence}"


def trial_row(trial: TuneTrial) -> dict[str, Any]:
    """A trial as a row of a table; None where an objective has no such option, or the recipe's value holds."""
    scores, options = trial.judgement, dict(trial.candidate.options)
    return {
        "candidate": trial.candidate.name,
        "objective": trial.candidate.objective,
        **{name: options.get(name) for name in ("gamma", "lam", "epsilon")},
        **{name: trial.candidate.changed.get(name) for name in ("lr", "weight_decay")},
        "nll": scores.mean("nll", scaled=False),
        "scaled_nll": scores.mean("nll", scaled=True),
        "brier": scores.mean("brier", scaled=False),
        "scaled_brier": scores.mean("brier", scaled=True),
        "error": scores.error,
        "temperature": scores.temperature,
        "feasible": trial.feasible,
        "key": trial.run.key,
    }


def _line(candidate: TuneCandidate) -> str:
    shipped = LOSSES.get(candidate.objective)
    name = candidate.objective.rpartition(":")[2] if shipped is None else shipped.__name__
    return f"{name}({', '.join(f'{key}={value!r}' for key, value in candidate.options)})"
