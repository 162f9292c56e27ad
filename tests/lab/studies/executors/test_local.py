import multiprocessing
import os
from functools import partial

import pytest
import torch
from support import grid_work
from support.grid_work import cell

from focalcal.lab.store.store import Store
from focalcal.lab.studies.events import Failed, Finished, Progress, Started
from focalcal.lab.studies.executors.local import LocalExecutor
from focalcal.lab.studies.grid import run_grid


def failure(store: Store, spec) -> dict:
    (only,) = (one for one in store.failures() if one["key"] == spec.key)
    return only


@pytest.mark.parametrize(
    ("way", "kind", "told"),
    [
        ("raise", "error", "LookupError: no such thing"),
        ("forgets", "error", "store.add"),
        ("memory error", "out of memory", "Unable to allocate"),
        ("non-finite", "non-finite loss", "batch 7"),
        ("segfault", "killed", "SIGSEGV"),
        ("sigkill", "killed", "SIGKILL; the kernel does so when memory runs out"),
        ("exit code 3", "killed", "exit code 3"),
    ],
)
def test_a_failing_cell_is_recorded_and_the_others_go_on(store, way, kind, told):
    bad, good, later = cell(0, way), cell(1), cell(2)
    events = []
    executor = LocalExecutor(1, work=grid_work.end_as_named)
    outcome = run_grid([bad, good, later], store, executor=executor, on_event=events.append)
    assert (outcome.done, outcome.failed, outcome.interrupted) == ((good.key, later.key), (bad.key,), False)
    (failed,) = (event for event in events if isinstance(event, Failed))
    assert failed.key == bad.key
    assert failed.kind == kind
    assert told in failed.message
    assert not store.has(bad)
    record = failure(store, bad)
    assert (record["kind"], record["message"]) == (kind, failed.message)


def test_the_record_of_a_failure_says_where(store):
    cells = raised, segfault, non_finite = cell(0, "raise"), cell(0, "segfault"), cell(0, "non-finite")
    run_grid(cells, store, executor=LocalExecutor(2, work=grid_work.end_as_named))
    assert "end_as_named" in failure(store, raised)["details"]["traceback"]
    output = failure(store, segfault)["details"]["output"]
    assert "about to do segfault" in output
    assert "Segmentation fault" in output
    assert "end_as_named" in output
    details = failure(store, non_finite)["details"]
    assert (details["epoch"], details["batch"], details["ids"]) == (2, 7, [3, 4])


def test_a_failed_cell_is_missing_and_run_again(store):
    bad = cell(0, "raise")
    run_grid([bad], store, executor=LocalExecutor(1, work=grid_work.end_as_named))
    assert store.missing([bad]) == [bad]
    outcome = run_grid([bad], store, executor=LocalExecutor(1, work=grid_work.at_once))
    assert outcome.done == (bad.key,)
    assert store.failures() == []


def test_numbers_do_not_depend_on_the_number_of_jobs_nor_on_the_threads_here(tmp_path, request):
    request.addfinalizer(partial(torch.set_num_threads, torch.get_num_threads()))
    torch.set_num_threads(2)
    cells = [cell(seed) for seed in range(4)]
    losses = []
    for jobs in (1, 4):
        store = Store(tmp_path / f"store{jobs}")
        outcome = run_grid(cells, store, executor=LocalExecutor(jobs, work=grid_work.train))
        assert outcome.done == tuple(spec.key for spec in cells)
        runs = [store.run(spec.key) for spec in cells]
        losses.append([run.metrics("test")["nll"] for run in runs])
        assert {run.record["provenance"]["threads"] for run in runs} == {1}
        assert len({run.record["provenance"]["pid"] for run in runs} | {os.getpid()}) == 5  # one process per cell
    assert len(set(losses[0])) == 4
    assert losses[0] == losses[1]


def test_events_of_a_cell_come_in_order(store):
    cells = [cell(seed) for seed in range(3)]
    events = []
    run_grid(cells, store, executor=LocalExecutor(2, work=grid_work.train), on_event=events.append)
    assert [event.spec for event in events if isinstance(event, Started)] == cells
    for spec in cells:
        mine = [event for event in events[1:] if event.key == spec.key]
        assert isinstance(mine[0], Started)
        assert isinstance(mine[-1], Finished)
        assert mine[-1].seconds > 0
        progress = mine[1:-1]
        assert all(isinstance(event, Progress) and event.of == 20 for event in progress)
        done = [event.done for event in progress]
        assert done == sorted(set(done))
        assert done[-1] == 20  # the last one is never skipped
        assert progress[-1].note.startswith("loss ")


def test_no_more_jobs_than_asked_for(store):
    running, most = set(), 0

    def note(event):
        nonlocal most
        if isinstance(event, Started):
            running.add(event.key)
        elif isinstance(event, Finished):
            running.remove(event.key)
        most = max(most, len(running))

    run_grid([cell(seed) for seed in range(6)], store, executor=LocalExecutor(3, work=grid_work.at_once), on_event=note)
    assert most == 3


def test_a_cell_beyond_the_memory_limit_fails_alone(store):
    executor = LocalExecutor(1, work=grid_work.fill_memory, options={"megabytes": 4000}, memory_limit=2 * 2**30)
    assert run_grid([cell(0)], store, executor=executor).failed == (cell(0).key,)
    assert failure(store, cell(0))["kind"] == "out of memory"
    executor = LocalExecutor(1, work=grid_work.fill_memory, options={"megabytes": 4}, memory_limit=2 * 2**30)
    assert run_grid([cell(0)], store, executor=executor).done == (cell(0).key,)


def test_an_exception_of_the_listener_stops_the_cells(store):
    pids = []

    def listen(event):
        if isinstance(event, Progress):
            pids.append(int(event.note))
            if len(pids) == 2:
                raise RuntimeError("the display broke")

    with pytest.raises(RuntimeError, match="the display broke"):
        run_grid([cell(0), cell(1)], store, executor=LocalExecutor(2, work=grid_work.until_told), on_event=listen)
    for pid in pids:
        with pytest.raises(ProcessLookupError):
            os.kill(pid, 0)


def test_a_process_that_does_not_end_by_itself_is_ended(store):
    outcome = run_grid([cell(0)], store, executor=LocalExecutor(1, work=grid_work.leaves_a_thread))
    assert outcome.done == (cell(0).key,)


def test_cells_have_the_environment_of_now(store, monkeypatch):
    executor = LocalExecutor(1, work=grid_work.environment_value, options={"name": "FOCALCAL_TEST"})
    for value in ("one", "two"):
        monkeypatch.setenv("FOCALCAL_TEST", value)
        run_grid([cell(0)], store, executor=executor)
        assert failure(store, cell(0))["message"] == f"LookupError: FOCALCAL_TEST={value}"


def test_fresh_processes_do_where_there_is_no_fork_server(store, monkeypatch):
    monkeypatch.setattr(multiprocessing, "get_all_start_methods", lambda: ["spawn"])
    assert run_grid([cell(0)], store, executor=LocalExecutor(1, work=grid_work.at_once)).done == (cell(0).key,)


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        ({"jobs": 0}, "jobs must be >= 1, got 0"),
        ({"jobs": 1.5}, "jobs must be a whole number, got 1.5"),
        ({"memory_limit": 0}, "memory_limit must be >= 1, got 0"),
        ({"work": lambda spec, store, report: None}, "work must be a function at the top level of a module"),
        ({"options": {"then": lambda: None}, "work": grid_work.train}, "options plain values"),
    ],
)
def test_what_cannot_be_is_refused_by_name(arguments, told):
    with pytest.raises((TypeError, ValueError), match=told):
        LocalExecutor(**arguments)


@pytest.mark.skipif(not os.path.isdir("/proc/self/task"), reason="reads /proc, which Linux has")
def test_cells_are_forked_from_a_process_without_threads(store):
    run_grid([cell(0)], store, executor=LocalExecutor(1, work=grid_work.count_threads_of_server))
    assert store.run(cell(0).key).metrics("test")["nll"] == 1
