"""The operations of RandAugment, on batches of levels: float32 (N, C, H, W) in 0 .. 255.

Those on colours take the images and one number per image, shaped (N, 1, 1, 1), and agree with Pillow's operation of the
same name to one level. C is 3 (red, green, blue) or 1. Rotations, shears and shifts are one `affine` map.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch
import torch.nn.functional as F
from torch import Tensor

if TYPE_CHECKING:
    from jaxtyping import Float

_LUMA = (0.299, 0.587, 0.114)


def auto_contrast(levels: Tensor) -> Tensor:
    """Each channel stretched from its range to 0 .. 255; a constant channel stays."""
    low, high = levels.amin((2, 3), keepdim=True), levels.amax((2, 3), keepdim=True)
    return torch.where(high > low, (levels - low) * (255 / (high - low).clamp(min=1e-6)), levels)


def equalize(levels: Tensor) -> Tensor:
    """Each channel's histogram made flat: level v becomes (step // 2 + number of pixels below v) // step.

    step = (pixels - pixels of the largest level) // 255; a channel with step 0 stays.
    """
    count, channels, height, width = levels.shape
    whole = levels.round().long().view(count * channels, -1)
    histogram = whole.new_zeros((count * channels, 256)).scatter_add_(1, whole, torch.ones_like(whole))
    largest = histogram.gather(1, whole.amax(1, keepdim=True))
    step = (height * width - largest) // 255
    table = (step // 2 + histogram.cumsum(1) - histogram) // step.clamp(min=1)
    flat = table.clamp_(max=255).gather(1, whole).to(levels.dtype)
    return torch.where(step > 0, flat, levels.view(count * channels, -1)).view_as(levels)


def invert(levels: Tensor) -> Tensor:
    """255 - level."""
    return 255 - levels


def posterize(levels: Tensor, bits: Tensor) -> Tensor:
    """Only the highest `bits` of the 8 bits of each level."""
    block = 2.0 ** (8 - bits)
    return (levels.round() / block).floor() * block


def solarize(levels: Tensor, threshold: Tensor) -> Tensor:
    """Levels from `threshold` on inverted."""
    return torch.where(levels < threshold, levels, 255 - levels)


def solarize_add(levels: Tensor, amount: Tensor) -> Tensor:
    """`amount` added to the levels below 128."""
    return torch.where(levels < 128, (levels + amount).clamp(max=255), levels)


def color(levels: Tensor, factor: Tensor) -> Tensor:
    """Away from (factor > 1) or towards (< 1) the image's own greys."""
    return _blend(_grey(levels), levels, factor)


def contrast(levels: Tensor, factor: Tensor) -> Tensor:
    """Away from or towards the image's mean grey."""
    # Sums of whole numbers are exact, so the mean does not depend on the order of summation.
    mean = _grey(levels).round().double().mean((1, 2, 3), keepdim=True)
    return _blend((mean + 0.5).floor().to(levels.dtype), levels, factor)


def brightness(levels: Tensor, factor: Tensor) -> Tensor:
    """Away from or towards black."""
    return (levels * factor).clamp_(0, 255)


def sharpness(levels: Tensor, factor: Tensor) -> Tensor:
    """Away from or towards the image smoothed by [[1, 1, 1], [1, 5, 1], [1, 1, 1]] / 13; the border stays."""
    height, width = levels.shape[2:]
    smooth = levels.clone()
    if height > 2 and width > 2:
        inner = 4 * levels[:, :, 1:-1, 1:-1]
        for down in range(3):
            for right in range(3):
                inner = inner + levels[:, :, down : height - 2 + down, right : width - 2 + right]
        smooth[:, :, 1:-1, 1:-1] = inner / 13
    return _blend(smooth, levels, factor)


def _grey(levels: Tensor) -> Tensor:
    if levels.shape[1] == 1:
        return levels
    red, green, blue = levels.unbind(1)
    return (_LUMA[0] * red + _LUMA[1] * green + _LUMA[2] * blue)[:, None]


def _blend(degenerate: Tensor, levels: Tensor, factor: Tensor) -> Tensor:
    return (degenerate + factor * (levels - degenerate)).clamp_(0, 255)


def affine(levels: Tensor, matrix: Float[Tensor, "n 2 3"], fill: Float[Tensor, "1 c 1 1"]) -> Tensor:
    """Each result pixel at (x, y) is read at matrix @ (x, y, 1), bilinearly; outside the image it is `fill`.

    Coordinates are Pillow's: pixel (i, j) has its centre at x = j + 1/2, y = i + 1/2, and the image is
    [0, W) x [0, H). Pillow's `Image.transform` with BILINEAR agrees to one level.
    """
    height, width = levels.shape[2:]
    x = torch.arange(width, device=levels.device, dtype=torch.float32) + 0.5
    y = torch.arange(height, device=levels.device, dtype=torch.float32)[:, None] + 0.5
    across, along = matrix[:, :, :, None, None].unbind(1)
    from_x = across[:, 0] * x + across[:, 1] * y + across[:, 2]
    from_y = along[:, 0] * x + along[:, 1] * y + along[:, 2]
    inside = (from_x >= 0) & (from_x < width) & (from_y >= 0) & (from_y < height)
    grid = torch.stack([2 * from_x / width - 1, 2 * from_y / height - 1], -1)
    read = F.grid_sample(levels, grid, mode="bilinear", padding_mode="border", align_corners=False)
    return torch.where(inside[:, None], read, fill)


def shift_matrix(right: Tensor, down: Tensor) -> Tensor:
    """Reads from `right` and `down` pixels further, (n,) each."""
    ones, zeros = torch.ones_like(right), torch.zeros_like(right)
    return _matrices([[ones, zeros, right], [zeros, ones, down]])


def shear_matrix(along_x: Tensor, along_y: Tensor) -> Tensor:
    """Reads x + along_x y and y + along_y x, (n,) each, from the upper left corner."""
    ones, zeros = torch.ones_like(along_x), torch.zeros_like(along_x)
    return _matrices([[ones, along_x, zeros], [along_y, ones, zeros]])


def rotation_matrix(degrees: Tensor, height: int, width: int) -> Tensor:
    """Turns the image counter-clockwise about its centre by `degrees` (n,)."""
    angle = torch.deg2rad(degrees)
    cosine, sine = angle.cos(), angle.sin()
    x, y = width / 2, height / 2
    return _matrices([[cosine, -sine, x - cosine * x + sine * y], [sine, cosine, y - sine * x - cosine * y]])


def _matrices(entries: list[list[Tensor]]) -> Tensor:
    return torch.stack([torch.stack(row, -1) for row in entries], -2)
