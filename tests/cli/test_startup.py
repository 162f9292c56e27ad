"""What is only looked at must not wait for torch."""

import os
import subprocess
import sys

import pytest
from support.stored_runs import spec, stored

from focalcal.results import Store


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


def test_warnings_of_the_package_are_plain_lines(capsys, monkeypatch):
    from focalcal import cli
    from focalcal.predictions import InputWarning

    cli.show_warning(InputWarning("probs were taken from 'p'"), InputWarning, "file.py", 1)
    assert capsys.readouterr().err == "focalcal: probs were taken from 'p'\n"
    theirs = []
    monkeypatch.setattr(cli, "_show_with_place", lambda *shown: theirs.append(shown))
    cli.show_warning("theirs", UserWarning, "file.py", 1)
    assert theirs == [("theirs", UserWarning, "file.py", 1)]
