"""`focalcal tune`: what the library says, printed; and plain refusals."""

import json

import pytest
from support.noisy_networks import NoisyNetworks
from typer.testing import CliRunner

from focalcal.cli.app import app
from focalcal.core.numerics import softmax
from focalcal.lab.store import Store
from focalcal.lab.studies.tuning import tune
from focalcal.predictions import Predictions


class Probabilities(NoisyNetworks):
    """Networks that end in a softmax."""

    def _predictions(self, *arguments):
        part = super()._predictions(*arguments)
        return Predictions(logits=softmax(part.logits), labels=part.labels, split=part.split)


class Certain(NoisyNetworks):
    """Networks that predict every label."""

    def _predictions(self, *arguments):
        part = super()._predictions(*arguments)
        return Predictions(logits=part.logits, labels=part.logits.argmax(1), split=part.split)


@pytest.fixture
def run(tmp_path, monkeypatch):
    def invoke(networks, recipe, *arguments):
        monkeypatch.setattr("focalcal.lab.studies.LocalExecutor", lambda jobs, options: networks)
        monkeypatch.setattr("focalcal.lab.studies.RayExecutor", lambda address, **_: networks if address else None)
        asked = ["tune", recipe, "--store", tmp_path / "runs", "-o", "fcl", "--trials", 3, "--seeds", 1, *arguments]
        return CliRunner().invoke(app, list(map(str, asked)))

    return invoke


def test_prints_what_the_library_says(run, tmp_path):
    result = run(NoisyNetworks(), "digits_mlp_lite", "--out", tmp_path / "tuned")
    assert result.exit_code == 0, result.output
    again = tune(
        "digits_mlp_lite", Store(tmp_path / "runs"), executor=NoisyNetworks(), objectives=("fcl",), trials=3, seeds=1
    )
    assert again.sentence in result.stdout
    assert f"loss = {again.paste}\n" in result.stdout
    assert json.loads((tmp_path / "tuned" / "tune.json").read_text())["paste"] == again.paste
    assert json.loads(run(NoisyNetworks(), "digits_mlp_lite", "--json").stdout)["sentence"] == again.sentence


def test_validation_rows_can_be_asked_for(run, tmp_path):
    assert run(NoisyNetworks(), "ag_news_gp_cnn_lite", "--data-option", "validation=2000").exit_code == 0
    run_ = next(iter(Store(tmp_path / "runs").runs()))
    assert dict(run_.spec.training["data_options"])["validation"] == 2000


def test_a_search_without_an_operating_point_says_why(run):
    result = run(Certain(), "digits_mlp_lite")
    assert result.exit_code == 0, result.output
    assert "lam = 8 stands for the predicted one: logits must have a best temperature" in result.stdout


def test_the_runs_can_be_trained_by_a_cluster(run):
    done = run(NoisyNetworks(), "digits_mlp_lite", "--executor", "ray", "--address", "host:6379")
    assert done.exit_code == 0, done.output


@pytest.mark.parametrize(
    ("networks", "recipe", "message"),
    [
        (
            NoisyNetworks,
            "ag_news_gp_cnn_lite",
            "validation, e.g. 2000 (--data-option validation=2000)",
        ),
        (Probabilities, "digits_mlp_lite", "got probabilities for every validation row; remove its softmax"),
    ],
)
def test_refusals(run, networks, recipe, message):
    result = run(networks(), recipe)
    assert result.exit_code == 2
    assert message in result.stderr.splitlines()[-1]
