import pytest

from focalcal.theory.study import Study, run_study


@pytest.fixture(scope="session")
def study() -> Study:
    """The theory study without its cross-check, which takes minutes."""
    return run_study(cross_check=False)
