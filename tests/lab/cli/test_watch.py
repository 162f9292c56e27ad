"""`focalcal watch` and `focalcal study --watch` as processes: an address is printed, and Ctrl-C ends everything."""

import json
import os
import re
import signal
import subprocess
import sys
import time
from urllib.error import URLError
from urllib.request import urlopen

import pytest
from support.small_runs import two_objectives
from support.synthetic_study import add
from typer.testing import CliRunner

from focalcal.cli.app import app
from focalcal.lab.store import Store
from focalcal.lab.studies import load_study


@pytest.fixture
def focalcal():
    """Starts a command and gives the process with the address that it prints."""
    started = []

    def start(*words):
        command = [sys.executable, "-m", "focalcal.cli", *map(str, words)]
        process = subprocess.Popen(command, stderr=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        started.append(process)
        line = process.stderr.readline()
        return process, re.fullmatch(r"focalcal: the page is at (http://127\.0\.0\.1:\d+/[\w-]{22}/)\n", line)[1]

    yield start
    for process in started:
        process.kill()
        process.communicate()


def progress(url):
    with urlopen(f"{url}progress", timeout=30) as answer:
        return json.load(answer)


def test_a_study_serves_its_page_and_ctrl_c_ends_both(focalcal, tmp_path):
    (tmp_path / "study.toml").write_text(two_objectives(epochs=400, seeds=[0]))
    process, url = focalcal("study", tmp_path / "study.toml", "--store", tmp_path / "runs", "-j", 1, "--watch")
    deadline = time.monotonic() + 120
    while not (told := progress(url))["running"]:
        assert time.monotonic() < deadline
        time.sleep(0.1)
    assert (told["state"], told["done"], told["cells"]) == ("running", 0, 2)
    assert told["running"][0]["name"] == "digits/mlp ce seed 0"
    with urlopen(url, timeout=60) as answer:
        assert b"<title>Two objectives</title>" in answer.read()
    process.send_signal(signal.SIGINT)
    _, stderr = process.communicate(timeout=60)
    assert process.returncode == 130
    assert f"interrupted; 0 of 2 cells are stored in {tmp_path / 'runs'}; to go on: focalcal study" in stderr
    with pytest.raises(URLError):
        urlopen(url, timeout=5)


def test_a_finished_study_ends_its_page_without_waiting_for_anybody(tmp_path):
    (tmp_path / "study.toml").write_text(two_objectives(epochs=2, seeds=[0]))
    store = Store(tmp_path / "runs")
    for spec in load_study(tmp_path / "study.toml").specs():
        add(store, spec)
    words = ("study", tmp_path / "study.toml", "--store", store.path, "--watch", "--no-report")
    result = CliRunner().invoke(app, [str(word) for word in words])
    assert result.exit_code == 0, result.output
    assert result.stderr.startswith("focalcal: the page is at http://127.0.0.1:")
    assert result.stderr.endswith(f"2 of 2 cells are stored in {store.path}\n")


def test_a_store_that_another_process_fills_is_watched_until_ctrl_c(focalcal, tmp_path):
    (tmp_path / "study.toml").write_text(two_objectives(epochs=1, seeds=[0]))
    store = Store(tmp_path / "runs")
    cells = load_study(tmp_path / "study.toml").specs()
    process, url = focalcal("watch", tmp_path / "study.toml", "--store", store.path)
    assert progress(url)["done"] == 0
    add(store, cells[0])
    deadline = time.monotonic() + 30
    while progress(url)["done"] == 0:
        assert time.monotonic() < deadline
        time.sleep(0.1)
    before = sorted(os.listdir(store.path / "runs"))
    with urlopen(url, timeout=60) as answer:
        assert cells[0].key.encode() in answer.read()
    assert sorted(os.listdir(store.path / "runs")) == before
    process.send_signal(signal.SIGINT)
    _, stderr = process.communicate(timeout=60)
    assert process.returncode == 0
    assert stderr == f"\nfocalcal: watched {store.path}\n"
