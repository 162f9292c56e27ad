"""Every study runs at its smoke size, on small data sets in the official layouts, and ends up whole."""

import csv

import pytest
from support.data_folders import FABRICATED
from support.every_study import EVERY_STUDY

from focalcal.lab.cli.options import report_options
from focalcal.lab.report.report_folder import write_report
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
        run_spec(one, store, evaluations=evaluations, data_dir=None if name in STAND_IN else small_data)
    assert find_gaps(specs, store, evaluations) == []
    if name in STAND_IN:
        check_report(name, study, store)


def check_report(name, study, store):
    """A smoke run that needs no data ends with what the study is for."""
    write_report(store, with_figures=name == "surface", **report_options(study, smoke=True))
    made = {path.stem: path for path in store.path.glob("report/*/*") if path.suffix in (".csv", ".pdf")}
    assert set(STAND_IN[name]) <= made.keys()
    if name == "tenseed":
        with made["comparisons"].open(newline="") as file:
            rows = list(csv.DictReader(file))
        assert {(row["baseline"], row["n"]) for row in rows} == {("ce", "9")}
        assert CANNOT_SHOW not in {row["verdict"] for row in rows}  # nine pairs can be significant, corrected too
    if name == "adafocal":
        with made["common_split"].open(newline="") as file:
            assert [row["objective"] for row in csv.DictReader(file)] == ["ce", "adafocal", "fcl"]
