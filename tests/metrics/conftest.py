import pytest
from support.metric_engines import ENGINES, use


@pytest.fixture(params=ENGINES)
def engine(request, monkeypatch):
    """Run the test once with the native pass and once without it."""
    use(request.param, monkeypatch)
    return request.param
