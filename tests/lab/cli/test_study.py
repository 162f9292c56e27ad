"""`focalcal study` as a user runs it: a small grid, real training, and everything that can go wrong."""

import json
import os
import re
import signal
import subprocess
import sys
import time

import pytest
from support import synthetic_study as synthetic
from support.small_disks import make_read_only, mounted
from support.small_runs import two_objectives
from typer.testing import CliRunner

from focalcal.cli.app import app
from focalcal.lab.store import Store
from focalcal.lab.studies import load_study


@pytest.fixture
def small(tmp_path):
    path = tmp_path / "small.toml"
    path.write_text(two_objectives(epochs=2))
    return path


def invoke(*arguments):
    return CliRunner().invoke(app, [str(one) for one in arguments])


def lines(text):
    return [" ".join(line.split()) for line in text.splitlines()]


def test_a_study_runs_once_and_is_then_only_read(small, tmp_path):
    first = invoke("study", small, "--store", tmp_path / "runs", "--jobs", 2)
    assert first.exit_code == 0, first.output
    assert "Two objectives: 4 of 4 cells" in first.output
    assert sum(bool(re.match(r"\[\d/4\] digits/mlp", line)) for line in first.stderr.splitlines()) == 4
    table = [line for line in lines(first.stdout) if line.startswith("digits/mlp")]
    assert [line.split()[1:3] for line in table] == [["ce", "2"], ["fcl", "2"]]  # two seeds each
    again = invoke("study", small, "--store", tmp_path / "runs")
    assert again.exit_code == 0
    assert "[1/" not in again.stderr  # nothing was trained
    assert again.stdout == first.stdout
    page = tmp_path / "runs" / "report" / "small" / "report.html"
    assert first.stdout.splitlines()[-1] == f"report: {page}"
    assert "<title>Two objectives</title>" in page.read_text("utf-8")
    found = json.loads(invoke("study", small, "--store", tmp_path / "runs", "--json").stdout)
    assert {(run["objective"], run["seed"]) for run in found} == {("ce", 0), ("ce", 1), ("fcl", 0), ("fcl", 1)}
    assert all(0 < run["metrics"]["test"]["nll"] < 3 for run in found)


def finished(path, folder):
    """A store with every cell of a study, untrained."""
    store = Store(folder)
    for spec in load_study(path).specs():
        synthetic.add(store, spec)
    return store


def test_a_finished_study_whose_report_cannot_be_written_is_shown_all_the_same(small, tmp_path):
    store = finished(small, tmp_path / "runs")
    (store.path / "report").write_text("in the way")
    result = invoke("study", small, "--store", store.path)
    assert result.exit_code == 0, result.output
    assert "Two objectives: 4 of 4 cells" in result.stdout
    cannot, whole = result.stderr.splitlines()
    assert cannot.startswith(f"focalcal: the report cannot be written to {store.path / 'report' / 'small'}: ")
    assert cannot.endswith(f"with: focalcal report --store {store.path} --study {small} --out FOLDER")
    assert whole == f"focalcal: 4 of 4 cells are stored in {store.path}"


def test_a_finished_study_in_a_store_that_may_only_be_read(small, tmp_path):
    with mounted(tmp_path / "disk", "size=40m") as disk:
        store = finished(small, disk / "runs")
        make_read_only(disk)
        result = invoke("study", small, "--store", store.path)
        assert result.exit_code == 0, result.output
        assert "Two objectives: 4 of 4 cells" in result.stdout
        assert "the report cannot be written to" in result.stderr
        assert "Read-only file system; write it elsewhere with: focalcal report" in result.stderr


@pytest.mark.parametrize("command", ["study digits --dry-run", "train"])
def test_more_threads_than_can_be_had_are_refused(tmp_path, monkeypatch, command):
    monkeypatch.chdir(tmp_path)
    result = invoke(*command.split(), "--threads", 100_000)
    assert result.exit_code == 2
    assert re.fullmatch(r"focalcal: threads must be at most \d+ on this machine, got 100000; .*\n", result.stderr)


def test_the_smallest_size_has_a_report_of_its_own(small, tmp_path):
    small.write_text(two_objectives(epochs=1) + "\n[smoke]\nseeds = [0]\n")
    found = invoke("study", small, "--store", tmp_path / "runs", "-j", 1, "--smoke")
    assert found.exit_code == 0, found.output
    page = tmp_path / "runs" / "report" / "small-smoke" / "report.html"
    assert found.stdout.splitlines()[-1] == f"report: {page}"
    assert "<title>Two objectives (smallest size)</title>" in page.read_text("utf-8")
    assert invoke("study", small, "--store", tmp_path / "runs", "--smoke", "--no-report").stdout.count("report") == 0


def test_a_dry_run_makes_nothing(small, tmp_path):
    plan = invoke("study", small, "--store", tmp_path / "runs", "--dry-run")
    assert plan.exit_code == 0, plan.output
    said = "4 cells, 4 to train; how long they take is not known: no stored run is like them"
    assert plan.stdout.splitlines()[-1] == said
    assert not (tmp_path / "runs").exists()
    cells = json.loads(invoke("study", small, "--store", tmp_path / "runs", "--dry-run", "--json").stdout)
    assert len({cell["key"] for cell in cells}) == 4
    assert {(cell["state"], cell["seconds"], cell["done"]) for cell in cells} == {("to train", None, False)}


@pytest.mark.parametrize("made", [False, True], ids=["new", "there"])
def test_a_dry_run_refuses_a_store_that_could_not_be_written(small, tmp_path, made):
    with mounted(tmp_path / "disk", "size=40m") as disk:
        if made:
            Store(disk / "runs")
        make_read_only(disk)
        result = invoke("study", small, "--store", disk / "runs", "--dry-run")
        assert result.exit_code == 2
        assert re.search(r"focalcal: the store .*runs must .*, got Read-only file system", result.stderr)
    (tmp_path / "file").write_text("in the way")
    result = invoke("study", small, "--store", tmp_path / "file" / "runs", "--dry-run")
    assert result.exit_code == 2
    assert "must be a folder that can be made, got Not a directory" in result.stderr


def test_a_dry_run_of_a_finished_study_needs_no_room(small, tmp_path):
    with mounted(tmp_path / "disk", "size=40m") as disk:
        store = finished(small, disk / "runs")
        make_read_only(disk)
        assert "4 cells, 0 to train" in invoke("study", small, "--store", store.path, "--dry-run").stdout


def test_a_dry_run_tells_what_stored_runs_took(small, tmp_path):
    store = Store(tmp_path / "runs")
    specs = load_study(small).specs()
    told = {"metrics": {}, "provenance": {}, "seconds": 100.0, "epochs": 1}
    store.add(specs[0], record=told, epochs=None, predictions=[])
    plan = invoke("study", small, "--store", tmp_path / "runs", "--dry-run", "-j", 2)
    assert plan.stdout.splitlines()[-1] == "4 cells, 3 to train; about 5 min with 2 at a time on cpu"
    small.write_text(two_objectives(epochs=2) + "\n[[settings]]\nrecipe = 'digits_small_cnn_lite'\n")
    plan = invoke("study", small, "--store", tmp_path / "runs", "--dry-run", "-j", 3)
    assert plan.stdout.splitlines()[-1] == (
        "8 cells, 7 to train; about 3 min with 3 at a time on cpu; "
        "how long 4 of them take is not known: no stored run is like them"
    )
    assert sum("not known" in line for line in plan.stdout.splitlines()[:-1]) == 4


def test_a_failing_cell_is_named_and_the_others_go_on(small, tmp_path):
    poor = "\n[[settings]]\nrecipe = 'digits_mlp_lite'\nepochs = 2\noptimizer.lr = 1e30\n"
    small.write_text(two_objectives(epochs=2).replace("seeds = [0, 1]", "seeds = [0]") + poor)
    result = invoke("study", small, "--store", tmp_path / "runs", "-j", 1, "--no-report")
    assert result.exit_code == 1
    assert "digits/mlp lr=1e+30 hidden=512,512 ce seed 0: non-finite loss: " in result.stderr
    assert "2 of 4 cells are stored" in result.stderr
    assert "Two objectives: 2 of 4 cells" in result.stdout


def test_the_address_of_a_cluster_that_is_not_asked_for(small, tmp_path):
    result = invoke("study", small, "--store", tmp_path / "runs", "--address", "ray://there:10001")
    assert result.exit_code == 2
    assert "--address names a Ray cluster, got 'ray://there:10001' without it; add --executor ray" in result.stderr
    assert not (tmp_path / "runs").exists()


def test_a_wrong_study_names_the_key_and_makes_no_store(tmp_path):
    path = tmp_path / "wrong.toml"
    path.write_text(two_objectives(epochs=1).replace('"ce"', '"cross"'))
    result = invoke("study", path, "--store", tmp_path / "runs")
    assert result.exit_code == 2
    assert result.stderr.startswith(f"focalcal: {path}: objectives[0].name[0]: 'cross' is not")
    assert not (tmp_path / "runs").exists()


def test_unknown_names_are_answered_with_the_known_ones(tmp_path):
    result = invoke("study", "digit", "--store", tmp_path / "runs")
    assert result.exit_code == 2
    assert "digits" in result.stderr
    listed = invoke("study", "--list")
    assert listed.stdout.startswith("digits ")
    assert invoke("study").stdout == listed.stdout  # and nothing is trained
    assert {"known-posterior", "surface-lite"} <= set(json.loads(invoke("study", "--list", "--json").stdout))


def test_a_device_that_is_not_there(small, tmp_path):
    result = invoke("study", small, "--store", tmp_path / "runs", "--device", "tpu", "--dry-run")
    assert result.exit_code == 2
    assert "--device must be one that torch can use here, got 'tpu'" in result.stderr


def test_a_study_that_is_told_to_stop_stops_soon_and_the_same_command_goes_on(small, tmp_path):
    """By SIGTERM to all of its processes, as schedulers send it; tests of the executors have the other ways."""
    small.write_text(two_objectives(epochs=400))
    command = [sys.executable, "-m", "focalcal.cli", "study", str(small), "--store", str(tmp_path / "runs"), "-j", "2"]
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    process = subprocess.Popen(command, start_new_session=True, **pipes)
    deadline = time.monotonic() + 120
    while not list((tmp_path / "runs").glob("work/*/epochs.jsonl")):
        assert time.monotonic() < deadline, "no cell has started"
        assert process.poll() is None, process.communicate()
        time.sleep(0.1)
    os.killpg(process.pid, signal.SIGTERM)
    _, stderr = process.communicate(timeout=60)
    assert process.returncode == 130
    assert "interrupted; " in stderr
    assert "to go on: focalcal study" in stderr
    assert "SIGTERM" not in stderr  # no cell is said to have been killed
    small.write_text(two_objectives(epochs=2))
    assert invoke("study", small, "--store", tmp_path / "runs", "--no-report").exit_code == 0
