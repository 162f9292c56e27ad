"""Cells as tasks of a Ray cluster."""

from __future__ import annotations

import platform
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from multiprocessing.connection import Connection
from pathlib import Path
from types import MappingProxyType
from typing import Any

from focalcal.core.checks import finite_at_least, whole
from focalcal.core.extras import required
from focalcal.core.plugins import add_import_folders, import_folders
from focalcal.core.ray_cluster import connection
from focalcal.lab.store import Evaluations, Spec
from focalcal.lab.store.spec import NOTHING_MORE
from focalcal.lab.store.store import Store
from focalcal.lab.studies.events import OnEvent, Progress
from focalcal.lab.studies.executors.cell import (
    ONE_THREAD,
    Failure,
    Work,
    attempt,
    cell_options,
    throttle,
    training_work,
)
from focalcal.lab.studies.executors.watch import Ended, watch

_SECONDS_BETWEEN_LOOKS = 0.5
_SECONDS_TO_STOP = 3.0


class RayExecutor:
    """Each cell a task of a Ray cluster, with one thread; as many at a time as the cluster has room for.

    The store must lie on a file system that every node sees under the same path, with working file locks: a cell
    started again goes on from its workspace, and the claim keeps it single. The package must be installed there,
    and plug-ins be found in the current folder or one of PYTHONPATH, which must be there under the same path. Cells
    that another grid works on are left to it until the others have ended.

    Args:
        address: of a running cluster ("auto", "host:6379", "ray://host:10001"); None: one on this machine, for this
            grid alone, unless the process is connected to a cluster already.
        cpus_per_cell: reserved for a cell, as are.
        gpus_per_cell: which may be a fraction.
        retries: how often a cell is started again when its worker or node dies; an exception of the cell itself is
            a failure at once.
        work, options: as for `LocalExecutor`.

    >>> RayExecutor("auto", cpus_per_cell=2).cpus_per_cell  # connects when it runs
    2.0
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
        ray = required("ray", purpose="The executor ray", extra="ray")
        with connection(ray, self.address, self.retries):
            self._check_room(ray)
            task = ray.remote(_run_cell).options(
                num_cpus=self.cpus_per_cell,
                num_gpus=self.gpus_per_cell,
                max_retries=self.retries,
                retry_exceptions=False,
                runtime_env={"env_vars": ONE_THREAD},
            )
            mailbox = ray.remote(_Mailbox).options(num_cpus=0, max_restarts=-1).remote()
            path = Path(store.path).resolve()
            told = (path, self.work, cell_options(self.options, evaluations), mailbox, import_folders())
            pool = _Tasks(ray, lambda spec: task.remote(spec, *told), mailbox)
            watch(pool, specs, store, on_event, evaluations)

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


class _Tasks:
    """The tasks of a grid that are under way, as many as there are: the cluster keeps those waiting that do not fit."""

    starts_at_once = False

    def __init__(self, ray: Any, submit: Callable[[Spec], Any], mailbox: Any) -> None:
        self._ray, self._submit, self._mailbox = ray, submit, mailbox
        self._keys: dict[Any, str] = {}  # by reference
        self._asked: Any = None  # an answer of the mailbox that is under way

    def room(self) -> int:
        return sys.maxsize

    def start(self, spec: Spec) -> None:
        self._keys[self._submit(spec)] = spec.key

    def messages(self, interrupted: Connection, seconds: float | None) -> Iterator[Progress | Ended]:
        if interrupted.poll(0 if self._keys else seconds):
            raise KeyboardInterrupt
        ended, _ = self._ray.wait(list(self._keys), timeout=_SECONDS_BETWEEN_LOOKS) if self._keys else ([], [])
        yield from self._mail()
        for reference in ended:
            yield Ended(self._keys.pop(reference), self._failure(reference))

    def stop(self) -> None:
        """Cancel them, those that wait first, lest they take the place of those that run."""
        references = list(self._keys)
        for reference in reversed(references):
            self._ray.cancel(reference, force=True)  # without effect on what has ended
        if references:
            self._ray.wait(references, num_returns=len(references), timeout=_SECONDS_TO_STOP)
        self._ray.kill(self._mailbox)

    def _mail(self) -> list[Progress]:
        """What the cells have sent. A late answer is waited for next time: what it holds is nowhere else."""
        if self._asked is None:
            self._asked = self._mailbox.take_all.remote()
        if not self._ray.wait([self._asked], timeout=_SECONDS_BETWEEN_LOOKS)[0]:
            return []
        asked, self._asked = self._asked, None
        try:
            messages: list[Progress] = self._ray.get(asked)
        except self._ray.exceptions.RayActorError:  # its worker died, with what it held; Ray restarts it
            return []
        return messages

    def _failure(self, reference: Any) -> Failure | None:
        errors = self._ray.exceptions
        try:
            failure: Failure | None = self._ray.get(reference)
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
