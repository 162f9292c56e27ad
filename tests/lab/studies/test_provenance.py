"""Where numbers come from: true of this machine and of the repository, without private facts."""

import getpass
import json
import platform
import socket
import subprocess
from pathlib import Path

import numpy as np
import torch

import focalcal
from focalcal.lab.data import load_data
from focalcal.lab.studies.provenance import commit, earlier_attempts, machine, software


def git(folder, *arguments):
    identity = ("-c", "user.name=somebody", "-c", "user.email=somebody@example.com")
    subprocess.run(["git", *identity, *arguments], cwd=folder, check=True, capture_output=True)


def repository(folder):
    git(folder, "init", "-q")
    package = folder / "package"
    package.mkdir()
    (package / "__init__.py").write_text("")
    return package


def test_versions_and_machine():
    found = software()
    assert found["focalcal"] == focalcal.__version__
    assert found["torch"] == torch.__version__
    assert found["numpy"] == np.__version__
    assert found["python"] == platform.python_version()
    place = machine("cpu", 3)
    assert (place["device"], place["threads"]) == ("cpu", 3)
    assert platform.machine() in place["platform"]


def test_the_commit_and_whether_files_were_changed(tmp_path):
    package = repository(tmp_path)
    assert commit(package) is None  # nothing committed, nothing tracked
    git(tmp_path, "add", ".")
    git(tmp_path, "commit", "-qm", "first")
    head = subprocess.run(["git", "rev-parse", "HEAD"], cwd=tmp_path, capture_output=True, text=True).stdout.strip()
    assert commit(package) == {"id": head, "dirty": False}
    (tmp_path / "notes.txt").write_text("not tracked")
    assert commit(package) == {"id": head, "dirty": False}
    (package / "__init__.py").write_text("changed")
    assert commit(package) == {"id": head, "dirty": True}


def test_a_package_installed_inside_another_repository_has_no_commit(tmp_path):
    git(tmp_path, "init", "-q")
    (tmp_path / ".gitignore").write_text("venv\n")
    git(tmp_path, "add", ".")
    git(tmp_path, "commit", "-qm", "somebody's project")
    installed = tmp_path / "venv" / "package"
    installed.mkdir(parents=True)
    (installed / "__init__.py").write_text("")
    assert commit(installed) is None


def test_no_repository_or_no_git_is_no_error(tmp_path, monkeypatch):
    (tmp_path / "__init__.py").write_text("")
    monkeypatch.setenv("GIT_CEILING_DIRECTORIES", str(tmp_path.parent))
    assert commit(tmp_path) is None
    monkeypatch.setenv("PATH", str(tmp_path))
    assert commit(Path(focalcal.__file__).parent) is None


def test_nothing_private_is_said():
    text = json.dumps([software(), machine("cpu", 1), dict(load_data("digits").provenance)])
    for private in (getpass.getuser(), socket.gethostname(), str(Path.home()), str(Path(focalcal.__file__).parent)):
        assert f'"{private}' not in text
        assert f"{private}/" not in text


def test_attempts_count_from_the_first_that_left_a_checkpoint(tmp_path):
    assert earlier_attempts(tmp_path, {"started": "one"}) == []
    assert earlier_attempts(tmp_path, {"started": "two"}) == []  # the first left nothing to go on from
    (tmp_path / "checkpoint.pt").touch()
    assert earlier_attempts(tmp_path, {"started": "three"}) == [{"started": "two"}]
    assert earlier_attempts(tmp_path, {"started": "four"}) == [{"started": "two"}, {"started": "three"}]
