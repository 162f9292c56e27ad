"""Random erasing: a rectangle of noise in some of the images."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from focalcal.core.counter_rng import derived_keys, normals, uniforms
from focalcal.data.augment.augmentation import Augmentation, check_interval, check_probability

if TYPE_CHECKING:
    from jaxtyping import Bool, Int

_ATTEMPTS = 10


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
        sizes = draws[:, 3:].view(-1, _ATTEMPTS, 2)
        area = (self.area[0] + sizes[..., 0] * (self.area[1] - self.area[0])) * (height * width)
        low, high = map(math.log, self.aspect)
        aspect = (low + sizes[..., 1] * (high - low)).exp()
        tall, wide = (area * aspect).sqrt().round(), (area / aspect).sqrt().round()
        fits = (tall < height) & (wide < width) & (tall >= 1) & (wide >= 1)
        first = fits.to(torch.uint8).argmax(1, keepdim=True)
        tall, wide = tall.gather(1, first), wide.gather(1, first)
        top = (draws[:, 1:2] * (height - tall + 1)).floor()
        left = (draws[:, 2:3] * (width - wide + 1)).floor()
        rows, columns = torch.arange(height, device=keys.device), torch.arange(width, device=keys.device)
        in_rows = (rows >= top) & (rows < top + tall)
        in_columns = (columns >= left) & (columns < left + wide)
        erased = (draws[:, 0] < self.probability) & fits.any(1)
        return erased[:, None, None] & in_rows[:, :, None] & in_columns[:, None, :]


def _noise(images: Tensor, keys: Tensor) -> Tensor:
    keys, count = derived_keys(keys, 0), images[0].numel() if len(images) else 0
    drawn = (uniforms(keys, count) * 256).floor() if images.dtype == torch.uint8 else normals(keys, count)
    return drawn.to(images.dtype).view_as(images)
