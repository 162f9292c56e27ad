import pytest
from support import figure_runs

from focalcal.lab.store import Store


@pytest.fixture
def store(tmp_path):
    return Store(tmp_path / "store")


@pytest.fixture(scope="session")
def nine(tmp_path_factory):
    """Nine objectives, two seeds each, of one setting."""
    store = Store(tmp_path_factory.mktemp("nine"))
    return [
        figure_runs.stored(
            store,
            objective,
            seed=seed,
            predictions=figure_runs.predicted(seed, sharpness=0.5 + number / 4),
            epochs=figure_runs.epochs_with([1.0 + number + seed, 0.5 + number, 0.25]),
        )
        for number, objective in enumerate(figure_runs.NINE)
        for seed in (0, 1)
    ]


@pytest.fixture(scope="session")
def evidence(nine):
    return figure_runs.evidence_of(nine)


@pytest.fixture(scope="session")
def trained(tmp_path_factory):
    """Runs that were really trained: three with a known posterior, one with saliency, one with AdaFocal's gammas."""
    store = Store(tmp_path_factory.mktemp("trained"))
    return {
        "posterior": figure_runs.known_posterior_runs(store),
        "saliency": figure_runs.saliency_run(store),
        "adafocal": figure_runs.adafocal_run(store),
    }
