"""SIGKILL at random moments: what is resumed ends with the bits of what was never interrupted."""

import json
import subprocess
import sys
from pathlib import Path

import pytest
import torch
from support.killed_runs import AFTER, CASES, EPOCHS
from support.training_runs import read_lines, without_seconds

from focalcal.predictions import Predictions

pytestmark = (
    pytest.mark.slow
)  # of whole runs tests/lab/studies/test_run.py kills some, of checkpoints test_checkpoint.py
TESTS = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    folder = tmp_path_factory.mktemp("runs")
    script = [sys.executable, str(TESTS / "support" / "killed_runs.py"), str(folder)]
    done = subprocess.run(script, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return folder


def test_runs_were_killed_on_their_way(runs):
    for case in CASES:
        kills = json.loads((runs / case / "kills.json").read_text())
        assert len(kills) == len(AFTER)
        assert all(least <= epochs < EPOCHS for least, epochs in zip(AFTER, kills, strict=True)), kills


@pytest.mark.parametrize("case", CASES)
def test_the_same_bits_as_uninterrupted(runs, case):
    whole, killed = runs / case / "whole", runs / case / "killed"
    records = without_seconds(read_lines(whole / "epochs.jsonl"))
    assert [record["epoch"] for record in records] == list(range(1, EPOCHS + 1))
    assert without_seconds(read_lines(killed / "epochs.jsonl")) == records
    one, other = (torch.load(folder / "weights.pt", weights_only=True) for folder in (whole, killed))
    assert all(one[key].equal(other[key]) for key in one)
    predictions = [Predictions.load(folder / "predictions.npz") for folder in (whole, killed)]
    assert predictions[0].equals(predictions[1])
    if case == "adafocal":
        assert records[0]["gammas"] != records[-1]["gammas"]
    if case == "plateau":
        assert records[-1]["lr"] < records[0]["lr"]
