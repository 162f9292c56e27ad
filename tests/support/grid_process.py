"""A grid in a process of its own, to be interrupted and killed: `python grid_process.py STORE WORK SEEDS JOBS`.

JOBS is how many cells run at a time, or `ray` for a cluster of its own.

Prints the process of each cell that says so, one a line, and at the end what became of the grid, as JSON.
"""

import json
import subprocess
import sys
import time
from contextlib import contextmanager, suppress
from dataclasses import asdict
from pathlib import Path

from focalcal.lab.store.store import Store
from focalcal.lab.studies.events import Progress
from focalcal.lab.studies.executors.local import LocalExecutor
from focalcal.lab.studies.executors.ray import RayExecutor
from focalcal.lab.studies.grid import run_grid
from support import grid_work

PATIENCE = 60  # seconds, for a machine that does other things as well


def alive(pid: int) -> bool:
    """Whether there is such a process, not merely its exit code."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except (FileNotFoundError, ProcessLookupError):
        return False


def session_of(leader: int) -> list[int]:
    """Every process of the session that it began, cells and their fork server included, whoever their parent is now."""
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        with suppress(FileNotFoundError, ProcessLookupError):
            if int((folder / "stat").read_text().rpartition(")")[2].split()[3]) == leader:
                found.append(int(folder.name))
    return found


def ended(pids: list[int], seconds: float = PATIENCE) -> bool:
    """Whether all of them end, given time."""
    deadline = time.monotonic() + seconds
    while any(map(alive, pids)) and time.monotonic() < deadline:
        time.sleep(0.05)
    return not any(map(alive, pids))


@contextmanager
def grid_process(store: Store, work, *, seeds: int, jobs: int | str):
    """Such a process, leader of a group as a terminal's is; it does not outlive the block."""
    command = [sys.executable, __file__, str(store.path), work.__name__, str(seeds), str(jobs)]
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    with subprocess.Popen(command, start_new_session=True, **pipes) as process:
        try:
            yield process
        finally:
            process.kill()


def main(path: str, work: str, seeds: str, jobs: str) -> None:
    def show(event) -> None:
        if isinstance(event, Progress):
            print(event.note, flush=True)

    function = getattr(grid_work, work)
    executor = RayExecutor(work=function) if jobs == "ray" else LocalExecutor(int(jobs), work=function)
    cells = [grid_work.cell(seed) for seed in range(int(seeds))]
    print(json.dumps(asdict(run_grid(cells, Store(path), executor=executor, on_event=show))))


if __name__ == "__main__":
    main(*sys.argv[1:])
