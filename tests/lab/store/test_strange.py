"""Runs that are whole, by their checksums, and make no sense: each is named and left out, and the others are shown."""

import hashlib
import json

import pytest
from support.stored_runs import epochs_file, spec, stored
from typer.testing import CliRunner

from focalcal.lab.cli.runs import app
from focalcal.lab.store import RunProblem, Store
from focalcal.lab.store.keys import stored_key
from focalcal.lab.store.merge import runs_of

DEEP = "[" * 100_000 + "]" * 100_000
NESTED = "[" * 60 + "]" * 60


@pytest.fixture
def store(tmp_path):
    store = Store(tmp_path / "store")
    for seed in range(3):
        stored(store, spec(seed), epochs=epochs_file(tmp_path))
    return store


def rewritten(store, name, old, new):
    """The run of seed 1 with another text in a file, its list of files and its key made to fit."""
    run = store.path / "runs" / spec(1).key
    text = (run / name).read_text()
    assert old in text
    content = text.replace(old, new).encode()
    (run / name).write_bytes(content)
    listed = json.loads((run / "files.json").read_text())
    listed["files"][name] = {"bytes": len(content), "sha256": hashlib.sha256(content).hexdigest()}
    if name == "spec.json":
        try:
            listed["key"] = stored_key(content)
        except (ValueError, RecursionError):
            listed["key"] = "0" * 32
    (run / "files.json").write_text(json.dumps(listed))
    return run.rename(run.parent / listed["key"])


RESULTS = {
    "deep": ('"threads": 1', f'"threads": {DEEP}', "at most 50 levels"),
    "nested": ('"threads": 1', f'"threads": {NESTED}', "at most 50 levels"),
    "metric of text": ('"nll": 0.5', '"nll": "low"', "got other metrics"),
    "metric of a list": ('"nll": 0.5', '"nll": [0.5]', "got other metrics"),
    "metric too large": ('"nll": 0.5', f'"nll": {10**400}', "got other metrics"),
    "infinite metric": ('"nll": 0.5', '"nll": -2.44e1308556', "got other metrics"),
    "split of text": ('"val": {\n   "nll": 0.75\n  }', '"val": "good"', "got other metrics"),
    "seconds of text": ('"seconds": 1.5', '"seconds": "fast"', "got other seconds"),
    "epochs of text": ('"epochs": 2', '"epochs": "two"', "got other epochs"),
    "half a character": ('"focalcal": "0.1.0"', '"focalcal": "\\ud800"', "surrogates not allowed"),
    "no provenance": ('"provenance"', '"from"', "got other provenance"),
}
SPECS = {
    "deep": ('"batch_size": 64', f'"batch_size": {DEEP}', "at most 50 levels"),
    "model of a number": ('"model": "small_cnn"', '"model": 7', "got other model"),
    "half a character": ('"small_cnn"', '"\\udc00"', "surrogates not allowed"),
    "seed of text": ('"seed": 1', '"seed": "one"', "got other seed"),
    "seed too large": ('"seed": 1', f'"seed": {10**20}', "whole numbers up to 2**53, got other seed"),
    "infinite": ('"batch_size": 64', '"batch_size": 1e999', "finite numbers"),
    "no training": ('"training"', '"drill"', "got other training"),
}
CASES = [("result.json", *case) for case in RESULTS.values()] + [("spec.json", *case) for case in SPECS.values()]


@pytest.mark.parametrize(
    ("name", "old", "new", "said"),
    CASES,
    ids=[*(f"result {one}" for one in RESULTS), *(f"spec {one}" for one in SPECS)],
)
def test_a_strange_run_is_named_and_the_others_are_shown(store, name, old, new, said):
    folder = rewritten(store, name, old, new)
    (problem,) = store.problems()
    assert problem.path == folder
    assert said in problem.message
    assert {run.key for run in store.runs()} == {spec(0).key, spec(2).key}
    assert store.sql("select count(*) from runs join metrics using (key)").fetchall() == [(10,)]
    runs, told = runs_of([store])
    assert len(runs) == 2
    assert told[0].path == folder
    listed = CliRunner().invoke(app, ["list", "--store", str(store.path)])
    assert listed.exit_code == 0
    assert len(listed.stdout.splitlines()) == 3
    assert f"problem: {folder}" in listed.stderr


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ('"gammas": [1.0, 1.0]', f'"gammas": {DEEP}', "at most 50 levels"),
        ('"lr": 0.1', '"lr": "slow"', "must have numbers for lr, got 'slow'"),
        ('"lr": 0.1', '"lr": 1e400', "must have numbers for lr, got inf"),
        ('"epoch": 1', '"epoch": [1]', "must have numbers for epoch"),
        ('"train": {"loss": 1.0}', '"train": "well"', "must have numbers for train, got 'well'"),
    ],
    ids=["deep", "lr", "infinite", "epoch", "train"],
)
def test_strange_epochs_are_named_and_those_of_others_are_shown(store, old, new, said):
    rewritten(store, "epochs.jsonl", old, new)
    with pytest.raises(RunProblem) as caught:
        store.run(spec(1).key).epochs()
    assert said in str(caught.value)
    with pytest.warns(UserWarning, match=f"without the epochs of run {spec(1).key}"):
        assert store.sql("select count(*), avg(lr) from epochs").fetchall() == [(4, 0.1)]


def test_numbers_that_do_not_fit_into_a_table_are_text_there(store):
    rewritten(store, "epochs.jsonl", '"gammas": [1.0, 1.0]', f'"gammas": [{10**400}], "nanoseconds": {10**20}')
    found = store.sql("select nanoseconds from epochs where nanoseconds is not null").fetchall()
    assert found == [(str(10**20),)]


def test_a_spec_that_is_not_understood_is_left_out_of_reports_and_can_be_removed(store):
    folder = rewritten(store, "spec.json", '"evaluate_every": 1', '"evaluate_every": 0')
    assert len(store.runs()) == 3  # a later version may well understand it
    runs, (problem,) = runs_of([store])
    assert len(runs) == 2
    assert problem.key == folder.name
    assert str(problem).startswith(f"{folder}: left out: its spec cannot be understood: ")
    removed = CliRunner().invoke(app, ["rm", folder.name, "--yes", "--store", str(store.path)])
    assert removed.exit_code == 0, removed.output
    assert not folder.exists()
