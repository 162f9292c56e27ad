"""What every augmentation is: a map from a batch of images and one random key per image to a batch of images.

Images are (N, C, H, W), uint8 in 0 .. 255 or floating point, and come back with the same type and device. What happens
to an image depends on that image and on its key alone, so the choice of keys decides what a run repeats:

    keys = example_keys(seed, "augment", epoch, ids=ids)    # by (seed, epoch, example): any batches, any workers
    keys = stream(seed, "augment", epoch, batch)            # a generator: by (seed, epoch, batch number)

Labels never enter: no augmentation here changes them.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from focalcal.lab.data.augment.counter_rng import derived_keys, drawn_keys

if TYPE_CHECKING:
    from jaxtyping import Int, Shaped


class Augmentation(ABC):
    """Call it with images (N, C, H, W) and `keys`: int64 (N,) from `example_keys`, or a `torch.Generator`."""

    @torch.no_grad()
    def __call__(self, images: Shaped[Tensor, "n c h w"], keys: Tensor | torch.Generator) -> Shaped[Tensor, "n c i j"]:
        """The augmented images, as a new tensor."""
        check_images(images)
        return self.augment(images, _image_keys(keys, images))

    @abstractmethod
    def augment(self, images: Tensor, keys: Int[Tensor, " n"]) -> Tensor:
        """What `__call__` does once its arguments are checked."""


class Compose(Augmentation):
    """Several augmentations in turn, each with keys of its own that are derived from the example's key."""

    def __init__(self, *steps: Augmentation) -> None:
        for step in steps:
            if not isinstance(step, Augmentation):
                raise TypeError(f"steps must be augmentations, got {type(step).__name__}; pass e.g. PadCropFlip()")
        self.steps = steps

    def augment(self, images: Tensor, keys: Int[Tensor, " n"]) -> Tensor:
        """The last step's images."""
        for number, step in enumerate(self.steps):
            images = step.augment(images, derived_keys(keys, number))
        return images


def check_images(images: Any) -> None:
    """Refuse what is not a batch of images."""
    if not isinstance(images, Tensor):
        raise TypeError(f"images must be a torch.Tensor, got {type(images).__name__}; use torch.as_tensor(...)")
    if images.dtype != torch.uint8 and not images.is_floating_point():
        raise TypeError(f"images must be uint8 or floating point, got {images.dtype}; convert them first")
    if images.dim() != 4 or 0 in images.shape[1:]:
        raise ValueError(
            f"images must have shape (N, C, H, W) without empty C, H, W, got {tuple(images.shape)}; "
            "add the batch dimension with images[None], move channels first with permute(0, 3, 1, 2)"
        )


def check_probability(name: str, value: float) -> float:
    """`value`, if it is a number from 0 to 1."""
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not 0 <= value <= 1:
        raise ValueError(f"{name} must be a probability from 0 to 1, got {value!r}")
    return float(value)


def check_interval(name: str, value: tuple[float, float], above: float, most: float) -> tuple[float, float]:
    """(low, high), if above < low <= high <= most and both are finite."""
    try:
        low, high = (float(end) for end in value)
    except (TypeError, ValueError):
        low = high = math.nan
    if not (above < low <= high <= most and math.isfinite(high)):
        limit = f" <= {most:g}" if math.isfinite(most) else ", both finite"
        raise ValueError(f"{name} must be (low, high) with {above:g} < low <= high{limit}, got {value!r}")
    return low, high


def _image_keys(keys: Tensor | torch.Generator, images: Tensor) -> Tensor:
    if isinstance(keys, torch.Generator):
        return drawn_keys(len(images), keys).to(images.device)
    if not isinstance(keys, Tensor) or keys.dtype != torch.int64:
        kind = keys.dtype if isinstance(keys, Tensor) else type(keys).__name__
        raise TypeError(f"keys must be a torch.Generator or int64 (N,), got {kind}; use example_keys or stream")
    if keys.shape != images.shape[:1]:
        raise ValueError(
            f"keys must have shape ({len(images)},), one per image, got {tuple(keys.shape)}; "
            "make them from the ids of this batch"
        )
    return keys.to(images.device)
