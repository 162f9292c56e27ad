"""The data set as a run sees it: with a long tail, or with fewer examples, as its protocol says.

Which examples are left depends on the data set and the protocol alone: every seed and every objective sees the same.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from focalcal.lab.data import DATA_SETS, DataSet, DataSetError, Examples, load_data
from focalcal.lab.data.splits import long_tailed, shuffled
from focalcal.lab.store import Protocol
from focalcal.lab.studies.own_data import check_fingerprint
from focalcal.lab.training import Recipe

SEED = 1  # of every subset: runs that are compared must see the same examples


def load_run_data(recipe: Recipe, protocol: Protocol, data_dir: Path | None, fingerprint: str | None = None) -> DataSet:
    """The recipe's data set, as the protocol has it; refused if the whole has another `fingerprint`."""
    options = dict(recipe.data_options)
    loaded = load_data(recipe.data_set, data_dir, allow_partial=protocol.allow_partial, **options)
    check_fingerprint(loaded, fingerprint)
    return apply_protocol(loaded, protocol)


def with_statistics(recipe: Recipe, data: DataSet) -> Recipe:
    """The recipe with the mean and deviation of each channel of own training images, where it has none."""
    images = data.train.inputs
    if recipe.data_set in DATA_SETS or recipe.mean is not None or images.dtype != np.uint8:
        return recipe
    channels = images.astype(np.float64).transpose(1, 0, 2, 3).reshape(images.shape[1], -1) / 255
    std = np.maximum(channels.std(1), 1 / 255)  # of a channel that never changes
    return replace(recipe, mean=tuple(channels.mean(1).tolist()), std=tuple(std.tolist()))


def apply_protocol(data: DataSet, protocol: Protocol) -> DataSet:
    """`data` with its training split made long-tailed, then cut; and its validation and test splits cut.

    The provenance gains `protocol`: what was asked for, how it was done, and how many examples of each class are left
    to train on.
    """
    train, done = data.train, {}
    for split in ("train", "test"):
        if not len(data.splits[split]):
            raise DataSetError(f"{data.name}: {split} must hold examples, got none; a run needs its files too")
    if protocol.imbalance is not None:
        train = long_tailed(train, protocol.imbalance, seed=SEED)
        done["train, imbalance"] = f"class k keeps n {protocol.imbalance:g}^(-k / (K - 1)) examples, NumPy seed {SEED}"
    if protocol.train_examples is not None:
        if len(train) < protocol.train_examples and not protocol.allow_partial:
            raise ValueError(
                f"train_examples must be at most {len(train)}, what {data.name} has to train on, "
                f"got {protocol.train_examples}; lower it, or leave it out to train on all"
            )
        train = subset(train, protocol.train_examples)
        done["train, subset"] = _describe(protocol.train_examples, train)
    val, test = data.val, data.test
    if protocol.test_examples is not None:
        val, test = subset(val, protocol.test_examples), subset(test, protocol.test_examples)
        done["val and test, subset"] = _describe(protocol.test_examples, test)
    if not done:
        return data
    if train.labels.ndim == 1:
        done["train, class sizes"] = np.bincount(train.labels, minlength=len(data.classes)).tolist()
    return replace(data, train=train, val=val, test=test, provenance={**data.provenance, "protocol": done})


def subset(examples: Examples, count: int) -> Examples:
    """`count` of the examples in their order, or all if there are no more; the same ones at every call.

    Where an example has one label every class keeps its share, to within one example (quotas by largest remainder);
    within a class, and where examples have several labels, the first of a shuffle are taken.
    """
    if count >= len(examples):
        return examples
    order = shuffled(len(examples), SEED)
    if examples.labels.ndim == 1:
        labels = examples.labels[order]
        quotas = shares(np.bincount(labels), count)
        order = np.concatenate([order[labels == k][:quota] for k, quota in enumerate(quotas)])
    return examples.take(np.sort(order[:count]))


def shares(sizes: NDArray[Any], count: int) -> list[int]:
    """`count` divided in the proportion of `sizes`: rounded down, and the rest to the largest remainders."""
    whole, remainder = np.divmod(sizes * count, sizes.sum())
    first = np.argsort(-remainder, kind="stable")[: count - int(whole.sum())]
    whole[first] += 1
    return [int(quota) for quota in whole]


def _describe(count: int, examples: Examples) -> str:
    how = "every class in proportion" if examples.labels.ndim == 1 else "whatever their labels"
    return f"at most {count} examples, {how}, NumPy seed {SEED}"
