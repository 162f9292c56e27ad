import json
import math
import os
import shutil
import zipfile
from dataclasses import replace

import pytest
from support.prediction_samples import full, sample
from support.stored_runs import epochs_file, evaluation, record, spec, stored

from focalcal.lab.store import Store
from focalcal.lab.store.layout import split_file


def test_a_run_comes_back_as_it_was_stored(store, tmp_path):
    one, epochs = spec(3), epochs_file(tmp_path)
    weights = tmp_path / "w.pt"
    weights.write_bytes(b"weights")
    made = [
        full(split="test"),
        sample(split="svhn/test", kind="probs"),
        sample(split="cifar10c/fog/5", multilabel=True),
    ]
    assert not store.has(one)
    store.add(one, record=record(), epochs=epochs, predictions=iter(made), files={"weights.pt": weights})
    run = Store(store.path, create=False).run(one.key[:8])
    assert run.spec == one
    assert run.key == one.key
    assert dict(run.record) == {**record(), "evaluations": {}}
    assert run.epochs() == [json.loads(line) for line in epochs.read_text().splitlines()]
    assert run.splits == ("test", "svhn/test", "cifar10c/fog/5")
    assert all(run.predictions(each.split).equals(each) for each in made)
    assert run.file("weights.pt").read_bytes() == b"weights"
    assert run.path == store.path / "runs" / one.key
    assert store.has(one)
    assert store.has(one.key)


def test_splits_have_safe_and_different_files():
    splits = ["a/b", "a%2Fb", "..", ".", "x" * 300, "x" * 299 + "y", "\ud800", "caf\xe9", "a\nb", "A/B"]
    found = [split_file(split) for split in splits]
    assert len(set(found)) == len(splits)
    for name in found:
        assert name == os.path.basename(name)
        assert not name.startswith(".")
        assert len(os.fsencode(name)) <= 255


def test_metrics_that_are_not_finite_are_kept_in_standard_json(store):
    run = stored(store, spec(), nll=math.inf, ece=math.nan, brier=-math.inf, error=None)
    found = run.metrics("test")
    assert (found["nll"], found["brier"]) == (math.inf, -math.inf)
    assert math.isnan(found["ece"])
    assert math.isnan(found["error"])

    def refuse(word):
        raise AssertionError(word)

    json.loads((run.path / "record.json").read_text(), parse_constant=refuse)


def test_a_run_that_is_there_stays_and_missing_keeps_the_order_and_names_each_once(store):
    first = stored(store, spec(1), nll=1.0)
    assert stored(store, spec(1), nll=2.0).metrics("test")["nll"] == 1.0
    assert [run.key for run in store.runs()] == [first.key]
    assert not list(store.path.glob("tmp/*"))
    wanted = [spec(2), spec(1), spec(0), spec(2, gamma=3, lam=1), spec(1)]
    assert store.missing(wanted) == [spec(2), spec(0)]


def test_the_workspace_lasts_until_the_run_is_there(store):
    with store.claim(spec()) as granted:
        assert granted
        (store.workspace(spec()) / "checkpoint.pt").write_bytes(b"half")
    again = Store(store.path)
    assert (again.workspace(spec()) / "checkpoint.pt").read_bytes() == b"half"
    with again.claim(spec()):
        stored(again, spec())
        assert not (store.path / "work" / spec().key).exists()
    assert os.listdir(store.path / "work") == []


@pytest.mark.parametrize(
    ("change", "error", "message"),
    [
        ({"record": {"metrics": {}}}, ValueError, "without provenance, seconds, epochs"),
        ({"record": {**record(), "metrics": {"test": {"auroc": [0.5]}}}}, TypeError, r"\['auroc'\] must be a number"),
        ({"record": {**record(), "metrics": {"test": 0.5}}}, TypeError, r"metrics\['test'\] must be a mapping"),
        ({"record": {**record(), "provenance": {"loss": math.inf}}}, ValueError, "finite numbers outside metrics"),
        ({"record": {**record(), "epochs": 1.5}}, TypeError, "must be a whole number"),
        ({"predictions": [sample(), sample()]}, ValueError, "different splits, got 'test' twice"),
        ({"predictions": [3]}, TypeError, "predictions must be Predictions, got int"),
        ({"files": {"../x": "x"}}, ValueError, "plain names"),
        ({"files": {"record.json": "x"}}, ValueError, "plain names other than record.json"),
        ({"files": {"weights.pt": "nowhere"}}, FileNotFoundError, "nowhere"),
        ({"epochs": "broken"}, ValueError, "broken.jsonl, line 2: must be a JSON object"),
    ],
)
def test_what_is_no_run_leaves_nothing_behind(store, tmp_path, change, error, message):
    if "epochs" in change:
        change = {"epochs": tmp_path / "broken.jsonl"}
        change["epochs"].write_text('{"epoch": 1}\n{"epo')
    with pytest.raises(error, match=message):
        store.add(spec(), **({"record": record(), "epochs": None, "predictions": []} | change))
    assert store.runs() == store.problems() == []
    assert not list(store.path.glob("tmp/*"))


def test_keys_can_be_shortened_while_they_are_clear(store):
    runs = [stored(store, spec(seed)) for seed in range(3)]
    assert store.run(runs[0].key[:6]).key == runs[0].key
    shutil.copytree(runs[0].path, runs[0].path.parent / (runs[0].key[:20] + "0" * 12))
    with pytest.raises(ValueError, match=f"got '{runs[0].key[:20]}', which begins 2"):
        store.run(runs[0].key[:20])
    with pytest.raises(ValueError, match="at least 4 digits"):
        store.run(runs[0].key[:3])
    for wrong in ("zzzz", "../runs", runs[0].key + "0"):
        with pytest.raises(ValueError, match="hexadecimal"):
            store.run(wrong)
    with pytest.raises(ValueError, match="there is no run 00000000"):
        store.run("0" * 8)
    with pytest.raises(ValueError, match="32 hexadecimal"):
        store.has("abcd")


def test_asking_for_what_a_run_has_not_lists_what_it_has(store):
    run = stored(store, spec())
    with pytest.raises(ValueError, match="'val', 'test', got 'svhn'"):
        run.predictions("svhn")
    with pytest.raises(ValueError, match="'val', 'test', got 'svhn'"):
        run.metrics("svhn")
    assert run.epochs() == []


def test_failures_are_kept_until_the_run_is_there(store):
    store.record_failure(spec(0), kind="non-finite loss", message="first")
    details = {"epoch": 2, "value": math.nan, "ids": (1, 2), "path": store.path}
    store.record_failure(spec(0), kind="non-finite loss", message="loss is nan", details=details)
    store.record_failure(spec(1), kind="killed", message="signal 9")
    found = {one["key"]: one for one in store.failures()}
    assert set(found) == {spec(0).key, spec(1).key}
    assert found[spec(0).key]["message"] == "loss is nan"
    assert found[spec(0).key]["details"] == {"epoch": 2, "value": "NaN", "ids": [1, 2], "path": str(store.path)}
    assert found[spec(1).key]["spec"] == spec(1).as_dict()
    stored(store, spec(1))
    assert [one["key"] for one in store.failures()] == [spec(0).key]
    store.remove([spec(1).key])
    assert [one["key"] for one in store.failures()] == [spec(0).key]


def test_removed_runs_are_gone_and_the_others_are_not(store):
    runs = [stored(store, spec(seed)) for seed in range(3)]
    store.remove([runs[0].key, runs[1].key[:10]])
    assert [run.key for run in store.runs()] == [runs[2].key]
    assert store.missing([spec(0), spec(2)]) == [spec(0)]
    assert not list(store.path.glob("tmp/*"))
    with pytest.raises(ValueError, match="there is no run"):
        store.remove([runs[0].key])


def test_an_exported_archive_is_a_store(store, tmp_path):
    runs = [stored(store, spec(seed)) for seed in range(3)]
    store.add_evaluation(runs[0].key, evaluation(files={"maps.npz": b"drawn"}))
    path = store.export(tmp_path / "some.zip", [runs[0].key, runs[2].key[:8]])
    with zipfile.ZipFile(path) as archive:
        assert len(archive.namelist()) == len(set(archive.namelist()))
        archive.extractall(tmp_path / "there")
    there = Store(tmp_path / "there", create=False)
    assert {run.key for run in there.runs()} == {runs[0].key, runs[2].key}
    assert there.problems(contents=True) == []
    copied, whole = there.run(runs[0].key), store.run(runs[0].key)
    assert copied.files == whole.files
    assert all(copied.predictions(split).equals(whole.predictions(split)) for split in ("test", "svhn"))


def test_exported_tables_have_a_row_a_run_and_split(store, tmp_path):
    import csv

    import pyarrow.parquet as parquet

    stored(store, spec(0), nll=1 / 3)
    stored(store, spec(1, "ce"), nll=math.inf, ece=math.nan)
    columns = parquet.read_table(store.export(tmp_path / "runs.parquet")).to_pydict()
    nll = dict(zip(zip(columns["objective"], columns["split"], strict=True), columns["nll"], strict=True))
    assert nll == {("fcl", "val"): 0.75, ("fcl", "test"): 1 / 3, ("ce", "val"): 0.75, ("ce", "test"): math.inf}
    with open(store.export(tmp_path / "runs.csv"), newline="") as handle:
        rows = {(row["objective"], row["split"]): row for row in csv.DictReader(handle)}
    assert float(rows["fcl", "test"]["nll"]) == 1 / 3
    assert rows["ce", "test"]["ece"] == rows["ce", "test"]["gamma"] == ""
    assert rows["fcl", "val"]["gamma"] == "3"
    with pytest.raises(ValueError, match=r"must end in .zip, .csv, .parquet"):
        store.export(tmp_path / "runs.xlsx")
    with pytest.raises(FileNotFoundError, match="create"):
        store.export(tmp_path / "no" / "runs.csv")


def test_an_exported_csv_has_no_formulas_and_keeps_negative_numbers(store, tmp_path):
    import csv

    hostile = {"-x": -1.5, "note": "=HYPERLINK(A1)"}
    stored(store, replace(spec(0, "fcl"), data_set="@evil", objective_options=hostile), confidence_gap=-0.25)
    with open(store.export(tmp_path / "runs.csv"), newline="") as handle:
        row = next(row for row in csv.DictReader(handle) if row["split"] == "test")
    assert (row["data_set"], row["note"]) == ("'@evil", "'=HYPERLINK(A1)")
    assert (float(row["'-x"]), float(row["confidence_gap"])) == (-1.5, -0.25)


def test_the_folder_must_be_a_store_or_empty(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"STORE.json, got nothing of that name; check the path"):
        Store(tmp_path / "none", create=False)
    assert not (tmp_path / "none").exists()
    (tmp_path / "thesis.tex").touch()
    with pytest.raises(ValueError, match=r"got a folder with thesis.tex; name another"):
        Store(tmp_path)
    with pytest.raises(NotADirectoryError, match="got a file"):
        Store(tmp_path / "thesis.tex")


def test_a_store_of_a_newer_schema_is_refused(tmp_path):
    Store(tmp_path)
    (tmp_path / "STORE.json").write_text('{"what": "focalcal store of runs", "schema": 3}')
    with pytest.raises(ValueError, match="has schema 3 and this version of focalcal reads schema 2; install"):
        Store(tmp_path)
    for wrong in ("{", "[]", '{"schema": "1"}', '{"schema": 1}'):
        (tmp_path / "STORE.json").write_text(wrong)
        with pytest.raises(ValueError, match=r"STORE.json must"):
            Store(tmp_path)
