"""RandAugment: a few random operations on each image, all of about the same strength."""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch
from torch import Tensor

from focalcal.core.checks import finite_at_least, whole
from focalcal.lab.data.augment import operations
from focalcal.lab.data.augment.augmentation import Augmentation, check_probability
from focalcal.lab.data.augment.counter_rng import derived_keys, normals, uniforms

if TYPE_CHECKING:
    from jaxtyping import Float, Int

OPERATIONS = (
    *("auto_contrast", "equalize", "invert", "rotate", "posterize", "solarize", "solarize_add"),
    *("color", "contrast", "brightness", "sharpness", "shear_x", "shear_y", "translate_x", "translate_y"),
)
LARGEST = 10.0  # magnitudes run from 0, no change or little, to here
_AFFINE = ("rotate", "shear_x", "shear_y", "translate_x", "translate_y")
_PLAIN = {"auto_contrast": operations.auto_contrast, "equalize": operations.equalize, "invert": operations.invert}
_BY_FACTOR = {
    "color": operations.color,
    "contrast": operations.contrast,
    "brightness": operations.brightness,
    "sharpness": operations.sharpness,
}


class RandAugment(Augmentation):
    """`layers` times: one of the 15 `OPERATIONS`, each as likely, applied with `probability`, at a random strength.

    The magnitude m is N(magnitude, spread^2) clipped to 0 .. 10; what it means (a sign is drawn where it says +-):
    rotate +-3 m degrees; shear_x, shear_y +-0.03 m; translate_x, translate_y +-0.045 m of the side; posterize to
    4 - floor(0.4 m) bits; solarize from 256 - floor(25.6 m); solarize_add floor(11 m); color, contrast, brightness,
    sharpness by max(0.1, 1 +- 0.09 m); auto_contrast, equalize and invert have none. The defaults are timm's
    "rand-m9-mstd0.5-inc1", with bilinear interpolation throughout (timm draws it). Images are RGB or grey, uint8 or
    floating point in 0 .. 1 (before normalisation); `fill`, on the scale of 0 .. 255, is one number or one per channel.
    Cubuk et al. (2020), "RandAugment: practical automated data augmentation with a reduced search space".
    """

    def __init__(
        self,
        magnitude: float = 9.0,
        *,
        spread: float = 0.5,
        layers: int = 2,
        probability: float = 0.5,
        fill: float | tuple[float, ...] = 128.0,
    ) -> None:
        self.magnitude = finite_at_least("magnitude", magnitude, 0.0)
        if self.magnitude > LARGEST:
            raise ValueError(f"magnitude must be from 0 to {LARGEST:g}, got {magnitude!r}")
        self.spread = finite_at_least("spread", spread, 0.0)
        self.layers = whole("layers", layers, 0)
        self.probability = check_probability("probability", probability)
        self.fill = _fill_levels(fill)

    def augment(self, images: Tensor, keys: Int[Tensor, " n"]) -> Tensor:
        """Each layer in turn, on levels of 0 .. 255; an image that no operation met comes back exactly as it was."""
        _check_colors(images)
        fill = torch.tensor(self.fill, dtype=torch.float32, device=images.device).view(1, -1, 1, 1)
        if len(self.fill) not in (1, images.shape[1]):
            raise ValueError(f"fill must be one number or one for each of {images.shape[1]} channels, got {self.fill}")
        scale = 1 if images.dtype == torch.uint8 else 255
        images = images.clone()
        for layer in range(self.layers):
            operation, magnitude, sign = self.draws(derived_keys(keys, layer))
            for members in (_AFFINE, *((name,) for name in OPERATIONS if name not in _AFFINE)):
                chosen = _among(operation, members)
                if len(chosen) == 0:
                    continue
                levels = (images.index_select(0, chosen).float() * scale).clamp_(0, 255)
                if members == _AFFINE:
                    changed = _move(levels, operation[chosen], sign[chosen] * magnitude[chosen], fill)
                else:
                    changed = _recolour(levels, members[0], magnitude[chosen], sign[chosen])
                back = changed.round() if images.dtype == torch.uint8 else (changed / scale).clamp_(0, 1)
                images[chosen] = back.to(images.dtype)
        return images

    def draws(self, keys: Int[Tensor, " n"]) -> tuple[Int[Tensor, " n"], Float[Tensor, " n"], Float[Tensor, " n"]]:
        """Each image's operation (its number in OPERATIONS, or -1 for none), magnitude and sign."""
        uniform = uniforms(keys, 3)
        operation = (uniform[:, 0] * len(OPERATIONS)).long()
        operation = torch.where(uniform[:, 1] < self.probability, operation, -1)
        noise = normals(derived_keys(keys, 0), 1)[:, 0]
        magnitude = (self.magnitude + self.spread * noise).clamp_(0, LARGEST)
        return operation, magnitude, torch.where(uniform[:, 2] < 0.5, -1.0, 1.0)


def _fill_levels(fill: float | tuple[float, ...]) -> tuple[float, ...]:
    """One level, or one for each of three channels."""
    try:
        levels = tuple(float(level) for level in (fill if isinstance(fill, (tuple, list)) else (fill,)))
    except (TypeError, ValueError):
        levels = ()
    if len(levels) not in (1, 3) or not all(0 <= level <= 255 for level in levels):
        raise ValueError(f"fill must be one number from 0 to 255 or three, one per channel, got {fill!r}")
    return levels


def _check_colors(images: Tensor) -> None:
    """Refuse channels that are not colours and values that look normalised; bicubic resizing may overshoot a little."""
    if images.shape[1] not in (1, 3):
        raise ValueError(f"images must have 1 or 3 channels, got shape {tuple(images.shape)}")
    if images.is_floating_point() and images.numel():
        low, high = (float(end) for end in images.aminmax())
        if not -0.5 <= low <= high <= 1.5:
            raise ValueError(
                f"floating-point images must lie in 0 .. 1, got values from {low:g} to {high:g}; "
                "augment before normalising, and divide levels of 0 .. 255 by 255"
            )


def _among(operation: Tensor, names: tuple[str, ...]) -> Tensor:
    """The positions of the images that drew one of these operations."""
    wanted = torch.tensor([OPERATIONS.index(name) for name in names], device=operation.device)
    return torch.isin(operation, wanted).nonzero().squeeze(1)


def _move(levels: Tensor, operation: Tensor, strength: Tensor, fill: Tensor) -> Tensor:
    """The affine operations; `strength` is the signed magnitude."""
    height, width = levels.shape[2:]
    zero = torch.zeros_like(strength)
    matrices = {
        "rotate": operations.rotation_matrix(3 * strength, height, width),
        "shear_x": operations.shear_matrix(0.03 * strength, zero),
        "shear_y": operations.shear_matrix(zero, 0.03 * strength),
        "translate_x": operations.shift_matrix(0.045 * width * strength, zero),
        "translate_y": operations.shift_matrix(zero, 0.045 * height * strength),
    }
    matrix = torch.zeros_like(matrices["rotate"])
    for name, candidate in matrices.items():
        matrix = torch.where((operation == OPERATIONS.index(name))[:, None, None], candidate, matrix)
    return operations.affine(levels, matrix, fill)


def _recolour(levels: Tensor, name: str, magnitude: Tensor, sign: Tensor) -> Tensor:
    """The operations on colours."""
    share = (magnitude / LARGEST)[:, None, None, None]
    if name in _PLAIN:
        return _PLAIN[name](levels)
    if name in _BY_FACTOR:
        return _BY_FACTOR[name](levels, (1 + 0.9 * sign[:, None, None, None] * share).clamp(min=0.1))
    if name == "posterize":
        return operations.posterize(levels, 4 - (4 * share).floor())
    if name == "solarize":
        return operations.solarize(levels, 256 - (256 * share).floor())
    return operations.solarize_add(levels, (110 * share).floor())
