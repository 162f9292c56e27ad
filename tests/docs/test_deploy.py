"""Everything in the guide to deployment runs, its handler called over HTTP."""

import re
from pathlib import Path

import numpy as np
import pytest
from fastapi.testclient import TestClient

PAGE = Path(__file__).parents[2] / "docs" / "guide" / "deploy.md"
BLOCKS = re.findall(r"^```python\n(.*?)^```", PAGE.read_text(), re.DOTALL | re.MULTILINE)


@pytest.mark.once
@pytest.mark.filterwarnings("ignore")
def test_the_page_goes_through(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    namespace = {"__name__": "page"}
    for body in BLOCKS:
        exec(compile(body, "docs/guide/deploy.md", "exec"), namespace)
    logits = namespace["logits"].double().tolist()
    expected = namespace["scaling"].predict_proba(np.array(logits))
    client = TestClient(namespace["app"])
    np.testing.assert_allclose(client.post("/probabilities", json=logits).json(), expected, rtol=1e-12)
    assert client.post("/probabilities", json=[[1.0, 2.0]]).status_code == 422
