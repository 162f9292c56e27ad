import pytest
from support.headless_chromium import chromium

from focalcal.theory.study import TheoryStudy, run_study


@pytest.fixture(scope="session")
def study() -> TheoryStudy:
    """The theory study without its cross-check, which takes minutes."""
    return run_study(cross_check=False)


@pytest.fixture(scope="session")
def tab(tmp_path_factory):
    """Chromium, started once."""
    with chromium(tmp_path_factory.mktemp("profile")) as started:
        yield started
