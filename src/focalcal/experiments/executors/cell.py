"""What happens inside a cell's process, and what it is told and tells."""

from __future__ import annotations

import faulthandler
import os
import pickle
import shutil
import signal
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from multiprocessing import parent_process
from multiprocessing.connection import Connection
from multiprocessing.util import get_temp_dir
from pathlib import Path
from typing import Any

from focalcal.experiments.events import Progress
from focalcal.experiments.executors.attempt import (
    ONE_THREAD,
    Failure,
    Work,
    attempt,
    failure_of,
    throttle,
    training_work,
)
from focalcal.experiments.executors.interrupts import STOPPING
from focalcal.results import Spec
from focalcal.results.store import Store


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
        _limit_memory(task.memory_limit)
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


def _limit_memory(limit: int) -> None:
    import resource  # not on Windows, which LocalExecutor has said

    resource.setrlimit(resource.RLIMIT_DATA, (limit, limit))


def _print_to(path: Path) -> None:
    """What this process and its libraries print, where it was when a signal killed it included, goes to a file."""
    with open(path, "wb", buffering=0) as file:
        os.dup2(file.fileno(), 1)
        os.dup2(file.fileno(), 2)
    faulthandler.enable(file=2)
