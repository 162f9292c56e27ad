import pytest
from support import grid_work
from support.grid_work import cell
from support.stored_runs import flip_a_bit

from focalcal.experiments.executors.local import LocalExecutor
from focalcal.experiments.grid import Outcome, run_grid
from focalcal.results.store import Store


class NoExecutor:
    """One that must not be asked."""

    def run(self, specs, store, on_event):
        pytest.fail(f"asked to run {specs}")


def test_only_missing_cells_are_run(store):
    first, second = [cell(0), cell(1)], [cell(2), cell(1), cell(3), cell(2), cell(0)]
    executor = LocalExecutor(2, work=grid_work.at_once)
    assert run_grid(first, store, executor=executor).done == (cell(0).key, cell(1).key)
    outcome = run_grid(second, store, executor=executor)
    assert outcome.done == (cell(2).key, cell(3).key)
    assert outcome.found == (cell(1).key, cell(0).key)
    assert sorted(key for key, _ in grid_work.calls(store)) == sorted(cell(seed).key for seed in range(4))


def test_a_cell_with_a_flipped_bit_is_run_again(store):
    cells = [cell(0), cell(1)]
    executor = LocalExecutor(2, work=grid_work.at_once)
    run_grid(cells, store, executor=executor)
    flip_a_bit(store.path / "runs" / cells[1].key / "predictions" / "test.npz", 100)
    again = Store(store.path)
    outcome = run_grid(cells, again, executor=executor)
    assert (outcome.found, outcome.done) == ((cells[0].key,), (cells[1].key,))
    assert again.missing(cells) == []


def test_a_finished_grid_starts_nothing(store):
    cells = [cell(0), cell(1)]
    run_grid(cells, store, executor=LocalExecutor(1, work=grid_work.at_once))
    events = []
    outcome = run_grid(cells, store, executor=NoExecutor(), on_event=events.append)
    assert outcome == Outcome(done=(), failed=(), interrupted=False, found=(cells[0].key, cells[1].key))
    assert events == []


def test_a_grid_without_cells_starts_nothing(store):
    assert run_grid([], store, executor=NoExecutor()) == Outcome(done=(), failed=(), interrupted=False)


def test_a_store_that_cannot_be_written_to_is_refused_before_anything_starts(store, monkeypatch):
    def refuse(needed_bytes=0):
        raise OSError("store: read-only; choose another folder")

    monkeypatch.setattr(store, "check_writable", refuse)  # root may write to a folder that others may not
    with pytest.raises(OSError, match="read-only"):
        run_grid([cell(0)], store, executor=NoExecutor())


def test_an_interrupt_in_the_listener_is_an_interrupt(store):
    def listen(event):
        raise KeyboardInterrupt

    executor = LocalExecutor(1, work=grid_work.at_once)
    outcome = run_grid([cell(0)], store, executor=executor, on_event=listen)
    assert outcome.interrupted
