"""Rotations, shears and shifts for RandAugment, on batches of levels: float32 (N, C, H, W)."""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch
import torch.nn.functional as F
from torch import Tensor

if TYPE_CHECKING:
    from jaxtyping import Float


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
    one, zero = torch.ones_like(right), torch.zeros_like(right)
    return _matrices([[one, zero, right], [zero, one, down]])


def shear_matrix(along_x: Tensor, along_y: Tensor) -> Tensor:
    """Reads x + along_x y and y + along_y x, (n,) each, from the upper left corner."""
    one, zero = torch.ones_like(along_x), torch.zeros_like(along_x)
    return _matrices([[one, along_x, zero], [along_y, one, zero]])


def rotation_matrix(degrees: Tensor, height: int, width: int) -> Tensor:
    """Turns the image counter-clockwise about its centre by `degrees` (n,)."""
    angle = torch.deg2rad(degrees)
    cosine, sine = angle.cos(), angle.sin()
    x, y = width / 2, height / 2
    return _matrices([[cosine, -sine, x - cosine * x + sine * y], [sine, cosine, y - sine * x - cosine * y]])


def _matrices(entries: list[list[Tensor]]) -> Tensor:
    return torch.stack([torch.stack(row, -1) for row in entries], -2)
