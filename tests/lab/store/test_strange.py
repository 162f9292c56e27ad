"""Runs that are whole, by their checksums, and make no sense: each is named and left out, and the others are shown."""

import hashlib
import json

import pytest
from support.stored_runs import epochs_file, spec, stored
from typer.testing import CliRunner

from focalcal.lab.cli.runs import app
from focalcal.lab.store import Store
from focalcal.lab.store.keys import spec_key
from focalcal.lab.store.merge import runs_of


@pytest.fixture
def store(tmp_path):
    store = Store(tmp_path / "store")
    for seed in range(3):
        stored(store, spec(seed), epochs=epochs_file(tmp_path))
    return store


def sealed(store, **fields):
    """The run of seed 1 with other fields in its spec, the key and the checksums made to fit."""
    run = store.path / "runs" / spec(1).key
    record = json.loads((run / "record.json").read_text())
    del record["sha256"]
    record["spec"] |= fields
    record["key"] = spec_key(record["spec"])
    text = json.dumps(record, indent=1).removesuffix("\n}")
    digest = hashlib.sha256(text.encode()).hexdigest()
    (run / "record.json").write_text(f'{text},\n "sha256": "{digest}"\n}}\n')
    return run.rename(run.parent / record["key"])


@pytest.mark.parametrize("fields", [{"protocol": {"evaluate_every": 0}}, {"model": 7}, {"later": 1}])
def test_a_spec_that_is_not_understood_is_left_out_of_reports_and_can_be_removed(store, fields):
    folder = sealed(store, **fields)
    assert len(store.runs()) == 3  # a later version may well understand it
    runs, (problem,) = runs_of([store])
    assert len(runs) == 2
    assert problem.key == folder.name
    assert str(problem).startswith(f"{folder}: left out: its spec cannot be understood: ")
    removed = CliRunner().invoke(app, ["rm", folder.name, "--yes", "--store", str(store.path)])
    assert removed.exit_code == 0, removed.output
    assert not folder.exists()
