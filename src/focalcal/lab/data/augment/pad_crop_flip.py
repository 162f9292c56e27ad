"""The usual augmentation of small images: pad with zeros, crop back at a random place, mirror half of them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch
from torch import Tensor

from focalcal.core.checks import whole
from focalcal.lab.data.augment.augmentation import Augmentation, check_probability
from focalcal.lab.data.augment.counter_rng import uniforms

if TYPE_CHECKING:
    from jaxtyping import Bool, Int


class PadCropFlip(Augmentation):
    """Pad by `pad` zeros on each side, crop H x W at an offset uniform on 0 .. 2 pad each way, mirror with `flip`.

    Zero is black in levels and in 0 .. 1, the mean in normalised images; the usual recipes crop before normalising.
    With `reflect` an image is continued by its reflection instead, its edge not repeated.
    He et al. (2016), "Deep residual learning for image recognition", section 4.2.
    """

    def __init__(self, pad: int = 4, flip: float = 0.5, *, reflect: bool = False) -> None:
        self.pad = whole("pad", pad, 0)
        self.reflect = reflect
        self.flip = check_probability("flip", flip)

    def augment(self, images: Tensor, keys: Int[Tensor, " n"]) -> Tensor:
        """Offsets and mirroring from three numbers per image."""
        draws = uniforms(keys, 3)
        top, left = (draws[:, :2] * (2 * self.pad + 1)).long().unbind(1)
        return crop_and_flip(images, self.pad, top, left, draws[:, 2] < self.flip, reflect=self.reflect)


class RandomFlip(Augmentation):
    """Mirror each image left to right with probability `flip`."""

    def __init__(self, flip: float = 0.5) -> None:
        self.flip = check_probability("flip", flip)

    def augment(self, images: Tensor, keys: Int[Tensor, " n"]) -> Tensor:
        """Mirrored where the image's number is below `flip`."""
        mirrored = uniforms(keys, 1)[:, 0] < self.flip
        return torch.where(mirrored[:, None, None, None], images.flip(3), images)


def crop_and_flip(
    images: Tensor,
    pad: int,
    top: Int[Tensor, " n"],
    left: Int[Tensor, " n"],
    mirrored: Bool[Tensor, " n"],
    *,
    reflect: bool = False,
) -> Tensor:
    """Image n padded, cropped to H x W from (top_n, left_n) of the padded one, then mirrored where asked.

    One buffer holds the images padded, first those that stay and then the mirrored ones; an overlapping view shows
    every window of it, and each image's window is copied by the place of its first element. To crop and then mirror is
    to mirror and then crop from the other side.
    """
    count, channels, height, width = images.shape
    tall, wide = height + 2 * pad, width + 2 * pad
    straight, turned = (~mirrored).nonzero().squeeze(1), mirrored.nonzero().squeeze(1)
    buffer = images.new_zeros((count, channels, tall, wide))
    inner = buffer[:, :, pad : pad + height, pad : pad + width]
    inner[: len(straight)] = images.index_select(0, straight)
    inner[len(straight) :] = images.index_select(0, turned).flip(3)
    if reflect:
        rows, columns = (_reflected(side, pad, images.device) for side in (height, width))
        buffer = inner[:, :, rows][..., columns].contiguous()
    before = mirrored.cumsum(0)  # mirrored images up to and including this one
    slot = torch.where(mirrored, before + (len(straight) - 1), torch.arange(count, device=images.device) - before)
    start = (slot * (channels * tall) + top) * wide + torch.where(mirrored, 2 * pad - left, left)
    window = (channels - 1) * tall * wide + (height - 1) * wide + width  # from its first element to its last
    places = max(buffer.numel() - window + 1, 0)
    windows = buffer.view(-1).as_strided((places, channels, height, width), (1, tall * wide, wide, 1))
    return windows.index_select(0, start)


def _reflected(side: int, pad: int, device: torch.device) -> Int[Tensor, " m"]:
    """Which row of `side` continues them at -pad, ..., side + pad - 1."""
    if pad >= side:
        raise ValueError(f"pad must be less than the sides of the images to reflect them, got {pad} for {side}")
    return (side - 1) - ((side - 1) - torch.arange(-pad, side + pad, device=device).abs()).abs()
