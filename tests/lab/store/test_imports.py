"""Runs of other stores and archives, taken into one."""

import zipfile

import pytest
from support import synthetic_study as synthetic
from support.stored_runs import contents
from typer.testing import CliRunner

from focalcal.cli.app import app
from focalcal.lab.store import Evaluation, Store
from focalcal.lab.store.imports import import_runs


@pytest.fixture
def mine(tmp_path):
    return synthetic.study_store(tmp_path / "mine", objectives=("ce",), seeds=(0, 1))


@pytest.fixture
def other(tmp_path):
    return synthetic.study_store(tmp_path / "other", objectives=("ce",), seeds=(1, 2))


@pytest.mark.parametrize("archived", [False, True])
def test_what_is_missing_is_taken_and_what_is_there_stays(mine, other, tmp_path, archived):
    before = contents(mine.path / "runs")
    source = other.export(tmp_path / "other.zip") if archived else other.path
    imported = import_runs(mine, source)
    (taken,) = imported.taken
    assert mine.run(taken).spec.seed == 2
    assert len(imported.found) == 1
    assert imported.conflicts == imported.problems == []
    after = contents(mine.path / "runs")
    assert {name: after[name] for name in before} == before
    made, wanted = (contents(store.run(taken).path) for store in (mine, other))
    assert {name: content for name, (content, _) in made.items()} == {
        name: content for name, (content, _) in wanted.items()
    }
    assert mine.problems(contents=True) == []
    assert import_runs(mine, source).taken == []


def test_evaluations_are_added_and_a_conflict_is_named(mine, other):
    shared = next(run for run in other.runs() if run.spec.seed == 1)
    record = {"metrics": {"late": {"nll": 1.0}}, "provenance": {}, "seconds": 1.0}
    other.add_evaluation(shared.key, Evaluation("late", record))
    assert import_runs(mine, other.path).evaluated == [shared.key]
    assert mine.run(shared.key).evaluations == ("late",)
    clash = Store(mine.path.with_name("clash"))
    synthetic.add(clash, shared.spec, changed={"ece": 0.75})
    before = contents(mine.path / "runs")
    (conflict,) = import_runs(mine, clash.path).conflicts
    assert "test ece" in str(conflict)
    assert "0.75" in str(conflict)
    assert contents(mine.path / "runs") == before
    told = CliRunner().invoke(app, ["runs", "import", str(clash.path), "--store", str(mine.path)])
    assert told.exit_code == 1
    assert "0 runs taken, 0 were there" in told.stdout
    assert told.stderr.startswith("conflict: ")


def test_damaged_runs_are_named_and_a_damaged_one_here_is_replaced(mine, other):
    one, two = sorted(other.runs(), key=lambda run: run.spec.seed)
    (one.path / "record.json").write_text("{}")
    (next(run.path for run in mine.runs() if run.spec.seed == 1) / "record.json").write_text("{}")
    imported = import_runs(mine, other.path)
    assert imported.taken == [two.key]
    assert [problem.key for problem in imported.problems] == [one.key]
    whole = synthetic.study_store(mine.path.with_name("whole"), objectives=("ce",), seeds=(1,))
    assert import_runs(mine, whole.path).taken == [one.key]
    assert mine.run(one.key).spec.seed == 1


def test_what_is_no_source_is_refused(mine, tmp_path):
    with pytest.raises(ValueError, match="source must be another store"):
        import_runs(mine, mine.path)
    (tmp_path / "a.zip").write_text("no archive")
    with pytest.raises(ValueError, match=r"must be a store, or a \.zip of `focalcal runs export`"):
        import_runs(mine, tmp_path / "a.zip")
    with zipfile.ZipFile(tmp_path / "b.zip", "w") as archive:
        archive.writestr("../outside", "x")
    with pytest.raises(ValueError, match=r"must be an archive of runs, got a file '../outside'"):
        import_runs(mine, tmp_path / "b.zip")
