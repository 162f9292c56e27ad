"""`focalcal study` as a user runs it: a small grid, real training, and everything that can go wrong."""

import json
import os
import re
import signal
import subprocess
import sys
import time

import pytest
from typer.testing import CliRunner

from focalcal.cli.app import app

SMALL = """
title = "Two objectives"
seeds = [0, 1]

[[settings]]
recipe = "digits_mlp_lite"
epochs = {epochs}
model_options.hidden = [16]

[[objectives]]
name = ["ce", "fcl"]
"""


@pytest.fixture
def small(tmp_path):
    path = tmp_path / "small.toml"
    path.write_text(SMALL.format(epochs=2))
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


def test_the_smallest_size_has_a_report_of_its_own(small, tmp_path):
    small.write_text(SMALL.format(epochs=1) + "\n[smoke]\nseeds = [0]\n")
    found = invoke("study", small, "--store", tmp_path / "runs", "-j", 1, "--smoke")
    assert found.exit_code == 0, found.output
    page = tmp_path / "runs" / "report" / "small-smoke" / "report.html"
    assert found.stdout.splitlines()[-1] == f"report: {page}"
    assert "<title>Two objectives (smallest size)</title>" in page.read_text("utf-8")
    assert invoke("study", small, "--store", tmp_path / "runs", "--smoke", "--no-report").stdout.count("report") == 0


def test_a_dry_run_makes_nothing(small, tmp_path):
    plan = invoke("study", small, "--store", tmp_path / "runs", "--dry-run")
    assert plan.exit_code == 0, plan.output
    assert "4 cells, 4 to train" in plan.stdout
    assert not (tmp_path / "runs").exists()
    cells = json.loads(invoke("study", small, "--store", tmp_path / "runs", "--dry-run", "--json").stdout)
    assert len({cell["key"] for cell in cells}) == 4
    assert all(cell["seconds"] > 0 and not cell["done"] for cell in cells)


def test_a_failing_cell_is_named_and_the_others_go_on(small, tmp_path):
    poor = "\n[[settings]]\nrecipe = 'digits_mlp_lite'\nepochs = 2\noptimizer.lr = 1e30\n"
    small.write_text(SMALL.format(epochs=2).replace("seeds = [0, 1]", "seeds = [0]") + poor)
    result = invoke("study", small, "--store", tmp_path / "runs", "-j", 1, "--no-report")
    assert result.exit_code == 1
    assert "digits/mlp ce #2 seed 0: non-finite loss: " in result.stderr  # the second way to train it
    assert "2 of 4 cells are stored" in result.stderr
    assert "Two objectives: 2 of 4 cells" in result.stdout


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ('title = "x"\nseed = [0]\n', "seeds"),
        (SMALL.format(epochs=1).replace('"ce"', '"cross"'), "cross"),
        (SMALL.format(epochs=1).replace("digits_mlp_lite", "digits_mlp"), "digits_mlp_lite"),
        ("title = ", "not TOML"),
    ],
)
def test_a_wrong_study_points_at_the_line(tmp_path, text, said):
    path = tmp_path / "wrong.toml"
    path.write_text(text)
    result = invoke("study", path, "--store", tmp_path / "runs")
    assert result.exit_code == 2
    assert re.search(r"wrong\.toml:\d+: ", result.stderr)
    assert said in result.stderr
    assert not (tmp_path / "runs").exists()


def test_unknown_names_are_answered_with_the_known_ones(tmp_path):
    result = invoke("study", "digit", "--store", tmp_path / "runs")
    assert result.exit_code == 2
    assert "digits" in result.stderr
    listed = invoke("study", "--list")
    assert listed.stdout.startswith("digits ")
    assert {"tenseed", "surface", "adafocal"} <= set(json.loads(invoke("study", "--list", "--json").stdout))


@pytest.mark.parametrize("flags", [[], ["--dry-run"]])
def test_a_device_that_is_not_there(small, tmp_path, flags):
    result = invoke("study", small, "--store", tmp_path / "runs", "--device", "tpu", *flags)
    assert result.exit_code == 2
    assert "--device must be one that torch can use here, got 'tpu'" in result.stderr


def test_a_file_that_is_not_there(tmp_path):
    result = invoke("study", tmp_path / "mine.toml")
    assert result.exit_code == 2
    assert result.stderr.startswith("focalcal: a study must be a file that can be read, got No such file or directory")
    assert str(tmp_path / "mine.toml") in result.stderr


def test_a_store_that_is_a_file(small, tmp_path):
    (tmp_path / "runs").write_text("not a folder")
    result = invoke("study", small, "--store", tmp_path / "runs")
    assert result.exit_code == 2
    assert str(tmp_path / "runs") in result.stderr.replace("\n", "")


def test_ctrl_c_stops_soon_and_the_same_command_goes_on(small, tmp_path):
    small.write_text(SMALL.format(epochs=400))
    command = [sys.executable, "-m", "focalcal.cli", "study", str(small), "--store", str(tmp_path / "runs"), "-j", "2"]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    deadline = time.monotonic() + 120
    while not list((tmp_path / "runs").glob("work/*/epochs.jsonl")):
        assert time.monotonic() < deadline, "no cell has started"
        assert process.poll() is None, process.communicate()
        time.sleep(0.1)
    os.kill(process.pid, signal.SIGINT)
    _, stderr = process.communicate(timeout=60)
    assert process.returncode == 130
    assert "interrupted; " in stderr
    assert "to go on: focalcal study" in stderr
    small.write_text(SMALL.format(epochs=2))
    assert invoke("study", small, "--store", tmp_path / "runs", "--no-report").exit_code == 0
