import pytest
from support.browser import Tab, chromium

from focalcal.theory.study import TheoryStudy, run_study


@pytest.fixture(scope="session")
def study() -> TheoryStudy:
    """The theory study without its cross-check, which takes minutes."""
    return run_study(cross_check=False)


@pytest.fixture(scope="session")
def chrome():
    """Chromium, started once."""
    with chromium() as started:
        yield started


@pytest.fixture
def tab(chrome):
    """A fresh page, which must not have complained in the end."""
    made = Tab(chrome)
    yield made
    made.context.close()
    made.check()
