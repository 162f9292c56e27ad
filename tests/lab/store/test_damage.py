import re
import shutil

import pytest
from support.prediction_samples import sample
from support.stored_runs import epochs_file, flip_a_bit, spec, stored

from focalcal.lab.store import RunProblem, Store
from focalcal.lab.store.run_folder import sha256


@pytest.fixture
def store(tmp_path):
    store = Store(tmp_path / "store")
    for seed in range(3):
        stored(store, spec(seed), epochs=epochs_file(tmp_path))
    store.runs()  # so that there is a cache to be misled by
    return store


def cut(path):
    path.write_bytes(path.read_bytes()[:-20])


def edited(path, old, new):
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new))


DAMAGES = {
    "truncated record": (lambda run: cut(run / "record.json"), "record.json was changed .* or is cut off"),
    "no record": (lambda run: (run / "record.json").unlink(), "record.json is missing"),
    "a folder": (lambda run: [(run / "record.json").unlink(), (run / "record.json").mkdir()], "record.json is missing"),
    "deep": (lambda run: (run / "record.json").write_text("[" * 100_000), "record.json was changed"),
    "no epochs": (lambda run: (run / "epochs.jsonl").unlink(), "epochs.jsonl is missing"),
    "no predictions": (lambda run: shutil.rmtree(run / "predictions"), "predictions/test.npz is missing"),
    "truncated predictions": (lambda run: cut(run / "predictions" / "val.npz"), "predictions/val.npz must have"),
    "another seed": (lambda run: edited(run / "record.json", '"seed": 1', '"seed": 7'), "record.json was changed"),
    "another metric": (lambda run: edited(run / "record.json", "0.125", "0.025"), "record.json was changed"),
    "empty": (lambda run: [shutil.rmtree(run), run.mkdir()], "record.json is missing"),
}


@pytest.mark.parametrize("damage", DAMAGES)
def test_a_damaged_run_is_named_and_the_others_are_listed(store, damage):
    harm, message = DAMAGES[damage]
    folder = store.path / "runs" / spec(1).key
    harm(folder)
    before = sorted(folder.rglob("*"))
    assert {run.key for run in store.runs()} == {spec(0).key, spec(2).key}
    (problem,) = store.problems()
    assert (problem.path, problem.kind) == (folder, "damaged")
    assert re.search(message, problem.message)
    assert "run it again" in problem.message
    assert str(folder) in str(problem)
    with pytest.raises(RunProblem, match=message):
        store.run(spec(1).key)
    assert store.missing([spec(seed) for seed in range(3)]) == [spec(1)]
    assert store.sql("select count(*) from runs").fetchall() == [(2,)]
    assert sorted(folder.rglob("*")) == before


def test_replaced_predictions_are_noticed_when_they_are_read(store):
    run = store.run(spec(1).key)
    path = run.path / "predictions" / "test.npz"
    size = path.stat().st_size
    sample(6, 3, split="test", seed=99).save(path)
    assert path.stat().st_size == size  # whole and right, but not what the metrics are of
    with pytest.raises(RunProblem, match=r"predictions/test.npz was changed after it was stored"):
        run.predictions("test")
    assert len(store.runs()) == 3
    (problem,) = store.problems(contents=True)
    assert problem.path == run.path
    assert len(store.survey(contents=True)[0]) == 2
    with pytest.raises(RunProblem, match="was changed"):
        store.export(store.path.parent / "all.zip")
    assert not (store.path.parent / "all.zip").exists()


def test_a_flipped_bit_in_any_file_makes_the_run_a_missing_one(store):
    run = store.run(spec(1).key)
    for path in [run.path / name for name in (*run.files, "record.json")]:
        for at in range(0, path.stat().st_size, 53):
            flip_a_bit(path, at, at % 7)
            assert not Store(store.path).has(spec(1)), (path.name, at)
            flip_a_bit(path, at, at % 7)
    assert Store(store.path).has(spec(1))


@pytest.mark.parametrize("damage", ["no record", "another seed", "flipped bit"])
def test_a_damaged_run_that_is_run_again_is_set_aside_and_kept(store, damage):
    folder = store.path / "runs" / spec(1).key
    if damage == "flipped bit":
        flip_a_bit(folder / "epochs.jsonl", -100)
        with pytest.raises(RunProblem, match=r"epochs.jsonl was changed"):
            Store(store.path).run(spec(1).key)
    else:
        DAMAGES[damage][0](folder)
    kept = {path.name: path.read_bytes() for path in folder.iterdir() if path.is_file()}
    again = Store(store.path)
    assert again.missing([spec(0), spec(1), spec(2)]) == [spec(1)]
    assert stored(again, spec(1), nll=9.0).metrics("test")["nll"] == 9.0
    assert len(again.runs()) == 3
    (problem,) = again.problems(contents=True)
    assert problem.kind == "set aside"
    assert {path.name: path.read_bytes() for path in problem.path.iterdir() if path.is_file()} == kept


def test_contents_are_compared_once_and_again_when_a_file_was_touched(store, monkeypatch):
    compared = []
    monkeypatch.setattr("focalcal.lab.store.run_folder.sha256", lambda path: compared.append(path.name) or sha256(path))
    again = Store(store.path)
    for _ in range(3):
        assert again.missing([spec(1)]) == []
    assert sorted(compared) == ["epochs.jsonl", "test.npz", "val.npz"]
    path = store.path / "runs" / spec(1).key / "predictions" / "test.npz"
    content = path.read_bytes()
    path.write_bytes(content[:-1] + bytes([content[-1] ^ 1]))
    assert again.missing([spec(1)]) == [spec(1)]


def test_changed_epochs_are_noticed_and_do_not_hide_those_of_others(store):
    run = store.run(spec(1).key)
    edited(run.path / "epochs.jsonl", '"lr": 0.1', '"lr": 0.2')
    with pytest.raises(RunProblem, match=r"epochs.jsonl was changed"):
        run.epochs()
    with pytest.warns(UserWarning, match=f"without the epochs of run {spec(1).key}"):
        found = store.sql("select count(distinct key) from epochs").fetchall()
    assert found == [(2,)]


def test_a_renamed_run_is_not_another(store):
    folder = store.path / "runs"
    (folder / spec(1).key).rename(folder / spec(5).key)
    (problem,) = store.problems()
    assert f"its content is that of run {spec(1).key}" in problem.message
    assert not store.has(spec(5))


@pytest.mark.parametrize(("schema", "kind"), [(3, "newer"), (1, "older")])
def test_a_run_of_another_schema_is_flagged(store, schema, kind):
    edited(store.path / "runs" / spec(1).key / "record.json", '"schema": 2', f'"schema": {schema}')
    (problem,) = store.problems()
    assert problem.kind == kind
    assert f"record.json has schema {schema}, this version reads 2; " in problem.message
    assert len(store.runs()) == 2


def test_what_is_not_a_run_is_named(store):
    runs = store.path / "runs"
    (runs / spec(1).key / ".nfs0001").touch()  # beside the files of a run, where it does no harm
    (runs / "notes.txt").write_text("mine")
    (runs / "copy of a run").mkdir()
    (runs / ("0" * 32)).symlink_to("nowhere")
    found = {problem.path.name: problem.kind for problem in store.problems()}
    assert found == {"notes.txt": "foreign", "copy of a run": "foreign", "0" * 32: "foreign"}
    store.record_failure(spec(7), kind="killed", message="signal 9")
    failure = store.path / "failures" / f"{spec(7).key}.json"
    failure.write_text(failure.read_text()[:30])
    assert store.failures() == []
    assert failure in [problem.path for problem in store.problems()]
    failure.unlink()
    assert len(store.runs()) == 3
    store.remove(["notes.txt", "copy of a run", "0" * 32])
    assert store.problems() == []
