"""Stores of versions whose keys covered shifts and saliency: their runs are found for what was trained."""

import json

import pytest
from support.older_store import made_older, older_key, older_spec
from support.stored_runs import contents, evaluation, spec, stored

from focalcal.lab.store import Evaluations, RunProblem, Store

SHIFTED = {"shifts": ["cifar10c", "svhn"], "severities": [1, 5]}


@pytest.fixture
def old(tmp_path):
    """Two trainings, one of them stored twice: as `vision` and as `shift` asked for it."""
    new = Store(tmp_path / "new")
    for seed in range(2):
        stored(new, spec(seed), nll=float(seed))
    made_older(new.run(spec(1).key), tmp_path / "old")
    made_older(new.run(spec(0).key), tmp_path / "old")
    for name in ("svhn", "cifar10c-1", "cifar10c-5"):
        new.add_evaluation(spec(0).key, evaluation(name))
    made_older(new.run(spec(0).key), tmp_path / "old", **SHIFTED)
    return Store(tmp_path / "old", create=False)


def test_the_older_key_is_the_one_that_was_published():
    """As the previous version computed it for this spec; its test had this value."""
    assert older_key(older_spec(spec())) == "23832090533d30bd20005900f969cc9a"


def test_runs_are_found_by_what_was_trained(old):
    wanted = [spec(seed) for seed in range(3)]
    assert old.missing(wanted) == [spec(2)]
    assert old.missing(wanted, Evaluations(shifts=("svhn", "cifar10c"), severities=(5,))) == [spec(1), spec(2)]
    assert old.has(spec(1))
    assert old.run(spec(1).key).metrics("test")["nll"] == 1.0
    assert old.problems(contents=True) == []


def test_they_are_listed_once_with_the_evaluations_they_hold(old):
    assert [run.key for run in old.runs()] == sorted(spec(seed).key for seed in range(2))
    for run in (old.run(spec(0).key), next(one for one in old.runs() if one.key == spec(0).key)):
        assert run.evaluations == ("cifar10c-1", "cifar10c-5", "svhn")
        assert run.spec == spec(0)
        assert run.splits == ("val", "test", "cifar10c-1", "cifar10c-5", "svhn")
        assert run.metrics("svhn") == {"auroc": 0.75}
        assert run.path.name == older_key(older_spec(spec(0), **SHIFTED))
    assert old.sql("select count(*) from runs").fetchall() == [(2,)]


def test_an_older_run_is_not_stored_again_and_can_be_asked_more(old):
    before = old.run(spec(1).key)
    files = contents(before.path)
    assert stored(old, spec(1), nll=9.0).metrics("test")["nll"] == 1.0
    after = old.add_evaluation(spec(1).key, evaluation())
    assert after.path == before.path
    assert after.evaluations == ("svhn",)
    kept = contents(before.path)
    assert {name: kept[name] for name in files} == files


def test_either_key_names_the_run(old):
    former = older_key(older_spec(spec(1)))
    for name in (former, former[:10], spec(1).key, spec(1).key[:10]):
        assert old.run(name).key == spec(1).key
    with pytest.raises(ValueError, match="there is no run 00000000"):
        old.run("0" * 8)


def test_removing_a_run_removes_what_is_left_of_it(old):
    old.remove([spec(0).key])
    assert [run.key for run in Store(old.path).runs()] == [spec(1).key]
    assert not old.has(spec(0))
    assert len(list((old.path / "runs").iterdir())) == 1


def test_a_damaged_one_is_missing_and_its_twin_serves(old):
    (old.run(spec(0).key).path / "result.json").write_text("{")
    again = Store(old.path)
    assert again.has(spec(0))
    assert not again.has(spec(0), Evaluations(shifts=("svhn",)))
    (old.run(spec(1).key).path / "result.json").write_text("{")
    assert not again.has(spec(1))
    with pytest.raises(RunProblem, match=r"result\.json must have"):
        again.run(spec(1).key)


@pytest.mark.parametrize("protocol", [{"shifts": 5}, {"severities": None, "shifts": ["cifar10c"]}])
def test_a_strange_one_is_named_and_blocks_nothing(old, protocol):
    made_older(old.run(spec(1).key), old.path, **protocol)
    again = Store(old.path)
    assert len(again.runs()) == 2
    (problem,) = again.problems()
    assert "must have the protocol of schema 1" in problem.message
    assert again.missing([spec(0), spec(1)]) == []


def test_exported_they_are_found_too(old, tmp_path):
    import zipfile

    with zipfile.ZipFile(old.export(tmp_path / "all.zip")) as archive:
        archive.extractall(tmp_path / "there")
    there = Store(tmp_path / "there", create=False)
    assert there.missing([spec(0), spec(1)], Evaluations()) == []
    assert there.problems(contents=True) == []


def test_an_older_failure_is_that_of_the_spec_and_goes_with_its_run(old):
    values = older_spec(spec(3), saliency=2)
    told = {"key": older_key(values), "spec": values, "kind": "killed", "message": "", "details": {}, "time": ""}
    del values["schema"]
    (old.path / "failures").mkdir()
    (old.path / "failures" / f"{told['key']}.json").write_text(json.dumps(told))
    assert [one["key"] for one in old.failures()] == [spec(3).key]
    stored(old, spec(3))
    assert old.failures() == []
