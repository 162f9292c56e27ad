"""Grids on a real Ray cluster of this machine."""

import os
import signal
import socket
import sys
from collections import Counter
from threading import Event, Thread

import pytest
from support import grid_work
from support.grid_process import PATIENCE, ended, grid_process
from support.grid_work import cell, let_go
from support.small_runs import digits_spec

from focalcal.lab.store.store import Store
from focalcal.lab.studies.events import Failed, Finished, Progress, Started
from focalcal.lab.studies.executors.cell import WAITS
from focalcal.lab.studies.executors.local import LocalExecutor
from focalcal.lab.studies.executors.ray import RayExecutor
from focalcal.lab.studies.grid import run_grid

ray = pytest.importorskip("ray")


@pytest.mark.slow
def test_the_cell_of_a_killed_worker_is_run_again_and_all_are_stored_once(cluster, store):
    cells = [cell(seed) for seed in range(4)]
    events, killed = [], []

    def kill_one(event):
        events.append(event)
        if isinstance(event, Progress) and not killed:
            killed.append((event.key, int(event.note)))
            os.kill(int(event.note), signal.SIGKILL)
            let_go(store)

    outcome = run_grid(cells, store, executor=RayExecutor(work=grid_work.until_told), on_event=kill_one)
    assert outcome.done == tuple(spec.key for spec in cells)
    assert outcome.failed == ()
    assert sorted(run.key for run in store.runs()) == sorted(outcome.done)
    (key, pid), calls = killed[0], grid_work.calls(store)
    assert Counter(called for called, _ in calls) == {spec.key: 1 + (spec.key == key) for spec in cells}
    assert store.run(key).record["provenance"]["pid"] != pid
    for spec in cells:
        mine = [type(event) for event in events[1:] if event.key == spec.key]
        assert mine[0] is Started
        assert mine[-1] is Finished
        assert set(mine[1:-1]) <= {Progress}


def test_an_exception_fails_at_once_and_a_death_after_all_retries(cluster, store):
    raising, dying, good = cell(0, "raise"), cell(1, "sigkill"), cell(2)
    events = []
    executor = RayExecutor(retries=1, work=grid_work.end_as_named)
    outcome = run_grid([raising, dying, good], store, executor=executor, on_event=events.append)
    assert (outcome.done, outcome.failed) == ((good.key,), (raising.key, dying.key))
    assert Counter(key for key, _ in grid_work.calls(store)) == {raising.key: 1, dying.key: 2, good.key: 1}
    failed = {event.key: (event.kind, event.message) for event in events if isinstance(event, Failed)}
    assert failed[raising.key] == ("error", "LookupError: no such thing")
    assert failed[dying.key][0] == "killed"
    assert {one["key"]: (one["kind"], one["message"]) for one in store.failures()} == failed


@pytest.mark.slow
def test_numbers_are_those_of_local_processes(cluster, store, tmp_path):
    cells, here = [cell(0), cell(1)], Store(tmp_path / "here")
    run_grid(cells, here, executor=LocalExecutor(1, work=grid_work.train))
    run_grid(cells, store, executor=RayExecutor(work=grid_work.train))
    for spec in cells:
        assert store.run(spec.key).metrics("test") == here.run(spec.key).metrics("test")
        assert store.run(spec.key).record["provenance"]["threads"] == 1


@pytest.mark.slow
def test_an_interrupt_cancels_what_runs_and_what_waits(cluster, store):
    pids = []

    def interrupt(event):
        if isinstance(event, Progress):
            pids.append(int(event.note))
            if len(pids) == 2:
                os.kill(os.getpid(), signal.SIGINT)

    cells = [cell(seed) for seed in range(4)]
    outcome = run_grid(cells, store, executor=RayExecutor(work=grid_work.until_told), on_event=interrupt)
    assert outcome.interrupted
    assert (outcome.done, outcome.failed) == ((), ())
    assert store.failures() == []
    assert ended(pids)
    let_go(store)
    assert len(run_grid(cells, store, executor=RayExecutor(work=grid_work.until_told)).done) == 4
    assert len(store.runs()) == 4


@pytest.mark.slow
def test_no_message_is_lost_when_the_mailbox_answers_late(cluster, store, monkeypatch):
    monkeypatch.setattr("focalcal.lab.studies.executors.ray._SECONDS_BETWEEN_LOOKS", 1e-4)  # any answer is late
    heard = set()

    def listen(event):
        if isinstance(event, Progress):
            heard.add(event.key)
            if len(heard) == 2:
                let_go(store)

    cells = [cell(0), cell(1)]
    outcome = run_grid(cells, store, executor=RayExecutor(work=grid_work.until_told), on_event=listen)
    assert outcome.done == (cells[0].key, cells[1].key)


def test_a_store_that_a_node_does_not_see_is_named(cluster, store, tmp_path):
    store.path = tmp_path / "on another machine"
    events = []
    RayExecutor(work=grid_work.at_once).run([cell(0)], store, events.append)
    assert "does not see the store" in events[-1].message
    assert str(store.path) in events[-1].message


def test_a_cell_that_fits_on_no_node_is_refused(cluster, store):
    with pytest.raises(ValueError, match=r"must fit on one node, got 1 and 2; the cluster's nodes have 2 CPU, 0 GPU"):
        run_grid([cell(0)], store, executor=RayExecutor(gpus_per_cell=2, work=grid_work.at_once))


def test_another_cluster_is_refused_while_connected(cluster, store):
    with pytest.raises(ValueError, match=r"address must be None .*, got 'auto'; call ray.shutdown\(\) first"):
        run_grid([cell(0)], store, executor=RayExecutor("auto", work=grid_work.at_once))


def test_a_cell_that_another_process_holds_is_waited_for(cluster, store):
    cells, events, holding, let_it_go = [cell(0), cell(1)], [], Event(), Event()

    def hold():
        with store.claim(cells[0]):
            holding.set()
            assert let_it_go.wait(PATIENCE)

    def watch(event):
        events.append(event)
        if isinstance(event, Progress) and event.note == WAITS:
            let_it_go.set()

    holder = Thread(target=hold)
    holder.start()
    assert holding.wait(PATIENCE)
    try:
        outcome = run_grid(cells, store, executor=RayExecutor(work=grid_work.at_once), on_event=watch)
    finally:
        let_it_go.set()
        holder.join()
    assert outcome.done == (cells[0].key, cells[1].key)
    assert [type(event) for event in events[1:] if event.key == cells[0].key] == [Started, Progress, Finished]
    assert Counter(key for key, _ in grid_work.calls(store)) == {spec.key: 1 for spec in cells}


@pytest.fixture
def no_connection(monkeypatch):
    """As in a process that is in no cluster, and must not try for minutes to enter one."""
    monkeypatch.setattr(ray, "is_initialized", lambda: False)
    monkeypatch.setattr(ray, "init", lambda *given, **more: pytest.fail("it does not return for minutes"))


def test_an_address_where_nothing_listens_is_refused(no_connection, store):
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
    for address in (f"127.0.0.1:{port}", f"ray://127.0.0.1:{port}"):
        with pytest.raises(
            ConnectionError, match=rf"no Ray cluster answers at '{address}' \(Connection refused\); start"
        ):
            run_grid([cell(0)], store, executor=RayExecutor(address, work=grid_work.at_once))


def test_an_address_that_never_answers_is_given_up(no_connection, store, monkeypatch):
    monkeypatch.setattr("focalcal.core.ray_cluster.SECONDS_TO_ANSWER", 2.0)
    with socket.create_server(("127.0.0.1", 0)) as server:
        address = f"127.0.0.1:{server.getsockname()[1]}"
        with pytest.raises(
            ConnectionError, match=r"something listens at .* \(nothing was heard for 2 s\); check that this is the port"
        ):
            run_grid([cell(0)], store, executor=RayExecutor(address, work=grid_work.at_once))


@pytest.mark.parametrize(
    ("said", "told"),
    [
        ("AuthenticationError: InvalidAuthToken", r"the head wants a token .*; set RAY_AUTH_MODE=token, and"),
        ("Version mismatch: The cluster was started with Ray 2.9", "the head has another version of Ray or Python"),
        ("we cannot find a matching raylet", r"no node of the head's cluster\); join it .* or connect as a client"),
        ("Something else", r"RuntimeError: Something else\); see `ray status` there"),
    ],
)
def test_a_head_that_is_up_and_refuses_is_not_called_absent(no_connection, store, monkeypatch, said, told):
    """The texts are those of Ray 2.60, the first of a head in another network namespace."""
    monkeypatch.setattr("focalcal.core.ray_cluster._CONNECT", f"raise RuntimeError({said!r})")
    with socket.create_server(("127.0.0.1", 0)) as server:
        address = f"127.0.0.1:{server.getsockname()[1]}"
        with pytest.raises(ConnectionError, match=rf"something listens at '{address}', but cannot be used \(.*{told}"):
            run_grid([cell(0)], store, executor=RayExecutor(address, work=grid_work.at_once))


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        ({"cpus_per_cell": -1}, "cpus_per_cell must be .*-1"),
        ({"gpus_per_cell": float("nan")}, "gpus_per_cell must be .*nan"),
        ({"retries": -1}, "retries must be >= 0, got -1"),
    ],
)
def test_what_cannot_be_is_refused_by_name(arguments, told):
    with pytest.raises(ValueError, match=told):
        RayExecutor(**arguments)


def test_without_ray_the_error_names_the_extra(store, monkeypatch):
    monkeypatch.setitem(sys.modules, "ray", None)
    with pytest.raises(ModuleNotFoundError, match=r"pip install .*ray"):
        run_grid([cell(0)], store, executor=RayExecutor(work=grid_work.at_once))


@pytest.mark.slow
def test_without_a_cluster_one_is_made_for_the_grid(store):
    ray.shutdown()  # after the tests that have one
    outcome = run_grid([cell(0)], store, executor=RayExecutor(work=grid_work.at_once))
    assert outcome.done == (cell(0).key,)
    assert not ray.is_initialized()


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(os, "pidfd_open"), reason="processes are held by file descriptors, which Linux has")
def test_nothing_of_a_cluster_outlives_a_driver_that_is_killed(store):
    import psutil

    with grid_process(store, grid_work.until_told, seeds=1, jobs="ray") as process:
        assert int(process.stdout.readline())
        family = [child.pid for child in psutil.Process(process.pid).children(recursive=True)]
        names = [psutil.Process(pid).cmdline()[0] for pid in family]
        assert {"ray::DashboardAgent", "ray::RuntimeEnvAgent"} <= set(names), names  # which used to stay for a minute
        process.kill()
        process.wait()
        assert ended(family, seconds=30)


PLUGIN = """
from torch import nn

class Mine(nn.CrossEntropyLoss):
    def __init__(self):
        super().__init__()
"""


@pytest.mark.slow
def test_a_plug_in_in_the_current_folder_is_found_by_the_workers(cluster, store, tmp_path, monkeypatch):
    """The cluster was up before anybody thought of that folder."""
    (tmp_path / "plugin_for_ray.py").write_text(PLUGIN)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))
    spec = digits_spec("plugin_for_ray:Mine", epochs=1)
    outcome = run_grid([spec], store, executor=RayExecutor())
    assert outcome.done == (spec.key,), store.failures()
