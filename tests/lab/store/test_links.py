"""Links inside a store are never followed: what they point to is neither written to, nor cleared, nor read."""

import os

import pytest
from support.stored_runs import epochs_file, spec, stored

from focalcal.lab.store import RunProblem, Store


@pytest.fixture
def foreign(tmp_path):
    """Somebody's folder, of long ago."""
    folder = tmp_path / "thesis"
    for name in ("chapters", "0123456789abcdef"):
        (folder / name).mkdir(parents=True)
        (folder / name / "text").write_text("years of work")
        os.utime(folder / name, (0, 0))
    return folder


def texts(folder):
    return {path.relative_to(folder).as_posix(): path.read_text() for path in folder.rglob("*") if path.is_file()}


@pytest.mark.parametrize("name", ["tmp", "work", "runs", "failures", "set-aside", "runs.parquet"])
def test_a_store_with_a_link_in_the_place_of_a_folder_is_refused(store, foreign, name):
    (store.path / name).symlink_to(foreign)
    with pytest.raises(OSError, match=f"{name} must lie in the store itself, got a link to .*thesis; remove the link"):
        Store(store.path)


def test_a_link_that_appears_while_a_store_is_open_is_refused_before_anything_is_cleared(store, foreign):
    before = texts(foreign)
    stored(store, spec(0))
    (store.path / "tmp").rmdir()
    (store.path / "tmp").symlink_to(foreign)
    for write in (lambda: stored(store, spec(1)), store.check_writable, lambda: store.remove([spec(0).key])):
        with pytest.raises(OSError, match="tmp must lie in the store itself"):
            write()
    (store.path / "work").symlink_to(foreign)
    with pytest.raises(OSError, match="work must lie in the store itself"):
        store.workspace(spec(1))
    assert texts(foreign) == before


def test_leftovers_are_those_of_our_own_names(store, foreign):
    foreign.rename(store.path / "tmp")
    (store.path / "tmp" / ("f" * 16)).symlink_to(store.path / "tmp" / "chapters")
    stored(store, spec())
    assert texts(store.path / "tmp") == {"chapters/text": "years of work"}


def test_a_linked_workspace_or_lock_is_refused_and_a_linked_failure_not_read(store, foreign):
    (store.path / "work").mkdir()
    (store.path / "work" / spec(0).key).symlink_to(foreign)
    with pytest.raises(OSError, match="must lie in the store itself"):
        store.workspace(spec(0))
    (store.path / "work" / f"{spec(1).key}.lock").symlink_to(foreign / "new")
    with pytest.raises(OSError, match="symbolic link"), store.claim(spec(1)):
        pass
    assert not (foreign / "new").exists()
    store.record_failure(spec(2), kind="error", message="mine")
    failure = store.path / "failures" / f"{spec(2).key}.json"
    failure.rename(foreign / "moved")
    failure.symlink_to(foreign / "moved")
    assert store.failures() == []
    assert [problem.path for problem in store.problems()] == [failure]


def test_a_linked_run_is_foreign_and_set_aside_as_a_link(store, tmp_path):
    elsewhere = stored(Store(tmp_path / "elsewhere"), spec()).path
    before = sorted(elsewhere.rglob("*"))
    (store.path / "runs").mkdir()
    (store.path / "runs" / spec().key).symlink_to(elsewhere)
    assert store.runs() == []
    (problem,) = store.problems()
    assert problem.kind == "foreign"
    assert not store.has(spec())
    assert stored(store, spec(), nll=9.0).metrics("test")["nll"] == 9.0
    (aside,) = (store.path / "set-aside").iterdir()
    assert aside.is_symlink()
    assert sorted(elsewhere.rglob("*")) == before


@pytest.mark.parametrize("name", ["record.json", "epochs.jsonl", "predictions/test.npz", "predictions"])
def test_a_linked_file_of_a_run_is_damage(store, tmp_path, name):
    run = stored(store, spec(), epochs=epochs_file(tmp_path))
    (run.path / name).rename(tmp_path / "moved")
    (run.path / name).symlink_to(tmp_path / "moved")
    assert not store.has(spec())
    with pytest.raises(RunProblem, match="must be a file of the run itself, got a link"):
        store.run(run.key)
