"""Run what of a grid's cells the store does not have yet."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from focalcal.lab.store import Evaluations, Spec
from focalcal.lab.store.spec import NOTHING_MORE
from focalcal.lab.store.store import Store
from focalcal.lab.studies.events import Event, Examined, Failed, Finished, OnEvent

if TYPE_CHECKING:
    from focalcal.lab.studies.completeness import Stored


class Executor(Protocol):
    """Runs cells somewhere."""

    def run(
        self, specs: Sequence[Spec], store: Store, on_event: OnEvent, evaluations: Evaluations = NOTHING_MORE
    ) -> None:
        """Each spec once, in the order given, trained and evaluated; every one ends in Finished or Failed.

        A failing cell is an event and a record in the store, never an exception. Cells that another process works on
        come last. KeyboardInterrupt is raised on Ctrl-C, SIGTERM and SIGHUP, once nothing runs any more.
        """


@dataclass(frozen=True)
class Outcome:
    """What became of a grid's cells, by key, in the order of the grid.

    done         run by this call, now in the store
    failed       run by this call, without a result; `store.failures()` says why
    interrupted  whether Ctrl-C, SIGTERM or SIGHUP stopped the grid; cells in none of the tuples are left to run
    found        in the store before
    """

    done: tuple[str, ...]
    failed: tuple[str, ...]
    interrupted: bool
    found: tuple[str, ...] = ()


def run_grid(
    specs: Iterable[Spec],
    store: Store,
    *,
    executor: Executor,
    evaluations: Evaluations = NOTHING_MORE,
    on_event: OnEvent | None = None,
    stored: Stored | None = None,
) -> Outcome:
    """Train what is missing and evaluate what is not evaluated, in order, each spec once; what is there stays as it is.

    With nothing missing no process is started. A store that cannot be written to is refused (OSError) before any
    training. `on_event` is called in this thread; if it raises, the cells are stopped and the exception goes on.
    `stored` is what `examine_cells` found, if the store was looked at before.
    """
    from focalcal.lab.studies.completeness import examine_cells, is_complete

    grid = list(dict.fromkeys(specs))
    there = examine_cells(grid, store) if stored is None else stored
    missing = [spec for spec in grid if not is_complete(there.get(spec.key), evaluations)]
    ended: dict[str, Event] = {}
    interrupted = False

    def note(event: Event) -> None:
        if isinstance(event, Finished | Failed):
            ended[event.key] = event
        if on_event is not None:
            on_event(event)

    if missing:
        store.check_writable()
        try:
            note(Examined(missing))
            executor.run(missing, store, note, evaluations)
        except KeyboardInterrupt:
            interrupted = True
    to_run = {spec.key for spec in missing}
    return Outcome(
        done=_ended_in(Finished, missing, ended),
        failed=_ended_in(Failed, missing, ended),
        interrupted=interrupted,
        found=tuple(spec.key for spec in grid if spec.key not in to_run),
    )


def _ended_in(kind: type[Event], specs: Sequence[Spec], ended: dict[str, Event]) -> tuple[str, ...]:
    return tuple(spec.key for spec in specs if isinstance(ended.get(spec.key), kind))
