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


def corrupt(images: Any, name: str, severity: int, *, seed: int, ids: Iterable[int | str] | None = None) -> Any:
    """Images (N, 3, H, W), or (N, H, W, 3) as in the published files, uint8, with one of the `CORRUPTIONS`.

    Takes a NumPy array or a tensor and returns the same kind and layout, new, uint8. What is random about image n
    comes from the stream (seed, "corrupt", name, severity, ids[n]), `ids` being 0 .. N - 1 unless given: a part of a
    set, with its ids, is corrupted as in the whole set. H and W are free, but the strengths are meant for 32.
    """
    _check(name, severity)
    levels = _channels_last(images.cpu().numpy() if isinstance(images, Tensor) else images)
    numbers = range(len(levels)) if ids is None else _checked_ids(ids, len(levels))
    corruption = CORRUPTIONS[name]
    result = np.empty(levels.shape, dtype=np.uint8)
    for start in range(0, len(levels), _AT_ONCE):
        part = slice(start, start + _AT_ONCE)
        generators = [numpy_stream(seed, "corrupt", name, severity, number) for number in numbers[part]]
        clean = levels[part].astype(np.float32, order="C") / np.float32(255)
        result[part] = to_levels(corruption.function(clean, generators, corruption.strengths[severity - 1]))
    if levels.shape != images.shape:
        result = np.ascontiguousarray(result.transpose(0, 3, 1, 2))
    return torch.from_numpy(result).to(images.device) if isinstance(images, Tensor) else result


def corrupted_set(
    images: Any, *, seed: int, names: Iterable[str] = tuple(CORRUPTIONS), ids: Sequence[int | str] | None = None
) -> Iterator[tuple[str, Levels]]:
    """For each name: the name and (5 N, H, W, 3), severity 1 of all images first, then 2, as published.

    For the 10,000 test images of CIFAR-10 this has the layout of CIFAR-10-C's files; the labels are the clean ones,
    repeated five times. `images` and `ids` are as in `corrupt`. One corruption at a time is in memory.
    """
    levels = _channels_last(images.cpu().numpy() if isinstance(images, Tensor) else images)
    for name in names:
        yield name, np.concatenate([corrupt(levels, name, s, seed=seed, ids=ids) for s in SEVERITIES])


def _check(name: str, severity: int) -> None:
    one_of("name", name, CORRUPTIONS)
    if isinstance(severity, bool) or not isinstance(severity, (int, np.integer)) or severity not in SEVERITIES:
        raise ValueError(f"severity must be a whole number from 1 to 5, got {severity!r}")


def _channels_last(levels: Any) -> Levels:
    """The images as (N, H, W, 3), a view; refuse what is not colour images, or could be of either layout."""
    if not isinstance(levels, np.ndarray):
        raise TypeError(f"images must be a NumPy array or a tensor, got {type(levels).__name__}")
    if levels.dtype != np.uint8:
        raise TypeError(f"images must be uint8, got {levels.dtype}; use (255 * images).round() in 0 .. 255 as uint8")
    first, last = (levels.ndim == 4 and levels.shape[axis] == 3 for axis in (1, 3))
    if first == last or 0 in levels.shape[1:]:
        raise ValueError(
            f"images must have shape (N, 3, H, W) or (N, H, W, 3), got {levels.shape}; "
            "repeat a grey channel three times, and give images of 3 x 3 pixels a border"
        )
    return levels.transpose(0, 2, 3, 1) if first else levels


def _checked_ids(ids: Iterable[int | str], count: int) -> list[int | str]:
    """`ids` as a list, if there is one for each image."""
    numbers = ids.tolist() if isinstance(ids, (Tensor, np.ndarray)) else list(ids)
    if len(numbers) != count:
        raise ValueError(f"ids must be one an image, {count}, got {len(numbers)}; take those of these images")
    for number in numbers:
        if isinstance(number, bool) or not isinstance(number, (int, np.integer, str)):
            raise TypeError(f"ids must be whole numbers or strings, got {number!r} of type {type(number).__name__}")
    return numbers
