"""Grids that are interrupted or killed, and two at once."""

import json
import math
import os
import signal
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import grid_work
import pytest
from grid_process import PATIENCE, alive, ended, grid_process
from grid_work import cell

from focalcal.experiments.events import Failed, Progress, Started
from focalcal.experiments.executors.local import LocalExecutor
from focalcal.experiments.grid import Outcome, run_grid
from focalcal.experiments.study import load_study
from focalcal.results.store import Store


@pytest.fixture
def store(tmp_path) -> Store:
    return Store(tmp_path / "store")


def let_go(store: Store) -> None:
    Path(f"{store.path}-go").touch()


def interrupted_once(store: Store, work, *, running: int) -> tuple[Outcome, list[int]]:
    """A grid of three, two at a time, in this process, interrupted when so many of its cells are running."""
    pids = []

    def interrupt(event):
        if isinstance(event, Progress):
            pids.append(int(event.note))
            if len(pids) == running:
                os.kill(os.getpid(), signal.SIGINT)

    cells = [cell(seed) for seed in range(3)]
    return run_grid(cells, store, executor=LocalExecutor(2, work=work), on_event=interrupt), pids


@pytest.mark.parametrize("work", [grid_work.until_told, grid_work.deaf_to_requests])
def test_an_interrupt_stops_all_cells_and_the_grid_can_be_resumed(store, work):
    handler = signal.getsignal(signal.SIGINT)
    outcome, pids = interrupted_once(store, work, running=2)
    assert outcome == Outcome(done=(), failed=(), interrupted=True)
    assert not any(map(alive, pids))
    assert signal.getsignal(signal.SIGINT) is handler
    assert store.failures() == []  # to be interrupted is not to fail
    let_go(store)
    resumed = run_grid([cell(seed) for seed in range(3)], store, executor=LocalExecutor(2, work=work))
    assert len(resumed.done) == 3


def test_a_process_that_ignores_interrupts_goes_on(store):
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    let_go(store)
    try:
        outcome, _ = interrupted_once(store, grid_work.until_told, running=1)
    finally:
        signal.signal(signal.SIGINT, before)
    assert len(outcome.done) == 3


def test_ctrl_c_in_a_terminal_ends_the_grid_without_a_word(store):
    with grid_process(store, grid_work.until_told, seeds=3, jobs=2) as process:
        pids = [int(process.stdout.readline()) for _ in range(2)]
        assert all(map(alive, pids))
        os.killpg(process.pid, signal.SIGINT)  # the terminal sends it to all of them
        said, complained = process.communicate(timeout=PATIENCE)
    assert process.returncode == 0
    assert json.loads(said)["interrupted"]
    assert complained == ""
    assert not any(map(alive, pids))


def test_cells_end_when_the_grid_is_killed(store):
    with grid_process(store, grid_work.until_told, seeds=2, jobs=2) as process:
        pids = [int(process.stdout.readline()) for _ in range(2)]
        process.kill()
        process.wait()
        assert ended(pids)
    assert store.missing([cell(0), cell(1)]) == [cell(0), cell(1)]
    let_go(store)
    assert len(run_grid([cell(0), cell(1)], store, executor=LocalExecutor(2, work=grid_work.until_told)).done) == 2


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


def test_two_grids_on_one_store_run_each_cell_once(store):
    cells, seen = [cell(seed) for seed in range(4)], []

    def both_have_begun(event):
        if isinstance(event, Started):
            seen.append(event.key)
            if len(seen) == 4:  # two cells of each grid, of which those of one wait for those of the other
                let_go(store)

    def outcome(_):
        executor = LocalExecutor(2, work=grid_work.until_told)
        return run_grid(cells, Store(store.path), executor=executor, on_event=both_have_begun)

    with ThreadPoolExecutor(2) as grids:
        one, two = grids.map(outcome, range(2))
    assert seen.count(cells[0].key) == seen.count(cells[1].key) == 2
    assert set(one.done + one.found) == set(two.done + two.found) == {spec.key for spec in cells}
    assert Counter(key for key, _ in grid_work.calls(store)) == {spec.key: 1 for spec in cells}
    assert len(store.runs()) == 4


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
