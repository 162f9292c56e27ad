"""Cells as tasks of a Ray cluster."""

from __future__ import annotations

import platform
import time
from collections.abc import Callable, Mapping, Sequence
from multiprocessing.connection import Connection
from pathlib import Path
from types import MappingProxyType
from typing import Any

from focalcal.core.arrays import finite_at_least
from focalcal.core.extras import required
from focalcal.core.plugins import add_import_folders, import_folders
from focalcal.core.primitives import whole
from focalcal.experiments.events import Failed, Finished, OnEvent, Progress, Started
from focalcal.experiments.executors.attempt import (
    HELD,
    WAITS,
    Failure,
    Work,
    attempt,
    cell_options,
    record,
    training_work,
)
from focalcal.experiments.executors.cell import ONE_THREAD, throttle
from focalcal.experiments.executors.interrupts import interrupts
from focalcal.experiments.executors.ray_cluster import connection
from focalcal.results import Evaluations, Spec
from focalcal.results.evaluations import NOTHING_MORE
from focalcal.results.store import Store

_SECONDS_BETWEEN_LOOKS = 0.5
_SECONDS_TO_STOP = 3.0


class RayExecutor:
    """Each cell a task of a Ray cluster, with one thread; as many at a time as the cluster has room for.

    address        of a running cluster ("auto", "host:6379", "ray://host:10001"); None: one on this machine, for this
                   grid alone, unless the process is connected to a cluster already
    cpus_per_cell  reserved for a cell, as are
    gpus_per_cell  which may be a fraction
    retries        how often a cell is started again when its worker or node dies; an exception of the cell itself is
                   a failure at once
    work, options  as for `LocalExecutor`

    The store must lie on a file system that every node sees under the same path, with working file locks: a cell
    started again goes on from its workspace, and the claim keeps it single. The package must be installed there, and
    plug-ins be found in the current folder or one of PYTHONPATH, which must be there under the same path. Cells that
    another grid works on are left to it until the others have ended.
    """

    def __init__(
        self,
        address: str | None = None,
        *,
        cpus_per_cell: float = 1,
        gpus_per_cell: float = 0,
        retries: int = 3,
        work: Work | None = None,
        options: Mapping[str, Any] = MappingProxyType({}),
    ) -> None:
        self.address = address
        self.cpus_per_cell = finite_at_least("cpus_per_cell", cpus_per_cell, 0.0)
        self.gpus_per_cell = finite_at_least("gpus_per_cell", gpus_per_cell, 0.0)
        self.retries = whole("retries", retries, 0)
        self.work = work
        self.options = dict(options)

    def run(
        self, specs: Sequence[Spec], store: Store, on_event: OnEvent, evaluations: Evaluations = NOTHING_MORE
    ) -> None:
        """Submit all specs, in order; see `grid.Executor`."""
        ray = _ray()
        with connection(ray, self.address, self.retries), interrupts() as interrupted:
            self._check_room(ray)
            mailbox = ray.remote(_Mailbox).options(num_cpus=0, max_restarts=-1).remote()
            task = ray.remote(_run_cell).options(
                num_cpus=self.cpus_per_cell,
                num_gpus=self.gpus_per_cell,
                max_retries=self.retries,
                retry_exceptions=False,
                runtime_env={"env_vars": ONE_THREAD},
            )
            path = Path(store.path).resolve()
            options = cell_options(self.options, evaluations)
            folders = import_folders()
            grid = _Grid(
                ray,
                store,
                on_event,
                evaluations,
                lambda spec: task.remote(spec, path, self.work, options, mailbox, folders),
            )
            try:
                grid.watch(specs, mailbox, interrupted)
            finally:
                cells = list(grid.cells)
                for reference in reversed(cells):  # those that wait first, lest they take the place of those that run
                    ray.cancel(reference, force=True)  # without effect on what has ended
                if cells:
                    ray.wait(cells, num_returns=len(cells), timeout=_SECONDS_TO_STOP)
                ray.kill(mailbox)

    def _check_room(self, ray: Any) -> None:
        """Ray would wait for ever for a node that is not there."""
        nodes = [node["Resources"] for node in ray.nodes() if node["Alive"]]
        wanted = {"CPU": self.cpus_per_cell, "GPU": self.gpus_per_cell}
        if not any(all(node.get(kind, 0) >= number for kind, number in wanted.items()) for node in nodes):
            there = "; ".join(", ".join(f"{node.get(kind, 0):g} {kind}" for kind in wanted) for node in nodes)
            raise ValueError(
                f"cpus_per_cell and gpus_per_cell must fit on one node, got {self.cpus_per_cell:g} and "
                f"{self.gpus_per_cell:g}; the cluster's nodes have {there}: ask for less, or add a node"
            )


class _Grid:
    """Tasks under way, and what the driver knows of them."""

    def __init__(
        self, ray: Any, store: Store, on_event: OnEvent, evaluations: Evaluations, submit: Callable[[Spec], Any]
    ) -> None:
        self.ray, self.store, self.on_event, self.submit = ray, store, on_event, submit
        self.evaluations = evaluations
        self.cells: dict[Any, Spec] = {}
        self.held: list[Spec] = []  # by others, who work on them
        self.started: dict[str, float] = {}
        self._ended: set[str] = set()
        self._asked: Any = None  # an answer of the mailbox that is under way

    def watch(self, specs: Sequence[Spec], mailbox: Any, interrupted: Connection) -> None:
        """Submit the cells, and pass on what happens until every one has ended."""
        by_key = {spec.key: spec for spec in specs}
        left = self._submit_all(specs)
        while left or self.held:
            if interrupted.poll(0 if left else _SECONDS_BETWEEN_LOOKS):
                raise KeyboardInterrupt
            free = [spec for spec in self.held if self.store.is_free(spec)]
            self.held = [spec for spec in self.held if spec not in free]
            left += self._submit_all(free)
            ended, left = self.ray.wait(left, timeout=_SECONDS_BETWEEN_LOOKS) if left else ([], [])
            for message in self._messages(mailbox):
                if message.key not in self._ended:  # a message may be slower than the end of its cell
                    self._start(by_key[message.key])
                    if message.of:
                        self.on_event(message)
            for reference in ended:
                self._conclude(reference)

    def _submit_all(self, specs: Sequence[Spec]) -> list[Any]:
        made = {self.submit(spec): spec for spec in specs}
        self.cells |= made
        return list(made)

    def _messages(self, mailbox: Any) -> list[Progress]:
        """What the cells have sent. A late answer is waited for next time: what it holds is nowhere else."""
        if self._asked is None:
            self._asked = mailbox.take_all.remote()
        if not self.ray.wait([self._asked], timeout=_SECONDS_BETWEEN_LOOKS)[0]:
            return []
        asked, self._asked = self._asked, None
        try:
            messages: list[Progress] = self.ray.get(asked)
        except self.ray.exceptions.RayActorError:  # its worker died, with what it held; Ray restarts it
            return []
        return messages

    def _start(self, spec: Spec) -> None:
        if spec.key not in self.started:  # a cell that is started again goes on, for those who watch
            self.started[spec.key] = time.monotonic()
            self.on_event(Started(spec))

    def _conclude(self, reference: Any) -> None:
        spec = self.cells[reference]
        self._start(spec)  # its message may still be under way
        failure = self._failure(reference)
        if failure == HELD:
            self.held.append(spec)
            self.on_event(Progress(spec.key, 0, 1, WAITS))
            return
        self._ended.add(spec.key)
        if failure is None or self.store.has(spec, self.evaluations):
            self.on_event(Finished(spec, time.monotonic() - self.started[spec.key]))
        else:
            failure = record(failure, spec, self.store)
            self.on_event(Failed(spec, failure.kind, failure.message))

    def _failure(self, reference: Any) -> Failure | None:
        errors = self.ray.exceptions
        try:
            failure: Failure | None = self.ray.get(reference)
        except errors.RayTaskError as error:  # it could not even be attempted
            return Failure("error", _first_line(error.cause), {"traceback": str(error)})
        except errors.OutOfMemoryError as error:
            return Failure("out of memory", f"Ray ended the cell's worker: {_first_line(error)}", {"ray": str(error)})
        except errors.RayError as error:
            return Failure("killed", f"the cell's worker died each time: {_first_line(error)}", {"ray": str(error)})
        return failure


def _first_line(error: Exception) -> str:
    return next(iter(str(error).strip().splitlines()), type(error).__name__)


class _Mailbox:
    """An actor: what cells tell the driver, which looks now and then."""

    def __init__(self) -> None:
        self._messages: list[Progress] = []

    def put(self, message: Progress) -> None:
        """From a cell."""
        self._messages.append(message)

    def take_all(self) -> list[Progress]:
        """For the driver."""
        messages, self._messages = self._messages, []
        return messages


def _run_cell(
    spec: Spec, path: Path, work: Work | None, options: Mapping[str, Any], mailbox: Any, folders: Sequence[str]
) -> Failure | None:
    """The task; what it returns is None or why there is no run. Plug-ins are looked for in `folders` as well."""
    if not path.is_dir():
        raise FileNotFoundError(
            f"{platform.node()} does not see the store {path}; put it on a file system that every node mounts there"
        )
    import torch

    add_import_folders(folders)
    torch.set_num_threads(1)
    mailbox.put.remote(Progress(spec.key, 0, 0))  # nothing of nothing: it has started
    report = throttle(mailbox.put.remote, seconds=1.0)
    return attempt(work or training_work(), spec, Store(path, create=False), report, options)


def _ray() -> Any:
    return required("ray", purpose="The executor ray", extra="ray")
