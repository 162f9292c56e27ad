"""How examples are divided. Every division is a function of the examples and a seed; orders are kept."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from focalcal.core.checks import between_zero_and_one
from focalcal.lab.data.examples import Examples


def shuffled(count: int, seed: int) -> NDArray[np.int64]:
    """0 .. count - 1 in the order of NumPy's legacy generator, which published splits were made with."""
    order = np.arange(count)
    np.random.RandomState(seed).shuffle(order)
    return order


def hold_out(examples: Examples, count: int, *, seed: int = 1) -> tuple[Examples, Examples]:
    """(the rest, `count` held out): the first `count` of a shuffle.

    With 50,000 examples, 5,000 and seed 1 this is the 45,000 / 5,000 split of the calibration literature (Mukhoti et
    al. 2020).
    """
    return _divide(examples, shuffled(len(examples), seed)[: _check_count("count", count, examples)])


def validation_split(examples: Examples, validation: int, *, whole: bool) -> tuple[Examples, Examples]:
    """(train, val): `hold_out` of a whole training set; of a part at most a tenth of what there is."""
    count = validation if whole or validation < 0 else min(validation, len(examples) // 10)
    return hold_out(examples, _check_count("validation", count, examples))


def stratified(examples: Examples, share: float = 0.15, *, seed: int = 42) -> tuple[Examples, Examples]:
    """(the rest, ceil(share N) held out), every class divided alike; scikit-learn's `train_test_split`."""
    from sklearn.model_selection import train_test_split

    between_zero_and_one("share", share, remedy="0.15 holds out 15 %")
    everything = np.arange(len(examples))
    _, held_out = train_test_split(everything, test_size=share, random_state=seed, stratify=examples.labels)
    return _divide(examples, held_out)


def by_group(examples: Examples, share: float = 0.125, *, seed: int = 1) -> tuple[Examples, Examples]:
    """(the rest, held out): a share of the groups, so that no patient is on both sides."""
    between_zero_and_one("share", share, remedy="0.15 holds out 15 %")
    if examples.groups is None:
        raise ValueError("examples must have groups to be divided by them, got none; use hold_out or stratified")
    groups = np.unique(examples.groups)
    chosen = groups[shuffled(len(groups), seed)[: round(share * len(groups))]]
    return _divide(examples, np.flatnonzero(np.isin(examples.groups, chosen)))


def long_tailed(examples: Examples, factor: float, *, seed: int) -> Examples:
    """Exponential imbalance: class k keeps n factor^(-k / (K - 1)) of its examples (Cui et al. 2019).

    n is the size of the smallest class, so that class 0 has n examples and class K - 1 has n / factor, but at least 1.
    """
    if examples.labels.ndim != 1 or not len(examples):
        raise ValueError("examples must have one label each, and be at least one, for a long tail")
    if not 1 <= factor < float("inf"):
        raise ValueError(f"factor, largest class over smallest, must be >= 1 and finite, got {factor!r}")
    sizes = np.bincount(examples.labels)
    if len(sizes) < 2 or sizes.min() == 0:
        raise ValueError(f"every class must occur, and two at least, got sizes {sizes.tolist()}")
    kept = sizes.min() * float(factor) ** (-np.arange(len(sizes)) / (len(sizes) - 1))
    order = shuffled(len(examples), seed)
    chosen = [
        order[examples.labels[order] == k][: max(1, int(number + 1e-9))]  # 1e-9: 5000 / 100 is 50, not 49
        for k, number in enumerate(kept)
    ]
    return examples.take(np.sort(np.concatenate(chosen)))


def _divide(examples: Examples, held_out: NDArray[Any]) -> tuple[Examples, Examples]:
    mask = np.zeros(len(examples), dtype=bool)
    mask[held_out] = True
    return examples.take(~mask), examples.take(mask)


def _check_count(name: str, count: int, examples: Examples) -> int:
    most = max(0, len(examples) - 1)
    if not 0 <= count <= most:
        raise ValueError(f"{name} must be from 0 to {most}, as there are {len(examples)} examples, got {count}")
    return count
