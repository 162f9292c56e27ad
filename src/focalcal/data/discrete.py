"""The theory's population: 40 equally probable states, 5 classes, the posterior of each state known exactly.

An input is the state as a one-hot row, float32 (N, 40), so that a linear model can represent every prediction.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np

from focalcal.core.population import population
from focalcal.core.rng import numpy_stream
from focalcal.data.drawn_labels import drawn_labels
from focalcal.data.examples import SPLITS, DataSet, Examples, numbered_ids

SIZES = (20_000, 4_000, 20_000)  # train, val, test


def load_discrete(
    folder: Path | None = None,
    *,
    allow_partial: bool = False,
    sizes: tuple[int, int, int] = SIZES,
    seed: int = 0,
) -> DataSet:
    """Fresh draws for every split."""
    states = population()
    splits = {}
    for split, size in zip(SPLITS, sizes, strict=True):
        draws = numpy_stream(seed, "discrete", split)
        state = draws.integers(len(states), size=size)
        posterior = states[state] / states[state].sum(1, keepdims=True)
        inputs = np.eye(len(states), dtype=np.float32)[state]
        splits[split] = Examples(inputs, drawn_labels(posterior, draws), numbered_ids(split, size), posterior)
    provenance = {"files": [], "split": "independent draws", "partial": False, "options": {"seed": seed}}
    names = tuple(f"class {k}" for k in range(states.shape[1]))
    return DataSet(
        "discrete",
        names,
        splits["train"],
        splits["val"],
        splits["test"],
        provenance=provenance,
    )
