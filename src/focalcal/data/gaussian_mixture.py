"""Gaussian classes: features float32 (N, dimensions) whose posterior eta(x) is known exactly.

Class k has the density N(mean_k, I) and prior pi_k, so eta_k(x) is proportional to pi_k exp(-|x - mean_k|^2 / 2),
computed in float64 from the very float32 features that a model gets. The means are drawn from the seed on a sphere of
radius `separation`; the larger, the easier.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from focalcal.core.rng import numpy_stream
from focalcal.data.examples import SPLITS, DataSet, Examples, numbered_ids

SIZES = (10_000, 2_000, 10_000)  # train, val, test


def gaussian_means(classes: int, dimensions: int, separation: float, seed: int) -> NDArray[np.float64]:
    """(classes, dimensions): the classes' means."""
    directions = numpy_stream(seed, "gaussian_mixture", "means").standard_normal((classes, dimensions))
    return np.asarray(separation * directions / np.linalg.norm(directions, axis=1, keepdims=True))


def gaussian_posterior(
    features: NDArray[Any], means: NDArray[np.float64], priors: NDArray[np.float64]
) -> NDArray[np.float64]:
    """(N, K): the class probabilities given the features."""
    # |x|^2 is the same for every class and leaves the expression, with most of its rounding.
    logs = features.astype(np.float64) @ means.T - (means**2).sum(1) / 2 + np.log(priors)
    odds = np.exp(logs - logs.max(1, keepdims=True))
    return np.asarray(odds / odds.sum(1, keepdims=True))


def load_gaussian_mixture(
    folder: Path | None = None,
    *,
    allow_partial: bool = False,
    classes: int = 5,
    dimensions: int = 10,
    separation: float = 1.5,
    imbalance: float = 1.0,
    sizes: tuple[int, int, int] = SIZES,
    seed: int = 0,
) -> DataSet:
    """Fresh draws for every split. Priors fall geometrically; class 0 is `imbalance` times as frequent as the last."""
    if classes < 2 or dimensions < 1 or not separation > 0 or not imbalance >= 1:
        raise ValueError(
            "a mixture needs classes >= 2, dimensions >= 1, separation > 0 and imbalance >= 1, "
            f"got {classes}, {dimensions}, {separation!r}, {imbalance!r}"
        )
    means = gaussian_means(classes, dimensions, separation, seed)
    priors = float(imbalance) ** (-np.arange(classes) / (classes - 1))
    priors /= priors.sum()
    splits = {}
    for split, size in zip(SPLITS, sizes, strict=True):
        draws = numpy_stream(seed, "gaussian_mixture", split)  # of its own: its size leaves the other splits alone
        labels = draws.choice(classes, size=size, p=priors)
        features = (means[labels] + draws.standard_normal((size, dimensions))).astype(np.float32)
        posterior = gaussian_posterior(features, means, priors)
        splits[split] = Examples(features, labels.astype(np.int64), numbered_ids(split, size), posterior)
    options: dict[str, Any] = {"classes": classes, "dimensions": dimensions, "separation": float(separation)}
    options |= {"imbalance": float(imbalance), "seed": seed}
    provenance = {"files": [], "split": "independent draws", "partial": False, "options": options}
    names = tuple(f"component {k}" for k in range(classes))
    return DataSet(
        "gaussian_mixture",
        names,
        splits["train"],
        splits["val"],
        splits["test"],
        provenance=provenance,
    )
