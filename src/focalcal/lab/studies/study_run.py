"""A study from beginning to end: its cells, those that are missing run, and what there is afterwards."""

from __future__ import annotations

import os
from dataclasses import dataclass

from focalcal.lab.store import Evaluations, Run, Spec, Store
from focalcal.lab.studies.completeness import CellGap, examine_cells, find_gaps
from focalcal.lab.studies.events import OnEvent
from focalcal.lab.studies.executors.local import LocalExecutor
from focalcal.lab.studies.grid import Executor, Outcome, run_grid
from focalcal.lab.studies.study_file import Study, check_untuned, load_study


@dataclass(frozen=True)
class StudyResult:
    """What a store has of a study, and what became of the cells that were run: what `run_study` returns.

    Args:
        study: as it was read.
        smoke: whether it is its smallest size.
        store: where the runs are.
        specs: every cell.
        evaluations: what every network is evaluated on besides.
        outcome: what became of each cell.
        runs: the whole runs among them, in the order of the specs.
        gaps: what keeps the study from being finished.

    >>> from focalcal.lab.studies import run_study
    >>> result = run_study("digits", "runs", smoke=True)  # doctest: +SKIP
    >>> result.complete, result.gaps  # doctest: +SKIP
    (True, ())
    """

    study: Study
    smoke: bool
    store: Store
    specs: tuple[Spec, ...]
    evaluations: Evaluations
    outcome: Outcome
    runs: tuple[Run, ...]
    gaps: tuple[CellGap, ...]

    @property
    def complete(self) -> int:
        """How many cells are trained and evaluated."""
        return len(self.outcome.found) + len(self.outcome.done)

    @property
    def name(self) -> str:
        """The study's; the smallest size has one of its own, lest its report take the place of the study's."""
        return f"{self.study.name}-smoke" if self.smoke else self.study.name


def run_study(
    study: Study | str | os.PathLike[str],
    store: Store | str | os.PathLike[str],
    executor: Executor | None = None,
    *,
    smoke: bool = False,
    on_event: OnEvent | None = None,
) -> StudyResult:
    """Train and evaluate the cells of a study that the store does not have yet.

    A failing cell is a gap of the result, and Ctrl-C ends in a result whose outcome is `interrupted`; the same call
    goes on where it was.

    Args:
        study: a shipped study by name, a .toml file, or what `load_study` read.
        store: a folder, made if it is not there, or a `Store`.
        executor: where cells run; by default two at a time in processes of this machine.
        smoke: the study's smallest size.
        on_event: is told what happens, see `events`.

    Returns:
        A `StudyResult`.

    >>> result = run_study("digits", "runs", smoke=True)  # doctest: +SKIP
    >>> result.complete, result.gaps  # doctest: +SKIP
    (True, ())
    """
    chosen = study if isinstance(study, Study) else load_study(study)
    check_untuned(chosen)
    opened = store if isinstance(store, Store) else Store(store)
    specs, evaluations = tuple(chosen.specs(smoke)), chosen.evaluations(smoke)
    stored = examine_cells(specs, opened)
    outcome = run_grid(
        specs,
        opened,
        executor=executor or LocalExecutor(),
        evaluations=evaluations,
        on_event=on_event,
        stored=stored,
    )
    done = set(outcome.done)
    stored |= examine_cells([spec for spec in specs if spec.key in done], opened)
    runs = [stored.get(spec.key) for spec in specs]
    return StudyResult(
        study=chosen,
        smoke=smoke,
        store=opened,
        specs=specs,
        evaluations=evaluations,
        outcome=outcome,
        runs=tuple(run for run in runs if isinstance(run, Run)),
        gaps=tuple(find_gaps(specs, opened, evaluations, stored=stored)),
    )
