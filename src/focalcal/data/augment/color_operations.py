"""Operations on colours for RandAugment, on batches of levels: float32 (N, C, H, W) in 0 .. 255.

Each takes the images and one number an image, shaped (N, 1, 1, 1), and agrees with Pillow's operation of the same
name to one level. C is 3 (red, green, blue) or 1.
"""

from __future__ import annotations

import torch
from torch import Tensor

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
