"""From examples to what a network takes: batches, augmentation, normalisation, what a test image goes through.

Images stay uint8 until a batch is made of them: augmentation, (image / 255 - mean) / std, what comes after.
Tokens and features go in as they are.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import torch
from torch import Tensor

from focalcal.lab.data import Examples
from focalcal.lab.data.augment import Compose
from focalcal.lab.data.augment.counter_rng import example_keys, uniforms
from focalcal.lab.data.augment.rectangles import resized
from focalcal.lab.training.determinism import stream
from focalcal.lab.training.recipe import Recipe
from focalcal.lab.training.tensors import as_tensor

CROPS = 10
Keys = tuple[Tensor, Tensor, Tensor | None]  # of the augmentation before and after normalisation; what is mirrored


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


class TrainingInputs:
    """The inputs of one split, on the host, and how batches of them reach the network on `device`.

    Where a recipe has ten crops they are made for predictions that are `reported`; an epoch's evaluation, which would
    take ten times as long, sees the one at the centre.
    """

    def __init__(self, examples: Examples, recipe: Recipe, device: torch.device, *, reported: bool = False) -> None:
        self.recipe, self.device = recipe, device
        self.ids = examples.ids
        self.values = _values(examples.inputs)
        self.labels = as_tensor("labels", examples.labels)
        self.images = self.values.dtype == torch.uint8
        _check(self.values, recipe)
        self._before = Compose(*(step.build() for step in recipe.augmentation))
        self._after = Compose(*(step.build() for step in recipe.after_normalisation))
        self._scale, self._shift = _normalisation(recipe, device)
        self.crops = CROPS if reported and self.images and recipe.evaluation == "ten_crop" else 1  # rows an example

    def __len__(self) -> int:
        """The number of examples."""
        return len(self.values)

    def keys(self, seed: int, epoch: int) -> Keys | None:
        """This epoch's keys, one per example; None without augmentation."""
        alternating = self.recipe.alternating_flip
        if not self._before.steps and not self._after.steps and not alternating:
            return None
        rows = torch.arange(len(self))
        first = uniforms(example_keys(seed, "flip", ids=rows), 1)[:, 0] < 0.5 if alternating else None
        return (
            example_keys(seed, "augment", epoch, ids=rows),
            example_keys(seed, "augment_after_normalisation", epoch, ids=rows),
            first if first is None or epoch % 2 else ~first,
        )

    def training_batch(self, rows: Tensor, keys: Keys | None) -> Tensor:
        """The examples at `rows`, augmented by their keys and normalised."""
        values = self.values[rows].to(self.device)
        if not self.images:
            return values
        if keys is None:
            return self._normalised(values)
        before, after, mirrored = keys
        if self._before.steps:
            values = self._before(values, before[rows])
        if mirrored is not None:
            values = torch.where(mirrored[rows].to(self.device)[:, None, None, None], values.flip(3), values)
        values = self._normalised(values)
        return self._after(values, after[rows]) if self._after.steps else values

    def evaluation_batch(self, rows: slice) -> Tensor:
        """The examples at `rows` as they are tested; `crops` of each, one after the other."""
        values = self.values[rows].to(self.device)
        if not self.images:
            return values
        if self.recipe.evaluation == "resize":
            values = resized(values, (self._side, self._side), interpolation(self.recipe))
        elif self.recipe.evaluation == "ten_crop":
            values = (
                ten_crops(values, self._side).flatten(0, 1) if self.crops > 1 else five_crops(values, self._side)[-1]
            )
        return self._normalised(values)

    @property
    def _side(self) -> int:
        assert self.recipe.image_size is not None
        return self.recipe.image_size

    def _normalised(self, images: Tensor) -> Tensor:
        # A grey image times three numbers has three channels.
        return torch.addcmul(self._shift, images.float(), self._scale)


def interpolation(recipe: Recipe) -> str:
    """That of the recipe's random resized crop, so that test images look as training images do; or bicubic."""
    for step in recipe.augmentation:
        if step.name == "RandomResizedCrop":
            return str(dict(step.options).get("interpolation", "bicubic"))
    return "bicubic"


def five_crops(images: Tensor, side: int) -> list[Tensor]:
    """Four corners (N, C, side, side), then the centre; not copied."""
    height, width = images.shape[2:]
    if min(height, width) < side:
        raise ValueError(
            f"image_size must be at most the images' side for ten crops, got {side} for {height} x {width}; "
            "load larger images, or lower image_size"
        )
    bottom, right = height - side, width - side
    # A half rounds to even, as in torchvision.
    corners = [(0, 0), (0, right), (bottom, 0), (bottom, right), (round(bottom / 2), round(right / 2))]
    return [images[:, :, top : top + side, left : left + side] for top, left in corners]


def ten_crops(images: Tensor, side: int) -> Tensor:
    """(N, 10, C, side, side): four corners, the centre, and the five again mirrored left to right."""
    five = five_crops(images, side)
    return torch.stack([*five, *(crop.flip(3) for crop in five)], 1)


def _values(inputs: Any) -> Tensor:
    values = as_tensor("inputs", inputs)
    return values.float() if inputs.dtype.kind == "f" and inputs.dtype != np.float32 else values


def _check(values: Tensor, recipe: Recipe) -> None:
    if values.dtype != torch.uint8:
        of_images = ("augmentation", "alternating_flip", "after_normalisation", "mean")
        given = [name for name in of_images if getattr(recipe, name)]
        if given or recipe.evaluation != "whole":
            raise ValueError(
                f"{', '.join(given) or 'evaluation'} must be left out for inputs that are not images, got them for "
                f"{values.dtype} of shape {tuple(values.shape)}; use dataclasses.replace on the recipe"
            )
        return
    channels, statistics = values.shape[1], len(recipe.mean or (0.0,))
    if recipe.mean is not None and channels != statistics and channels != 1:
        raise ValueError(
            f"mean and std must have {channels} numbers for images of {channels} channels, got {statistics}"
        )


def _normalisation(recipe: Recipe, device: torch.device) -> tuple[Tensor, Tensor]:
    """1 / (255 std) and -mean / std, each (1, C, 1, 1)."""
    mean = np.array(recipe.mean or (0.0,))
    std = np.array(recipe.std or (1.0,))
    scale, shift = torch.from_numpy(1 / (255 * std)).float(), torch.from_numpy(-mean / std).float()
    return scale.view(1, -1, 1, 1).to(device), shift.view(1, -1, 1, 1).to(device)
