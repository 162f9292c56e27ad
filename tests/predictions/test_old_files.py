"""Files that earlier versions wrote are read with the values that were written."""

from pathlib import Path

import numpy as np
import pytest
import torch

from focalcal.predictions import Predictions

FOLDER = Path(__file__).parent / "files_of_0_1"
WRITTEN = {
    "classes": Predictions(
        logits=torch.tensor([[0.1, -2.5e-7, 3.4028235e38], [1e-45, -0.0, 7.0], [2.0, -1.25, 1 / 3]]),
        labels=[2, 0, 1],
        split="shift/näme",
        ids=['a "b", c', "# näme\r\nline", ""],
        groups=[7, -9223372036854775808, 0],
        posterior=torch.tensor([[0.1, 0.2, 0.7], [1.0, 0.0, 0.0], [1 / 3, 1 / 3, 1 / 3]], dtype=torch.float64),
        provenance={"model": "resnet20", "nested": {"lam": [0.5, None, True]}, "say": '"#\n"'},
    ),
    "multilabel": Predictions(
        probs=torch.tensor([[0.1, 1.0], [0.25, 1e-3], [0.0, 0.9]], dtype=torch.bfloat16),
        labels=torch.tensor([[1, 1], [0, 1], [0, 0]]),
        multilabel=True,
        split="test",
        groups=["x", "y", "x"],
    ),
}


@pytest.mark.parametrize("suffix", [".npz", ".parquet", ".csv"])
@pytest.mark.parametrize("name", WRITTEN)
def test_files_of_0_1(name, suffix):
    path = FOLDER / f"{name}{suffix}"
    loaded = Predictions.load(path)
    assert loaded.equals(WRITTEN[name])
    np.testing.assert_array_equal(np.signbit(loaded.scores), np.signbit(WRITTEN[name].scores))
    assert Predictions.concatenate(Predictions.stream(path, rows=2)).equals(WRITTEN[name])
