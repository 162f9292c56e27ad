"""Corrupt images by name and severity, and make the whole of a corrupted test set."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor

from focalcal.core.arrays import one_of
from focalcal.core.rng import numpy_stream
from focalcal.data.corruptions.batches import Levels, to_levels
from focalcal.data.corruptions.registry import CORRUPTIONS

SEVERITIES = (1, 2, 3, 4, 5)
_AT_ONCE = 500  # images in a chunk: float32 copies of all 10,000 would take a gigabyte


def corrupt(images: Any, name: str, severity: int, *, seed: int, ids: Sequence[int] | None = None) -> Any:
    """Images (N, H, W, 3), uint8, channels last as in the published files, with one of the `CORRUPTIONS`.

    Takes a NumPy array or a tensor and returns the same kind, new, uint8. What is random about image n comes from the
    stream (seed, "corrupt", name, severity, ids[n]), `ids` being 0 .. N - 1 unless given: a part of a set, with its
    ids, is corrupted as in the whole set. H and W are free, but the strengths are meant for 32.
    """
    levels = images.cpu().numpy() if isinstance(images, Tensor) else images
    _check(levels, name, severity)
    numbers = range(len(levels)) if ids is None else [int(number) for number in ids]
    if len(numbers) != len(levels):
        raise ValueError(f"ids must be one number an image, {len(levels)}, got {len(numbers)}")
    corruption = CORRUPTIONS[name]
    result = np.empty_like(levels, order="C")
    for start in range(0, len(levels), _AT_ONCE):
        part = slice(start, start + _AT_ONCE)
        generators = [numpy_stream(seed, "corrupt", name, severity, number) for number in numbers[part]]
        clean = levels[part].astype(np.float32) / np.float32(255)
        result[part] = to_levels(corruption.function(clean, generators, corruption.strengths[severity - 1]))
    return torch.from_numpy(result).to(images.device) if isinstance(images, Tensor) else result


def corrupted_set(images: Any, *, seed: int, names: Iterable[str] = tuple(CORRUPTIONS)) -> Iterator[tuple[str, Levels]]:
    """For each name: the name and (5 N, H, W, 3), severity 1 of all images first, then 2, as published.

    For the 10,000 test images of CIFAR-10 this has the layout of CIFAR-10-C's files; the labels are the clean ones,
    repeated five times. One corruption at a time is in memory.
    """
    for name in names:
        yield name, np.concatenate([np.asarray(corrupt(images, name, s, seed=seed)) for s in SEVERITIES])


def _check(levels: Any, name: str, severity: int) -> None:
    one_of("name", name, CORRUPTIONS)
    if isinstance(severity, bool) or not isinstance(severity, (int, np.integer)) or severity not in SEVERITIES:
        raise ValueError(f"severity must be a whole number from 1 to 5, got {severity!r}")
    if not isinstance(levels, np.ndarray):
        raise TypeError(f"images must be a NumPy array or a tensor, got {type(levels).__name__}")
    if levels.dtype != np.uint8:
        raise TypeError(f"images must be uint8, got {levels.dtype}; use (255 * images).round() in 0 .. 255 as uint8")
    if levels.ndim != 4 or levels.shape[3] != 3 or 0 in levels.shape[1:]:
        raise ValueError(
            f"images must have shape (N, H, W, 3), got {levels.shape}; move channels last with permute(0, 2, 3, 1)"
        )
