"""Cells as processes of this machine."""

from __future__ import annotations

import multiprocessing
import os
import pickle
import re
import signal
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from multiprocessing import resource_tracker
from multiprocessing.connection import Connection, wait
from multiprocessing.context import ForkServerContext, SpawnContext
from multiprocessing.process import BaseProcess
from pathlib import Path
from types import MappingProxyType
from typing import Any

from focalcal.core.checks import whole
from focalcal.lab.store import Evaluations, Spec
from focalcal.lab.store.spec import NOTHING_MORE
from focalcal.lab.store.store import Store
from focalcal.lab.studies.events import OnEvent, Progress
from focalcal.lab.studies.executors import fork_server
from focalcal.lab.studies.executors.cell import ONE_THREAD, Failure, Task, Work, cell_options, run_cell
from focalcal.lab.studies.executors.interrupts import blocked_for_children
from focalcal.lab.studies.executors.watch import Ended, watch

_PRELOADED = (
    fork_server.__name__,  # first
    run_cell.__module__,
    "focalcal.lab.studies.run",
    "torch._dynamo",
    "sklearn.datasets",
    "sklearn.model_selection",
)
_NO_ALLOCATOR_THREAD = {"JE_ARROW_MALLOC_CONF": "background_thread:false"}  # of pyarrow, which comes with scikit-learn
# glibc keeps what is freed: asking the kernel for every activation again takes a quarter of a ResNet-8's step.
_KEPT_MEMORY = {"MALLOC_MMAP_MAX_": "0", "MALLOC_TRIM_THRESHOLD_": str(1 << 40)}
_SECONDS_TO_STOP = 3.0  # between the last word of a process and ending it
_LONGEST_OUTPUT = 4000  # characters kept of what a killed process printed


class LocalExecutor:
    """Each cell in a process of its own, `jobs` at a time, each with one thread: the numbers do not depend on `jobs`.

    A cell that raises, runs out of memory or is killed is recorded and does not disturb the others. A cell that
    another process works on is left to it: the next free one is taken, and those that are still held at the end are
    waited for. Ctrl-C, SIGTERM and SIGHUP end all cells, and so does the end of this process, however it comes;
    what they have saved in their workspaces serves the next attempt. Scripts that use this need `if __name__ ==
    "__main__":`, as with `multiprocessing`.

    Args:
        work: what a cell does, see `cell.Work`; a module-level function. None: `run_spec`.
        options: passed on to it: data_dir, device, ...
        memory_limit: bytes of memory a cell may allocate (RLIMIT_DATA), torch's own 0.3 GB included; None: no
            limit.
        jobs: how many cells run at a time.

    >>> LocalExecutor(jobs=4).jobs
    4
    """

    def __init__(
        self,
        jobs: int = 2,
        *,
        work: Work | None = None,
        options: Mapping[str, Any] = MappingProxyType({}),
        memory_limit: int | None = None,
    ) -> None:
        self.jobs = whole("jobs", jobs, 1)
        self.work = work
        self.options = dict(options)
        self.memory_limit = None if memory_limit is None else whole("memory_limit", memory_limit, 1)
        try:
            pickle.dumps((self.work, self.options))
        except (pickle.PicklingError, AttributeError, TypeError) as error:
            raise TypeError(
                f"work must be a function at the top level of a module, and options plain values, got {work!r} and "
                f"{self.options!r}: other processes must be able to import them ({error})"
            ) from error
        if memory_limit is not None and sys.platform == "win32":
            raise ValueError("memory_limit must be None on Windows, which has no such limit; leave it away")

    def run(
        self, specs: Sequence[Spec], store: Store, on_event: OnEvent, evaluations: Evaluations = NOTHING_MORE
    ) -> None:
        """Run the specs in order, those that other processes work on last; see `grid.Executor`."""
        options = cell_options(self.options, evaluations)
        with store.scratch() as printed:
            watch(_Processes(self, store, options, printed.resolve()), specs, store, on_event, evaluations)


class _Processes:
    """The processes of a grid, `jobs` at a time; what each prints goes to a file in a folder."""

    starts_at_once = True

    def __init__(self, executor: LocalExecutor, store: Store, options: Mapping[str, Any], folder: Path) -> None:
        self._executor, self._store, self._options, self._folder = executor, store, options, folder
        self._context = _context(executor.work)
        self._cells: list[_Cell] = []

    def room(self) -> int:
        return self._executor.jobs - len(self._cells)

    def start(self, spec: Spec) -> None:
        where = Path(self._store.path).resolve()
        task = Task(spec, where, self._executor.work, self._options, self._executor.memory_limit)
        output = self._folder / spec.key
        receiver, sender = self._context.Pipe(duplex=False)
        with sender:
            arguments = (sender, dict(os.environ), output, pickle.dumps(task))
            process = self._context.Process(target=run_cell, args=arguments)
            with blocked_for_children():
                process.start()
        self._cells.append(_Cell(spec, process, receiver, output))

    def messages(self, interrupted: Connection, seconds: float | None) -> Iterator[Progress | Ended]:
        sources = [interrupted, *(source for cell in self._cells for source in cell.sources())]
        ready = wait(sources, timeout=seconds)
        if interrupted in ready:
            raise KeyboardInterrupt
        for cell in [cell for cell in self._cells if not set(ready).isdisjoint(cell.sources())]:
            yield from cell.receive()
            if cell.over(ready):
                self._cells.remove(cell)
                yield Ended(cell.spec.key, cell.end())

    def stop(self) -> None:
        for cell in self._cells:
            cell.process.kill()
        for cell in self._cells:
            cell.process.join()
            cell.close()


class _Cell:
    """A running process and what is known of it."""

    def __init__(self, spec: Spec, process: BaseProcess, connection: Connection, output: Path) -> None:
        self.spec, self.process, self._output = spec, process, output
        self._connection: Connection | None = connection
        self._last_word: list[Failure | None] = []  # of a process that was not killed

    def sources(self) -> list[Any]:
        """What to wait for: messages, and the end of the process, which may come without one."""
        return [self.process.sentinel, *([self._connection] if self._connection else [])]

    def over(self, ready: Sequence[Any]) -> bool:
        """Whether the process has ended, or has said its last word and is about to."""
        return bool(self._last_word) or self.process.sentinel in ready

    def receive(self) -> Iterator[Progress]:
        """The progress that has arrived; never waits for more."""
        while self._connection is not None:
            try:
                if not self._connection.poll():
                    return
                message = self._connection.recv()
            except (EOFError, OSError):  # it has ended, perhaps in the middle of a message
                self._close_connection()
                return
            if isinstance(message, Progress):
                yield message
            else:
                self._last_word.append(message)

    def end(self) -> Failure | None:
        """See the process gone that is over; why it has no result, if it has none."""
        self.process.join(_SECONDS_TO_STOP)  # it takes milliseconds, unless a thread of its own holds it up
        self.process.kill()
        self.process.join()
        failure = self._last_word[0] if self._last_word else _death(self.process.exitcode, self._output)
        self.close()
        return failure

    def close(self) -> None:
        """Give the pipes back."""
        self._close_connection()
        self.process.close()

    def _close_connection(self) -> None:
        if self._connection is not None:
            self._connection.close()
            self._connection = None


def _death(code: int | None, output: Path) -> Failure:
    """What can be said about a process that ended without a word."""
    if code is not None and code < 0:
        name = signal.Signals(-code).name if -code in set(signal.Signals) else f"signal {-code}"
        hint = "; the kernel does so when memory runs out" if name == "SIGKILL" else ""
        message = f"the cell's process was killed by {name}{hint}"
    else:
        message = f"the cell's process ended with exit code {code} before it had a result"
    printed = output.read_text(errors="replace") if output.exists() else ""
    printed = re.sub(r"^Extension modules: .*\n?", "", printed, flags=re.MULTILINE)  # after a crash: thousands of names
    return Failure("killed", message, {"exit_code": code, "output": printed[-_LONGEST_OUTPUT:]})


def _context(work: Work | None) -> ForkServerContext | SpawnContext:
    """Processes forked from a server that has imported torch, where forking is safe; else fresh ones.

    Importing torch and what its optimizers import takes seconds, forking milliseconds. The server must have no
    threads when it forks: it imports with one BLAS and OpenMP thread, and computes nothing. (macOS's own libraries
    do not survive a fork.)
    """
    resource_tracker.ensure_running()  # before signals are blocked: it unblocks them
    if "forkserver" not in multiprocessing.get_all_start_methods() or sys.platform == "darwin":
        return multiprocessing.get_context("spawn")
    from multiprocessing import forkserver

    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload([*_PRELOADED, *([work.__module__] if work else [])])  # no effect on a running server
    started_by = {fork_server.STARTED_BY: str(os.getpid())}
    with _environment({**ONE_THREAD, **_NO_ALLOCATOR_THREAD, **_KEPT_MEMORY, **started_by}), blocked_for_children():
        forkserver.ensure_running()
    return context


@contextmanager
def _environment(values: Mapping[str, str]) -> Iterator[None]:
    before = {name: os.environ.get(name) for name in values}
    os.environ.update(values)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value
