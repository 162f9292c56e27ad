"""Every shipped study runs at its smoke size, on small data sets in the official layouts, and ends up whole."""

import pytest
from data_folders import FABRICATED

from focalcal.experiments.completeness import gaps
from focalcal.experiments.run import run_spec
from focalcal.experiments.shipped import shipped_studies
from focalcal.experiments.study import load_study
from focalcal.results import Store


@pytest.fixture(scope="module")
def small_data(tmp_path_factory):
    """All of them together are a few megabytes."""
    folder = tmp_path_factory.mktemp("data")
    for make in FABRICATED.values():
        make(folder)
    return folder


@pytest.mark.parametrize("name", shipped_studies())
def test_a_smoke_run_of_the_study_is_complete(name, small_data, tmp_path):
    specs, store = load_study(name).specs(smoke=True), Store(tmp_path)
    assert len(gaps(specs, store)) == len(specs)
    for one in specs:
        run_spec(one, store, data_dir=small_data)
    assert gaps(specs, store) == []
