"""The cells of a grid, wherever they run: what is started next, what is waited for, and what is told of it."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from multiprocessing.connection import Connection
from typing import Protocol

from focalcal.lab.store import Evaluations, Spec
from focalcal.lab.store.store import Store
from focalcal.lab.studies.events import Failed, Finished, OnEvent, Progress, Started
from focalcal.lab.studies.executors.cell import HELD, WAITS, Failure
from focalcal.lab.studies.executors.interrupts import interrupts

_SECONDS_BETWEEN_LOOKS = 1.0  # at cells that other processes work on


@dataclass(frozen=True)
class Ended:
    """The end of a cell: its run is stored, or why not."""

    key: str
    failure: Failure | None


class Pool(Protocol):
    """Where cells run. A cell that waits for its turn there, unless it `starts_at_once`, tells when it begins."""

    starts_at_once: bool

    def room(self) -> int:
        """How many more cells it takes now."""

    def start(self, spec: Spec) -> None:
        """Begin a cell."""

    def messages(self, interrupted: Connection, seconds: float | None) -> Iterable[Progress | Ended]:
        """What cells tell, waited for no longer than `seconds`; KeyboardInterrupt if `interrupted` has something."""

    def stop(self) -> None:
        """End all cells, and wait for that."""


def watch(pool: Pool, specs: Sequence[Spec], store: Store, on_event: OnEvent, evaluations: Evaluations) -> None:
    """Run the specs in order, those that other processes work on last; see `grid.Executor`."""
    waiting, running, since = deque(specs), dict[str, Spec](), dict[str, float]()

    def begin(spec: Spec) -> None:
        if spec.key not in since:  # a cell that is started again goes on, for those who watch
            since[spec.key] = time.monotonic()
            on_event(Started(spec))

    def next_free() -> Spec | None:
        """The first cell that no other process works on, taken out of those that wait; None if there is none."""
        for spec in waiting:
            looks_itself = not pool.starts_at_once and spec.key not in since
            if looks_itself or store.is_free(spec):
                waiting.remove(spec)
                return spec
        return None

    def conclude(spec: Spec, failure: Failure | None) -> None:
        if failure == HELD:
            waiting.append(spec)
            on_event(Progress(spec.key, 0, 1, WAITS))
        elif failure is None or store.has(spec, evaluations):  # a process may die after it has stored its run
            on_event(Finished(spec, time.monotonic() - since[spec.key]))
        else:
            on_event(Failed(spec, failure.kind, _record(failure, spec, store)))

    with interrupts() as interrupted:
        try:
            while waiting or running:
                while pool.room() and (free := next_free()) is not None:
                    pool.start(free)
                    running[free.key] = free
                    if pool.starts_at_once:
                        begin(free)
                held = list(waiting)[: pool.room()]
                for spec in (spec for spec in held if spec.key not in since):
                    begin(spec)
                    on_event(Progress(spec.key, 0, 1, WAITS))
                for message in pool.messages(interrupted, _SECONDS_BETWEEN_LOOKS if held else None):
                    if message.key not in running:  # a message may be slower than the end of its cell
                        continue
                    begin(running[message.key])
                    if isinstance(message, Ended):
                        conclude(running.pop(message.key), message.failure)
                    elif message.of:
                        on_event(message)
        finally:
            pool.stop()


def _record(failure: Failure, spec: Spec, store: Store) -> str:
    """Write the failure to the store; its message, which says so if not even that is possible."""
    try:
        store.record_failure(spec, kind=failure.kind, message=failure.message, details=failure.details)
    except OSError as error:
        return f"{failure.message} (which the store could not record: {error})"
    return failure.message
