"""`python -m paper.operating_point`: the cells of all rounds in one table, and how often the rule held."""

import csv
import json

import pytest
from paper.operating_point.__main__ import app
from paper.record import here
from support.ideal_networks import IdealNetworks
from typer.testing import CliRunner

STUDY = """
title = "Two settings"
seeds = [0, 1]
[[settings]]
recipe = "digits_mlp_lite"
[[settings]]
recipe = "digits_mlp_lite"
epochs = 7
[[objectives]]
name = ["ce", "focal"]
"""


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    """Of one store, so that what one test had trained is there for the next."""
    folder = tmp_path_factory.mktemp("operating-point")
    networks = IdealNetworks(1.4)

    def invoked(*arguments, study=STUDY):
        (folder / "two.toml").write_text(study)
        asked = [folder / "two.toml", "--store", folder / "runs", *arguments]
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr("focalcal.lab.studies.LocalExecutor", lambda jobs, options: networks)
            return CliRunner().invoke(app, list(map(str, asked)))

    return invoked


def test_the_table_has_every_setting_and_role(run, tmp_path):
    result = run("--out", tmp_path / "cells.csv")
    assert result.exit_code == 0, result.output
    assert "|log T| <= 0.1 in 12 of 12 predicted cells where FCL is said to help" in result.stdout
    with open(tmp_path / "cells.csv") as file:
        cells = list(csv.DictReader(file))
    assert {cell["setting"] for cell in cells} == {"digits/mlp epochs=100", "digits/mlp epochs=7"}
    assert len(cells) == 2 * 2 * 10
    assert all(here().items() <= cell.items() for cell in cells)  # where the runs come from
    assert float(cells[0]["validation_temperature"]) == pytest.approx(
        1.4, abs=0.1
    )  # that of the ideal cross-entropy network
    means = [line for line in result.stdout.splitlines() if line.startswith("digits/mlp")]
    assert len(means) == 2 * 10  # the seeds are averaged
    assert "[40/40]" in result.stderr


def test_as_json(run):
    told = json.loads(run("--json").stdout)
    assert told["verdict"]["helped"] == told["verdict"]["within"] == 12
    assert {trial["role"] for trial in told["trials"]} >= {"cross-entropy", "predicted", "refined"}


def test_a_study_without_validation_rows_is_refused(run):
    result = run(study=STUDY.replace("digits_mlp_lite", "ag_news_gp_cnn_lite"))
    assert result.exit_code == 2
    assert "set data_options.validation" in result.stderr
