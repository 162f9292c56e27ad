"""`focalcal train`: one run from flags."""

import json
import os
import signal
import sys
import time

import pytest
from support.forked import ended, started
from support.small_disks import make_read_only, mounted
from typer.testing import CliRunner

from focalcal.cli import main
from focalcal.cli.app import app
from focalcal.lab.store import Store
from focalcal.lab.training import RECIPES


def invoke(*arguments):
    return CliRunner().invoke(app, [str(one) for one in arguments])


def test_a_run_is_stored_and_found_again(tmp_path):
    command = ("train", "digits_mlp_lite", "-o", "ls", "--option", "epsilon=0.1", "--seed", 3, "--epochs", 2,
               "--keep-weights", "--imbalance", 4, "--store", tmp_path)  # fmt: skip
    first = invoke(*command, "--json")
    assert first.exit_code == 0, first.output
    shown = json.loads(first.stdout)
    [run] = Store(tmp_path).runs()
    assert shown["key"] == run.key
    assert (run.spec.objective, run.spec.seed) == ("ls", 3)
    assert dict(run.spec.objective_options)["epsilon"] == 0.1
    assert (run.spec.protocol.imbalance, run.spec.training["epochs"]) == (4, 2)
    assert "weights.pt" in run.files
    again = invoke(*command)
    assert again.exit_code == 0
    assert f"stored as {run.key[:10]}" in again.stdout
    assert len(Store(tmp_path).runs()) == 1


OWN = """
from torch import nn
from focalcal.lab.data import load_data

class Sharp(nn.CrossEntropyLoss):
    def __init__(self, scale=1.0):
        super().__init__()
        self.scale = scale
    def forward(self, logits, target):
        return super().forward(self.scale * logits, target)

def images(seed):
    return load_data("digits", seed=int(seed))

class Flat(nn.Module):
    def __init__(self, classes, width=4):
        super().__init__()
        self.layers = nn.Sequential(nn.Flatten(), nn.Linear(64, int(width)), nn.Linear(int(width), classes))
    def forward(self, images):
        return self.layers(images)
"""


def test_code_of_ones_own_is_named_by_its_module(tmp_path, monkeypatch):
    (tmp_path / "own_for_train.py").write_text(OWN)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))
    own = {"-o": "Sharp", "--data-set": "images", "--model": "Flat"}
    flags = [word for flag, name in own.items() for word in (flag, f"own_for_train:{name}")]
    options = ["--option", "scale=2", "--data-option", "seed=5", "--model-option", "width=8", "--epochs", 1]
    done = invoke("train", "digits_mlp_lite", *flags, *options, "--store", tmp_path / "runs", "--keep-weights")
    assert done.exit_code == 0, done.output
    [run] = Store(tmp_path / "runs").runs()
    assert run.spec.name == "own_for_train:images/own_for_train:Flat own_for_train:Sharp(scale=2) seed 0"
    assert set(run.spec.training["sources"]) == {"data_set", "model", "objective"}
    assert run.spec.training["model_options"] == {"width": 8}
    wrong = invoke("train", "digits_mlp_lite", "-o", "own_for_train:Blunt", "--store", tmp_path / "runs")
    assert wrong.exit_code == 2
    assert "objective 'own_for_train:Blunt' must be importable" in wrong.stderr


def test_weights_that_were_not_kept_are_not_to_be_had(tmp_path):
    command = ("train", "digits_mlp_lite", "--epochs", 1, "--store", tmp_path)
    assert invoke(*command, "--no-keep-weights").exit_code == 0
    again = invoke(*command, "--keep-weights")
    assert again.exit_code == 0
    [run] = Store(tmp_path).runs()
    assert f"without its weights; remove it with `focalcal runs rm {run.key[:12]}` to train it again" in again.stderr


def test_flags_and_numbers_do_not_make_another_run(tmp_path):
    common = ("train", "digits_mlp_lite", "--epochs", 1, "--store", tmp_path, "--json")
    keys = {json.loads(invoke(*common, *more).stdout)["key"] for more in (["--gamma", "2"], ["--option", "gamma=2.0"])}
    assert len(keys) == 1


def test_recipes_are_listed_and_say_where_their_settings_come_from():
    lines = invoke("train", "--list").stdout.splitlines()
    assert ["digits_mlp_lite", "digits", "mlp", "100"] in [line.split()[:4] for line in lines]
    assert len(lines) == 1 + len(RECIPES)
    assert max(map(len, lines)) <= 100
    assert json.loads(invoke("train", "--list", "--json").stdout)["digits_mlp_lite"]["epochs"] == 100
    shown = invoke("train", "cifar10_resnet50", "--sources")
    assert shown.exit_code == 0, shown.output
    assert "nesterov = true  # judgement" in shown.stdout.splitlines()


def test_a_run_that_is_told_to_stop_says_how_to_go_on(tmp_path, monkeypatch, capfd):
    command = ["train", "digits_mlp_lite", "--epochs", "100000", "--store", str(tmp_path / "runs")]
    monkeypatch.setattr(sys, "argv", ["focalcal", *command])

    def run():
        try:
            main()
        except SystemExit as error:
            os._exit(error.code)

    process = started(run)
    deadline = time.monotonic() + 60
    while not list(tmp_path.glob("runs/work/*/epochs.jsonl")) and time.monotonic() < deadline:
        time.sleep(0.02)
    os.kill(process, signal.SIGTERM)
    assert ended(process) == 130
    said = f"focalcal: interrupted; no file was left half-written; to go on: focalcal {' '.join(command)}"
    assert capfd.readouterr().err.splitlines()[-1] == said


def test_a_stored_run_is_shown_from_a_store_that_may_only_be_read(tmp_path):
    with mounted(tmp_path / "disk", "size=40m") as disk:
        command = ("train", "digits_mlp_lite", "--epochs", 1, "--store", disk / "runs")
        first = invoke(*command)
        assert first.exit_code == 0, first.output
        make_read_only(disk)
        assert invoke(*command).stdout == first.stdout


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["digit_mlp"], "digits_mlp_lite"),
        (["digit_mlp", "--sources"], "digits_mlp_lite"),
        (["digits_mlp_lite", "-o", "fokal"], "focal"),
        (["digits_mlp_lite", "-o", "ce", "--gamma", "2"], "gamma"),
        (["digits_mlp_lite", "--option", "gamma"], "--option must be NAME=VALUE, got 'gamma'"),
        (["digits_mlp_lite", "--option", "gamma=much"], "gamma must be a number, got 'much'"),
        (["digits_mlp_lite", "--gamma", "-1"], "gamma must be finite and >= 0"),
        (["digits_mlp_lite", "--imbalance", "0.5"], "imbalance"),
        (["cifar10_resnet8_lite", "--data-dir", "/nowhere"], "/nowhere"),
    ],
)
def test_bad_input_is_one_sentence(tmp_path, arguments, said):
    result = invoke("train", *arguments, "--store", tmp_path / "runs")
    assert result.exit_code == 2, result.output
    assert said in result.stderr
    assert len(result.stderr.splitlines()) == 1
