"""Every study runs at its smoke size, on small data sets in the official layouts, and ends up whole."""

import csv

import pytest
from support.data_folders import FABRICATED
from support.every_study import EVERY_STUDY
from typer.testing import CliRunner

from focalcal.cli.app import app
from focalcal.lab.report.study_tables.paired import CANNOT_SHOW
from focalcal.lab.store import Store
from focalcal.lab.studies import find_gaps, load_study
from focalcal.lab.studies.run import run_spec

RELEASE = [pytest.mark.slow, pytest.mark.release]
SMALL = {"digits", "known-posterior", "operating-point", "operating-point-real"}
STAND_IN = {"tenseed": ["comparisons", "verdicts"], "surface": ["surface-ece-digits-mlp"], "adafocal": ["common_split"]}
LARGE = {one for one in EVERY_STUDY if "lite" not in one} - SMALL - STAND_IN.keys()  # the paper's networks


@pytest.fixture(scope="module")
def small_data(published):
    """All of them together are a few megabytes; the weights and vectors that recipes start from are there too."""
    for make in FABRICATED.values():
        make(published)
    return published


@pytest.mark.parametrize("name", [pytest.param(one, marks=RELEASE if one in LARGE else ()) for one in EVERY_STUDY])
def test_a_smoke_run_of_the_study_is_complete(name, small_data, tmp_path):
    study, store = load_study(EVERY_STUDY[name]), Store(tmp_path)
    specs, evaluations = study.specs(smoke=True), study.evaluations(smoke=True)
    assert len(find_gaps(specs, store, evaluations)) == len(specs)
    for one in specs:
        run_spec(one, store, evaluations=evaluations, data_dir=small_data)
    assert find_gaps(specs, store, evaluations) == []


@pytest.mark.parametrize(
    "name", [pytest.param(one, marks=() if one == "tenseed" else pytest.mark.slow) for one in STAND_IN]
)
def test_a_smoke_run_without_any_data_ends_with_what_the_study_is_for(name, tmp_path, monkeypatch):
    monkeypatch.delenv("FOCALCAL_DATA", raising=False)
    done = CliRunner().invoke(app, ["study", EVERY_STUDY[name], "--smoke", "--store", str(tmp_path), "--jobs", "1"])
    assert done.exit_code == 0, done.output
    report = tmp_path / "report" / f"{name}-smoke"
    made = {path.stem: path for path in report.glob("*/*") if path.suffix in (".csv", ".pdf")}
    assert set(STAND_IN[name]) <= made.keys()
    if name == "tenseed":
        with made["comparisons"].open(newline="") as file:
            rows = list(csv.DictReader(file))
        assert {(row["baseline"], row["n"]) for row in rows} == {("ce", "9")}
        assert CANNOT_SHOW not in {row["verdict"] for row in rows}  # nine pairs can be significant, corrected too
    if name == "adafocal":
        with made["common_split"].open(newline="") as file:
            assert [row["objective"] for row in csv.DictReader(file)] == ["ce", "adafocal", "fcl"]
