"""One attempt at a cell, in whatever process it runs, where a failure is a value; and the process of a local one."""

from __future__ import annotations

import faulthandler
import os
import pickle
import shutil
import signal
import threading
import time
import traceback
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from multiprocessing import parent_process
from multiprocessing.connection import Connection
from multiprocessing.util import get_temp_dir
from pathlib import Path
from typing import Any

from focalcal.lab.store import Evaluations, Spec
from focalcal.lab.store.spec import NOTHING_MORE
from focalcal.lab.store.store import Store
from focalcal.lab.studies.events import Progress
from focalcal.lab.studies.executors.interrupts import STOPPING

Work = Callable[..., object]
"""work(spec, store, report=..., **options), like `run_spec`: takes the store's claim, so that of two processes one
works, and adds the run, or the `evaluations` among the options, unless they are there by then."""

ONE_THREAD = dict.fromkeys(("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS"), "1")
WAITS = "another process works on it"
_ALLOCATORS_SAY = ("can't allocate memory", "not enough memory", "out of memory")  # torch raises a bare RuntimeError


@dataclass(frozen=True)
class Failure:
    """Why a cell has no result; see `events.Failed` for the kinds."""

    kind: str
    message: str
    details: Mapping[str, Any] = field(default_factory=dict)


HELD = Failure("held", WAITS)  # no failure: to be tried again when the other has ended


def attempt(
    work: Work, spec: Spec, store: Store, report: Callable[[Progress], None], options: Mapping[str, Any]
) -> Failure | None:
    """Run the cell and see its result stored; None if it is, `HELD` if another process works on it."""
    if not store.is_free(spec):
        return HELD
    try:
        work(spec, store, report=report, **options)
    except (Exception, SystemExit) as error:  # KeyboardInterrupt is how a cluster cancels a cell: not a failure
        return failure_of(error)
    if not store.has(spec, options.get("evaluations")):
        name = getattr(work, "__qualname__", repr(work))
        return Failure("error", f"{name} returned, but the store has no run of this spec; it must call store.add")
    return None


def cell_options(options: Mapping[str, Any], evaluations: Evaluations) -> dict[str, Any]:
    """The options of a cell; work that knows of no evaluations is not asked for any."""
    return {**options, **({} if evaluations == NOTHING_MORE else {"evaluations": evaluations})}


def throttle(send: Callable[[Progress], None], *, seconds: float) -> Callable[[Progress], None]:
    """`send`, skipping what comes sooner than `seconds` after what was sent; the last step is always told."""
    last = -seconds

    def report(progress: Progress) -> None:
        nonlocal last
        now = time.monotonic()
        if now - last >= seconds or progress.done >= progress.of:
            last = now
            send(progress)

    return report


def training_work() -> Work:
    """`run_spec`, imported where it runs: a process that only starts others need not wait for torch."""
    from focalcal.lab.studies.run import run_spec

    return run_spec


def failure_of(error: BaseException) -> Failure:
    """The kind, message and traceback of an exception, and what a non-finite loss says about its batch."""
    message = "".join(traceback.format_exception_only(error)).strip()
    details = {"traceback": "".join(traceback.format_exception(error))}
    if _is_out_of_memory(error):
        return Failure("out of memory", message, details)
    from focalcal.lab.training.non_finite import NonFiniteLossError

    if isinstance(error, NonFiniteLossError):
        return Failure("non-finite loss", message, {**details, **error.record()})
    return Failure("error", message, details)


def _is_out_of_memory(error: BaseException) -> bool:
    if isinstance(error, RuntimeError):  # as is CUDA's OutOfMemoryError
        return any(words in str(error).lower() for words in _ALLOCATORS_SAY)
    return isinstance(error, MemoryError)


@dataclass(frozen=True)
class Task:
    """What a cell's process is told. Without `work` it trains with `run_spec`."""

    spec: Spec
    store: Path
    work: Work | None
    options: Mapping[str, Any]
    memory_limit: int | None


def run_cell(connection: Connection, environment: Mapping[str, str], output: Path, pickled_task: bytes) -> None:
    """Work on the task, sending Progress now and then, and at the end a failure or None; what it prints goes to a file.

    The task is unpickled here rather than on the way in, so that one which cannot be is reported like any failure.
    """
    for number in STOPPING:
        signal.signal(number, signal.SIG_IGN)  # they are the parent's affair, which kills its cells
    threading.Thread(target=_end_with_parent, daemon=True).start()
    _print_to(output)
    os.environ.clear()  # a fork server keeps the environment of the moment it was started
    os.environ.update({**environment, **ONE_THREAD})
    try:
        failure = _failure_of_task(pickle.loads(pickled_task), throttle(connection.send, seconds=0.1))
    except (Exception, SystemExit) as error:
        failure = failure_of(error)
    connection.send(failure)


def _failure_of_task(task: Task, report: Callable[[Progress], None]) -> Failure | None:
    import torch

    torch.set_num_threads(1)
    if task.memory_limit is not None:
        import resource  # not on Windows, which LocalExecutor has said

        resource.setrlimit(resource.RLIMIT_DATA, (task.memory_limit, task.memory_limit))
    return attempt(task.work or training_work(), task.spec, Store(task.store, create=False), report, task.options)


def _end_with_parent() -> None:
    """Do not train on when the parent was killed outright: it cannot say so, but its end of a pipe closes.

    Nor could it remove the folder with the socket at which its fork server is asked for cells.
    """
    parent = parent_process()
    assert parent is not None
    parent.join()
    shutil.rmtree(get_temp_dir(), ignore_errors=True)  # the parent's, known here from the start
    os._exit(1)


def _print_to(path: Path) -> None:
    """What this process and its libraries print, where it was when a signal killed it included, goes to a file."""
    with open(path, "wb", buffering=0) as file:
        os.dup2(file.fileno(), 1)
        os.dup2(file.fileno(), 2)
    faulthandler.enable(file=2)
