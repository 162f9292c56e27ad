"""What is only looked at must not wait for torch."""

import os
import subprocess
import sys

import pytest
from support.stored_runs import spec, stored

from focalcal.lab.store import Store


@pytest.mark.parametrize(
    "command",
    [
        ["--help"],
        ["study", "--list"],
        ["runs", "list"],
        ["runs", "list", "--json", "--seed", "1"],
        ["runs", "sql", "select count(*) from runs"],
        ["runs", "check"],
        ["runs", "export", "{folder}/runs.csv"],
    ],
    ids=" ".join,
)
def test_a_command_that_only_looks_needs_no_torch(command, tmp_path):
    stored(Store(tmp_path / "store"), spec(1))
    arguments = [one.format(folder=tmp_path) for one in command]
    environment = os.environ | {"FOCALCAL_STORE": str(tmp_path / "store")}
    code = """
import sys
from focalcal.cli.app import app
try:
    app()
finally:
    print("loaded:", sorted({"torch", "ray", "scipy"} & set(sys.modules)), file=sys.stderr)
"""
    done = subprocess.run([sys.executable, "-c", code, *arguments], capture_output=True, text=True, env=environment)
    assert done.returncode == 0, done.stderr
    assert done.stdout
    assert done.stderr == "loaded: []\n"


@pytest.mark.once
def test_a_wrong_column_is_said_without_waiting_for_calibrators(tmp_path):
    (tmp_path / "scores.csv").write_text("p_0,p_1,y\n0.4,0.6,1\n0.7,0.3,0\n")
    code = """
import sys
from focalcal.cli.app import app
try:
    app()
finally:
    print("loaded:", sorted({"torch", "sklearn", "scipy.optimize", "scipy.stats"} & set(sys.modules)), file=sys.stderr)
"""
    command = [sys.executable, "-c", code, "audit", str(tmp_path / "scores.csv"), "--labels", "z"]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 2
    said, loaded = done.stderr.splitlines()
    assert "the table must have a column 'z'" in said
    assert loaded == "loaded: []"
