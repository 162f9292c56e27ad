import pytest
from paper.theory.theory_study import TheoryStudy, run_study


@pytest.fixture(scope="session")
def study() -> TheoryStudy:
    """The theory study without its cross-check, which takes minutes."""
    return run_study(cross_check=False)
