"""Everything in the guide to deployment runs; where FastAPI is missing its handler is called as a function."""

import importlib.util
import re
import sys
import types
from pathlib import Path

import numpy as np
import pytest

PAGE = Path(__file__).parents[2] / "docs" / "guide" / "deploy.md"
BLOCKS = re.findall(r"^```python\n(.*?)^```", PAGE.read_text(), re.DOTALL | re.MULTILINE)


class HTTPException(Exception):
    def __init__(self, status_code, detail):
        super().__init__(status_code, detail)


def stand_in():
    """A module with a FastAPI whose decorator gives the function back."""
    module = types.ModuleType("fastapi")
    module.FastAPI = type("FastAPI", (), {"post": lambda self, path: lambda function: function})
    module.HTTPException = HTTPException
    return module


@pytest.mark.once
@pytest.mark.filterwarnings("ignore")
def test_the_page_goes_through(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    real = importlib.util.find_spec("fastapi") and importlib.util.find_spec("httpx")
    if not real:
        monkeypatch.setitem(sys.modules, "fastapi", stand_in())
    namespace = {"__name__": "page"}
    for body in BLOCKS:
        exec(compile(body, "docs/guide/deploy.md", "exec"), namespace)
    logits = namespace["logits"].double().tolist()
    expected = namespace["scaling"].predict_proba(np.array(logits))
    if real:
        from fastapi.testclient import TestClient

        client = TestClient(namespace["app"])
        np.testing.assert_allclose(client.post("/probabilities", json=logits).json(), expected, rtol=1e-12)
        assert client.post("/probabilities", json=[[1.0, 2.0]]).status_code == 422
    else:
        np.testing.assert_allclose(namespace["probabilities"](logits), expected, rtol=1e-12)
        with pytest.raises(HTTPException, match="expecting 4 features"):
            namespace["probabilities"]([[1.0, 2.0]])
