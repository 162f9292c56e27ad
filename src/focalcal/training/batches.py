"""Which examples make up each batch of an epoch, and each process's share of them."""

from __future__ import annotations

from collections.abc import Iterator

import torch
from torch import Tensor

from focalcal.core.rng import stream
from focalcal.training.recipe import Recipe


def steps_per_epoch(recipe: Recipe, examples: int) -> int:
    """How many batches an epoch has; none at all is refused."""
    if not examples:
        raise ValueError("data must have training examples, got none; load the data set with its training split")
    whole, rest = divmod(examples, recipe.batch_size)
    steps = whole + (1 if rest and not recipe.drop_last else 0)
    if not steps:
        raise ValueError(
            f"an epoch must hold at least one batch, got {examples} training examples for batch_size = "
            f"{recipe.batch_size} and drop_last = {recipe.drop_last}; lower batch_size, or set drop_last to False"
        )
    return steps


def epoch_batches(recipe: Recipe, examples: int, *, seed: int, epoch: int) -> Iterator[Tensor]:
    """int64 positions, batch after batch: a permutation that (seed, epoch) alone decide."""
    order = torch.randperm(examples, generator=stream(seed, "order", epoch))
    for start in range(0, steps_per_epoch(recipe, examples) * recipe.batch_size, recipe.batch_size):
        yield order[start : start + recipe.batch_size]


def shard(count: int, rank: int, processes: int) -> slice:
    """The rows of a batch of `count` that process `rank` takes: consecutive, sizes differing by one at most."""
    return slice(rank * count // processes, (rank + 1) * count // processes)
