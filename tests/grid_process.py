"""A grid in a process of its own, to be interrupted and killed: `python grid_process.py STORE WORK SEEDS JOBS`.

Prints the process of each cell that says so, one a line, and at the end what became of the grid, as JSON.
"""

import json
import subprocess
import sys
from contextlib import contextmanager
from dataclasses import asdict

import grid_work

from focalcal.experiments.events import Progress
from focalcal.experiments.executors.local import LocalExecutor
from focalcal.experiments.grid import run_grid
from focalcal.results.store import Store


@contextmanager
def grid_process(store: Store, work, *, seeds: int, jobs: int):
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

    executor = LocalExecutor(int(jobs), work=getattr(grid_work, work))
    cells = [grid_work.cell(seed) for seed in range(int(seeds))]
    print(json.dumps(asdict(run_grid(cells, Store(path), executor=executor, on_event=show))))


if __name__ == "__main__":
    main(*sys.argv[1:])
