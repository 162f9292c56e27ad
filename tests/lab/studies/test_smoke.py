"""Every study runs at its smoke size, on small data sets in the official layouts, and ends up whole."""

import pytest
from support.data_folders import FABRICATED
from support.every_study import EVERY_STUDY

from focalcal.lab.store import Store
from focalcal.lab.studies import find_gaps, load_study
from focalcal.lab.studies.run import run_spec

SLOW = pytest.mark.slow
SMALL = {"digits", "known-posterior", "operating-point", "operating-point-real"}
LARGE = {one for one in EVERY_STUDY if "lite" not in one} - SMALL  # the paper's networks


@pytest.fixture(scope="module")
def small_data(published):
    """All of them together are a few megabytes; the weights and vectors that recipes start from are there too."""
    for make in FABRICATED.values():
        make(published)
    return published


@pytest.mark.parametrize("name", [pytest.param(one, marks=SLOW if one in LARGE else ()) for one in EVERY_STUDY])
def test_a_smoke_run_of_the_study_is_complete(name, small_data, tmp_path):
    study, store = load_study(EVERY_STUDY[name]), Store(tmp_path)
    specs, evaluations = study.specs(smoke=True), study.evaluations(smoke=True)
    assert len(find_gaps(specs, store, evaluations)) == len(specs)
    for one in specs:
        run_spec(one, store, evaluations=evaluations, data_dir=small_data)
    assert find_gaps(specs, store, evaluations) == []
