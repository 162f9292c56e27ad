"""Grids that are interrupted or killed, and two at once."""

import json
import math
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Event, Thread

import pytest
from support import grid_work
from support.grid_process import PATIENCE, alive, ended, grid_process, session_of
from support.grid_work import cell, let_go

from focalcal.lab.store.store import Store
from focalcal.lab.studies import load_study
from focalcal.lab.studies.events import Failed, Finished, Progress
from focalcal.lab.studies.executors.cell import WAITS
from focalcal.lab.studies.executors.interrupts import STOPPING
from focalcal.lab.studies.executors.local import LocalExecutor
from focalcal.lab.studies.grid import Outcome, run_grid

HANGUP = pytest.param(signal.SIGHUP, marks=pytest.mark.slow)


def interrupted_once(store: Store, *, running: int, by: int) -> tuple[Outcome, list[int]]:
    """A grid of three, two at a time, in this process, interrupted when so many of its cells are running."""
    pids = []

    def interrupt(event):
        if isinstance(event, Progress):
            pids.append(int(event.note))
            if len(pids) == running:
                os.kill(os.getpid(), by)

    cells = [cell(seed) for seed in range(3)]
    executor = LocalExecutor(2, work=grid_work.until_told)
    return run_grid(cells, store, executor=executor, on_event=interrupt), pids


@pytest.mark.parametrize("stop", STOPPING)
def test_an_interrupt_stops_all_cells_and_the_grid_can_be_resumed(store, stop):
    handlers = [signal.getsignal(one) for one in STOPPING]
    outcome, pids = interrupted_once(store, running=2, by=stop)
    assert outcome == Outcome(done=(), failed=(), interrupted=True)
    assert not any(map(alive, pids))
    assert [signal.getsignal(one) for one in STOPPING] == handlers
    assert store.failures() == []  # to be interrupted is not to fail
    assert os.listdir(store.path / "tmp") == []
    let_go(store)
    resumed = run_grid([cell(seed) for seed in range(3)], store, executor=LocalExecutor(2, work=grid_work.until_told))
    assert len(resumed.done) == 3


def test_a_process_that_ignores_hangups_goes_on(store):
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)  # as nohup lets it
    let_go(store)
    try:
        outcome, _ = interrupted_once(store, running=1, by=signal.SIGHUP)
    finally:
        signal.signal(signal.SIGHUP, before)
    assert len(outcome.done) == 3


@pytest.mark.parametrize("stop", [signal.SIGINT, HANGUP])  # SIGTERM: tests/lab/cli/test_study.py
def test_what_a_terminal_sends_to_all_processes_ends_the_grid_without_a_word(store, stop):
    with grid_process(store, grid_work.until_told, seeds=3, jobs=2) as process:
        pids = [int(process.stdout.readline()) for _ in range(2)]
        assert all(map(alive, pids))
        os.killpg(process.pid, stop)  # the terminal, or a scheduler, sends it to all of them
        said, complained = process.communicate(timeout=PATIENCE)
    assert process.returncode == 0
    assert json.loads(said)["interrupted"]
    assert complained == ""
    assert not any(map(alive, pids))
    assert store.failures() == []


def test_cells_end_when_the_grid_is_killed(store, monkeypatch):
    temporary = Path(tempfile.mkdtemp())  # a short name: sockets, which the processes make there, cannot have long ones
    monkeypatch.setenv("TMPDIR", str(temporary))
    with grid_process(store, grid_work.until_told, seeds=2, jobs=2) as process:
        pids = [int(process.stdout.readline()) for _ in range(2)]
        process.kill()
        process.wait()
        assert ended(pids)
    assert {path.name.partition("_")[0] for path in temporary.iterdir()} <= {"torchinductor"}  # torch's, one per user
    shutil.rmtree(temporary)
    assert os.listdir(store.path / "tmp")  # what the cells printed, until it is an hour old
    monkeypatch.setattr("focalcal.lab.store.staging.STALE_SECONDS", -1.0)
    with store.scratch():
        assert len(os.listdir(store.path / "tmp")) == 2  # its own, and the lock of it
    assert store.missing([cell(0), cell(1)]) == [cell(0), cell(1)]
    let_go(store)
    assert len(run_grid([cell(0), cell(1)], store, executor=LocalExecutor(2, work=grid_work.until_told)).done) == 2


@pytest.mark.parametrize("work", [pytest.param(grid_work.until_told, marks=pytest.mark.slow), grid_work.in_a_long_call])
def test_nothing_of_a_killed_grid_is_left_after_a_moment(store, work):
    with grid_process(store, work, seeds=2, jobs=2) as process:
        cells = [int(process.stdout.readline()) for _ in range(2)]
        family = session_of(process.pid)
        assert {*cells, process.pid} < set(family)  # the fork server and the resource tracker besides
        process.kill()
        process.wait()
        assert ended(family, seconds=3)  # one, where no other tests run


SLOW = """
import os, sys, time
from pathlib import Path
from focalcal.lab.studies.executors.local import LocalExecutor
from focalcal.lab.studies.grid import run_grid
from focalcal.lab.store.store import Store
from support.grid_work import cell

class Slow:
    def __del__(self):
        time.sleep(100)

if sys.argv[0] == "-c":  # the fork server
    {what}
    Path({note!r}).write_text(str(os.getpid()))
    {then}

def work(spec, store, report):
    time.sleep(100)

if __name__ == "__main__":
    from slow_work import work
    run_grid([cell(0)], Store({store!r}), executor=LocalExecutor(1, work=work))
"""


@pytest.mark.parametrize(
    ("what", "then"),
    [("", "time.sleep(100)"), pytest.param("kept = Slow()", "", marks=pytest.mark.slow)],
    ids=["import", "end"],
)
def test_a_fork_server_neither_imports_on_nor_takes_its_time_to_end(store, tmp_path, what, then):
    note, script = tmp_path / "server.txt", tmp_path / "slow_work.py"
    script.write_text(SLOW.format(what=what, then=then, note=str(note), store=str(store.path)))
    paths = os.pathsep.join([str(tmp_path), str(Path(grid_work.__file__).parents[1]), os.environ.get("PYTHONPATH", "")])
    with subprocess.Popen([sys.executable, script], env=os.environ | {"PYTHONPATH": paths}) as process:
        deadline = time.monotonic() + PATIENCE
        while not (note.exists() and note.read_text()):
            assert process.poll() is None
            assert time.monotonic() < deadline
            time.sleep(0.05)
        server = int(note.read_text())
        assert alive(server)
        process.kill()
        process.wait()
        assert ended([server], seconds=20)


def test_a_cell_killed_from_outside_fails_alone(store):
    cells, pids = [cell(0), cell(1)], {}

    def kill_the_first(event):
        if isinstance(event, Progress):
            pids[event.key] = int(event.note)
            if len(pids) == 2:
                os.kill(pids[cells[0].key], signal.SIGKILL)
        elif isinstance(event, Failed):
            assert alive(pids[cells[1].key])
            let_go(store)

    outcome = run_grid(cells, store, executor=LocalExecutor(2, work=grid_work.until_told), on_event=kill_the_first)
    assert (outcome.done, outcome.failed) == ((cells[1].key,), (cells[0].key,))


def test_two_grids_on_one_store_take_different_cells_and_run_each_once(store):
    cells, working = [cell(seed) for seed in range(4)], set()

    def all_are_under_way(event):
        if isinstance(event, Progress) and event.note != WAITS:
            working.add(event.key)
            if len(working) == 4:  # two cells of each grid: no grid waits for the other
                let_go(store)

    def outcome(_):
        executor = LocalExecutor(2, work=grid_work.until_told)
        return run_grid(cells, Store(store.path), executor=executor, on_event=all_are_under_way)

    with ThreadPoolExecutor(2) as grids:
        one, two = grids.map(outcome, range(2))
    assert one.failed == two.failed == ()
    assert set(one.done + one.found) == set(two.done + two.found) == {spec.key for spec in cells}
    assert Counter(key for key, _ in grid_work.calls(store)) == {spec.key: 1 for spec in cells}
    assert len(store.runs()) == 4


@pytest.mark.parametrize("stores_it", [True, False])
def test_a_cell_that_another_process_holds_is_left_to_the_end_and_waited_for(store, stores_it):
    cells, ended_in_order, holding, let_it_go = [cell(seed) for seed in range(3)], [], Event(), Event()

    def hold():
        with store.claim(cells[0]):
            holding.set()
            assert let_it_go.wait(PATIENCE)
            if stores_it:
                grid_work.store_run(cells[0], store)

    def watch(event):
        if isinstance(event, Progress) and event.note == WAITS:
            assert event.key == cells[0].key
            let_it_go.set()
        elif isinstance(event, Finished):
            ended_in_order.append(event.key)

    holder = Thread(target=hold)
    holder.start()
    assert holding.wait(PATIENCE)
    try:
        outcome = run_grid(cells, store, executor=LocalExecutor(1, work=grid_work.at_once), on_event=watch)
    finally:
        let_it_go.set()
        holder.join()
    assert ended_in_order == [cells[1].key, cells[2].key, cells[0].key]
    assert len(outcome.done) == 3
    assert len(grid_work.calls(store)) == (2 if stores_it else 3)


def test_training_is_what_cells_do_unless_told_otherwise_and_two_grids_train_once(store):
    cells, notes = load_study("digits").specs(smoke=True)[:2], []

    def note(event):
        if isinstance(event, Progress) and event.note in ("stored", "already stored"):
            notes.append((event.key, event.note))

    def outcome(_):
        return run_grid(cells, Store(store.path), executor=LocalExecutor(2), on_event=note)

    with ThreadPoolExecutor(2) as grids:
        outcomes = list(grids.map(outcome, range(2)))
    assert all(set(one.done + one.found) == {spec.key for spec in cells} for one in outcomes)
    for spec in cells:
        assert [note for key, note in notes if key == spec.key].count("stored") == 1
        assert math.isfinite(store.run(spec.key).metrics("test")["nll"])
