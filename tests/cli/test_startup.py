"""What is only looked at must not wait for torch."""

import os
import subprocess
import sys

import pytest
from support.stored_runs import spec, stored

from focalcal.lab.store import Store

LOOKS = (
    ["--help"],
    ["study", "--list"],
    ["runs", "list"],
    ["runs", "list", "--json", "--seed", "1"],
    ["runs", "sql", "select count(*) from runs"],
    ["runs", "check"],
    ["runs", "export", "{folder}/runs.csv"],
)


def test_commands_that_only_look_need_no_torch(tmp_path):
    """All of them in one process."""
    stored(Store(tmp_path / "store"), spec(1))
    commands = [[word.format(folder=tmp_path) for word in command] for command in LOOKS]
    code = f"""
import sys
from typer.testing import CliRunner
from focalcal.cli.app import app
for command in {commands}:
    done = CliRunner().invoke(app, command)
    heavy = {{"torch", "ray", "scipy"}} & set(sys.modules)
    print(" ".join(command), done.exit_code, bool(done.stdout), done.stderr, *heavy, sep="|")
"""
    environment = os.environ | {"FOCALCAL_STORE": str(tmp_path / "store")}
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=environment)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.splitlines() == [f"{' '.join(command)}|0|True|" for command in commands]


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
