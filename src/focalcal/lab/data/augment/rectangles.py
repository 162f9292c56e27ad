"""A random rectangle of each image: random resized crop keeps it, random erasing fills it with noise."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import torch
import torch.nn.functional as F
from torch import Tensor

from focalcal.core.checks import one_of, whole
from focalcal.lab.data.augment.augmentation import Augmentation, check_interval, check_probability
from focalcal.lab.data.augment.counter_rng import derived_keys, normals, uniforms

if TYPE_CHECKING:
    from jaxtyping import Bool, Float, Int

_ATTEMPTS = 10  # rectangles that are proposed, of which the first that fits counts
INTERPOLATIONS = ("bilinear", "bicubic")


class RandomResizedCrop(Augmentation):
    """Crop a share of the area uniform on `scale`, with width / height log-uniform on `ratio`; resize to `size`.

    Of ten proposals the first that fits counts; if none does, the largest central crop within `ratio` is taken. The
    resizing is antialiased and agrees with Pillow's; its bicubic weights overshoot, so that floating-point results may
    leave the range of the image a little. `size` is the side of the square result, or (height, width).
    Szegedy et al. (2015), "Going deeper with convolutions", with torchvision's proposals.
    """

    def __init__(
        self,
        size: int | tuple[int, int],
        *,
        scale: tuple[float, float] = (0.8, 1.0),
        ratio: tuple[float, float] = (3 / 4, 4 / 3),
        interpolation: str = "bicubic",
    ) -> None:
        sides = tuple(whole("size", side, 1) for side in (size if isinstance(size, (tuple, list)) else (size, size)))
        if len(sides) != 2:
            raise ValueError(f"size must be a whole number or two of them, (height, width), got {size!r}")
        one_of("interpolation", interpolation, INTERPOLATIONS)
        self.size = (sides[0], sides[1])
        self.scale = check_interval("scale", scale, 0, 1)
        self.ratio = check_interval("ratio", ratio, 0, math.inf)
        self.interpolation = interpolation

    def augment(self, images: Tensor, keys: Int[Tensor, " n"]) -> Tensor:
        """One image after the other, since their crops differ in size."""
        made = images.new_empty((*images.shape[:2], *self.size))
        for number, box in enumerate(self.boxes(keys, images.shape[2], images.shape[3]).int().tolist()):
            top, left, tall, wide = box
            crop = images[number : number + 1, :, top : top + tall, left : left + wide]
            made[number : number + 1] = resized(crop, self.size, self.interpolation)
        return made

    def boxes(self, keys: Int[Tensor, " n"], height: int, width: int) -> Float[Tensor, "n 4"]:
        """(top, left, height, width) of each image's crop, whole numbers in float32."""
        draws = uniforms(keys, 2 + 2 * _ATTEMPTS)
        wide, tall, fits = _first_fitting(draws[:, 2:], self.scale, self.ratio, height * width, (width, height))
        tall, wide = tall[:, 0], wide[:, 0]
        top = (draws[:, 0] * (height - tall + 1)).floor()
        left = (draws[:, 1] * (width - wide + 1)).floor()
        box = torch.stack([top, left, tall, wide], 1)
        return torch.where(fits, box, box.new_tensor(self.central_box(height, width)))

    def central_box(self, height: int, width: int) -> tuple[int, int, int, int]:
        """The largest crop around the centre whose width / height lies in `ratio`."""
        tall, wide = height, width
        if width < self.ratio[0] * height:
            tall = min(height, max(1, round(width / self.ratio[0])))
        elif width > self.ratio[1] * height:
            wide = min(width, max(1, round(height * self.ratio[1])))
        return (height - tall) // 2, (width - wide) // 2, tall, wide


class RandomErasing(Augmentation):
    """With `probability`, replace a rectangle by noise: N(0, 1) in floating-point images, uniform levels in uint8 ones.

    The rectangle covers a share of the image uniform on `area`, with height / width log-uniform on `aspect`, anywhere
    inside; of ten proposals the first that fits counts, and if none does the image stays. Apply it to normalised
    images, where N(0, 1) is the noise that looks like them. Zhong et al. (2020), "Random erasing data augmentation",
    with the pixel noise of DeiT and Swin.
    """

    def __init__(
        self,
        probability: float = 0.25,
        *,
        area: tuple[float, float] = (0.02, 1 / 3),
        aspect: tuple[float, float] = (0.3, 1 / 0.3),
    ) -> None:
        self.probability = check_probability("probability", probability)
        self.area = check_interval("area", area, 0, 1)
        self.aspect = check_interval("aspect", aspect, 0, math.inf)

    def augment(self, images: Tensor, keys: Int[Tensor, " n"]) -> Tensor:
        """A copy with the rectangles erased."""
        box = self.boxes(keys, images.shape[2], images.shape[3])
        chosen = box.flatten(1).any(1).nonzero().squeeze(1)
        kept = images.index_select(0, chosen)
        return images.index_copy(0, chosen, torch.where(box[chosen, None], _noise(kept, keys[chosen]), kept))

    def boxes(self, keys: Int[Tensor, " n"], height: int, width: int) -> Bool[Tensor, "n h w"]:
        """True where an image is erased."""
        draws = uniforms(keys, 3 + 2 * _ATTEMPTS)
        tall, wide, fits = _first_fitting(draws[:, 3:], self.area, self.aspect, height * width, (height - 1, width - 1))
        top = (draws[:, 1:2] * (height - tall + 1)).floor()
        left = (draws[:, 2:3] * (width - wide + 1)).floor()
        rows, columns = torch.arange(height, device=keys.device), torch.arange(width, device=keys.device)
        in_rows = (rows >= top) & (rows < top + tall)
        in_columns = (columns >= left) & (columns < left + wide)
        erased = (draws[:, 0] < self.probability) & fits[:, 0]
        return erased[:, None, None] & in_rows[:, :, None] & in_columns[:, None, :]


def _first_fitting(
    draws: Tensor, shares: tuple[float, float], ratio: tuple[float, float], area: int, most: tuple[int, int]
) -> tuple[Tensor, Tensor, Tensor]:
    """The two sides, (n, 1) each, of the first proposal whose sides are from 1 to `most`, and whether there is one.

    `draws` (n, 2 _ATTEMPTS) make each cover a share of `area` uniform on `shares`, first / second side log-uniform on
    `ratio`.
    """
    sizes = draws.view(-1, _ATTEMPTS, 2)
    covered = (shares[0] + sizes[..., 0] * (shares[1] - shares[0])) * area
    low, high = map(math.log, ratio)
    quotient = (low + sizes[..., 1] * (high - low)).exp()
    first, second = (covered * quotient).sqrt().round(), (covered / quotient).sqrt().round()
    fits = (first >= 1) & (first <= most[0]) & (second >= 1) & (second <= most[1])
    chosen = fits.to(torch.uint8).argmax(1, keepdim=True)
    return first.gather(1, chosen), second.gather(1, chosen), fits.any(1, keepdim=True)


def resized(images: Tensor, size: tuple[int, int], interpolation: str) -> Tensor:
    """Images (N, C, H, W) of this height and width, "bilinear" or "bicubic", antialiased as Pillow does it."""
    exact = images.to(images.dtype if images.dtype == torch.float64 else torch.float32)
    made = F.interpolate(exact, size, mode=interpolation, align_corners=False, antialias=True)
    return (made.round_().clamp_(0, 255) if images.dtype == torch.uint8 else made).to(images.dtype)


def _noise(images: Tensor, keys: Tensor) -> Tensor:
    keys, count = derived_keys(keys, 0), images[0].numel() if len(images) else 0
    drawn = (uniforms(keys, count) * 256).floor() if images.dtype == torch.uint8 else normals(keys, count)
    return drawn.to(images.dtype).view_as(images)
