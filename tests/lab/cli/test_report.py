import json

import pytest
import typer
from support.synthetic_study import add, spec, study_store
from typer.testing import CliRunner

from focalcal.lab.cli.report import report
from focalcal.lab.store import Store
from focalcal.lab.studies import load_study

app = typer.Typer()
app.command()(report)


def run(*arguments):
    return CliRunner().invoke(app, [str(one) for one in arguments])


@pytest.fixture(scope="module")
def store(tmp_path_factory):
    return study_store(tmp_path_factory.mktemp("runs"), objectives=("ce", "fcl"), seeds=(0, 1))


def test_the_path_of_the_page_is_printed_last(store, tmp_path):
    found = run("--store", store.path, "--out", tmp_path / "out", "--no-figures")
    assert found.exit_code == 0, found.output
    lines = found.stdout.splitlines()
    assert lines[-1] == str(tmp_path / "out" / "report.html")
    assert (tmp_path / "out" / "report.html").is_file()
    assert str(tmp_path / "out" / "tables" / "ece.csv") in lines


def test_json(store, tmp_path):
    said = json.loads(run("--store", store.path, "--out", tmp_path, "--json", "--no-figures").stdout)
    assert said["page"] == str(tmp_path / "report.html")
    assert said["runs"] == 4
    assert said["significant"][0].startswith("No difference is significant")
    assert said["missing"] == said["flags"] == []


def test_the_store_may_come_from_the_environment(tmp_path, monkeypatch):
    add(Store(tmp_path / "runs"), spec("fcl", 0))
    monkeypatch.setenv("FOCALCAL_STORE", str(tmp_path / "runs"))
    found = run("--no-figures")
    assert found.exit_code == 0, found.output
    assert found.stdout.splitlines()[-1] == str(tmp_path / "runs" / "report" / "report.html")
    assert "one seed only" in found.stderr


def test_a_study_names_the_cells_that_are_not_there(tmp_path):
    Store(tmp_path / "runs")
    found = run("--store", tmp_path / "runs", "--study", "digits")
    assert found.exit_code == 0, found.output
    study = load_study("digits")
    assert found.stderr.count("not run") == len(study.specs())
    page = tmp_path / "runs" / "report" / "digits" / "report.html"
    assert study.title in page.read_text("utf-8")


def test_what_is_no_store_or_no_study_is_refused(tmp_path, store):
    missing = run("--store", tmp_path / "nowhere")
    assert (missing.exit_code, missing.stdout) == (2, "")
    assert "nowhere" in missing.stderr
    unknown = run("--store", store.path, "--study", "digit")
    assert unknown.exit_code == 2
    assert "digits" in unknown.stderr
