"""`focalcal train`: one run from flags."""

import json

import pytest
from typer.testing import CliRunner

from focalcal.cli.app import app
from focalcal.results import Store


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


def test_flags_and_numbers_do_not_make_another_run(tmp_path):
    common = ("train", "digits_mlp_lite", "--epochs", 1, "--store", tmp_path, "--json")
    keys = {json.loads(invoke(*common, *more).stdout)["key"] for more in (["--gamma", "2"], ["--option", "gamma=2.0"])}
    assert len(keys) == 1


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["digit_mlp"], "digits_mlp_lite"),
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
