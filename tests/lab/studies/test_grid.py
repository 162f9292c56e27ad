import pytest
from support import grid_work
from support.grid_work import cell

from focalcal.lab.studies.events import Started
from focalcal.lab.studies.executors.local import LocalExecutor
from focalcal.lab.studies.grid import run_grid


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


def test_a_store_that_cannot_be_written_to_is_refused_before_anything_starts(store, monkeypatch):
    def refuse(needed_bytes=0):
        raise OSError("store: read-only; choose another folder")

    monkeypatch.setattr(store, "check_writable", refuse)  # root may write to a folder that others may not
    with pytest.raises(OSError, match="read-only"):
        run_grid([cell(0)], store, executor=NoExecutor())


def test_an_interrupt_in_the_listener_is_an_interrupt(store):
    def listen(event):
        if isinstance(event, Started):
            raise KeyboardInterrupt

    executor = LocalExecutor(1, work=grid_work.at_once)
    outcome = run_grid([cell(0)], store, executor=executor, on_event=listen)
    assert outcome.interrupted
