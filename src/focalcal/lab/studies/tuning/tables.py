"""The tables of a search: its trials, and its finalists beside cross-entropy."""

from __future__ import annotations

from typing import TYPE_CHECKING

from focalcal.pages.tables import Table

if TYPE_CHECKING:
    from focalcal.lab.studies.tuning import TuneResult


def trial_table(result: TuneResult) -> Table:
    """One row per trial, best first, as validation rows judge it with the first seed."""
    criterion = result.criteria[0]
    trials = sorted(result.trials, key=lambda trial: trial.judgement.best(criterion))
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


def finalist_table(result: TuneResult) -> Table:
    """One row per finalist, best first, over all seeds, with its difference from cross-entropy."""
    criterion, baseline = result.criteria[0], result.baseline
    gains = [finalist.differences(baseline, criterion) for finalist in result.finalists]
    return Table(
        {
            "finalist": [finalist.name for finalist in result.finalists],
            f"validation {criterion}": [finalist.mean(criterion) for finalist in result.finalists],
            "minus cross-entropy": [gain.mean for gain in gains],
            "low": [gain.low for gain in gains],
            "high": [gain.high for gain in gains],
            f"test {criterion}": [finalist.mean(criterion, "test") for finalist in result.finalists],
        },
        digits=4,
    )
