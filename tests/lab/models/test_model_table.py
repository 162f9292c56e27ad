from pathlib import Path

import pytest

from focalcal.lab.models import MODELS
from focalcal.lab.models.model_table import model_table

GUIDE = Path(__file__).parents[3] / "docs" / "guide" / "models.md"


def test_the_guide_repeats_the_table():
    pytest.importorskip("transformers")
    table = model_table()
    assert table in GUIDE.read_text()
    assert [row.split("`")[1] for row in table.splitlines()[2:]] == list(MODELS)
    assert "| `vit_small` | images 3x224x224 | 100 | 21,704,164 | `PLUS_MINUS_ONE` |" in table
    assert "| `mlp` | features 64 | 10 | 85,002 | - |" in table
