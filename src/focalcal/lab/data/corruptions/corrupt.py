"""Corruptions by name and severity: of images, and of a data set's test split."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch
from torch import Tensor

from focalcal.core.checks import is_whole, one_of, whole_number
from focalcal.core.rng import numpy_stream
from focalcal.lab.data.corruptions.blur import defocus_blur, glass_blur, motion_blur, zoom_blur
from focalcal.lab.data.corruptions.digital import contrast, elastic_transform, jpeg_compression, pixelate
from focalcal.lab.data.corruptions.noise import gaussian_noise, impulse_noise, shot_noise
from focalcal.lab.data.corruptions.pixels import Images, Levels, to_levels
from focalcal.lab.data.corruptions.weather import brightness, fog, frost, snow
from focalcal.lab.data.examples import DataSet

SEVERITIES = (1, 2, 3, 4, 5)
_AT_ONCE = 500  # images in a chunk: float32 copies of all 10,000 would take a gigabyte


@dataclass(frozen=True)
class Corruption:
    """`function(images, generators, strength)` on images (N, H, W, 3) in 0 .. 1, and its strength at each severity.

    Where nothing is random the generators, one per image, are ignored.
    """

    function: Callable[[Images, Any, Any], Images]
    strengths: tuple[Any, Any, Any, Any, Any]


# In the order of the published set. The strengths are those for 32 x 32 images, milder than ImageNet-C's.
CORRUPTIONS: dict[str, Corruption] = {
    "gaussian_noise": Corruption(gaussian_noise, (0.04, 0.06, 0.08, 0.09, 0.10)),
    "shot_noise": Corruption(shot_noise, (500, 250, 100, 75, 50)),
    "impulse_noise": Corruption(impulse_noise, (0.01, 0.02, 0.03, 0.05, 0.07)),
    "defocus_blur": Corruption(defocus_blur, ((0.3, 0.4), (0.4, 0.5), (0.5, 0.6), (1.0, 0.2), (1.5, 0.1))),
    "glass_blur": Corruption(glass_blur, ((0.05, 1, 1), (0.25, 1, 1), (0.4, 1, 1), (0.25, 1, 2), (0.4, 1, 2))),
    "motion_blur": Corruption(motion_blur, ((6, 1.0), (6, 1.5), (6, 2.0), (8, 2.0), (9, 2.5))),
    "zoom_blur": Corruption(zoom_blur, (1.05, 1.10, 1.15, 1.20, 1.25)),
    "snow": Corruption(
        snow,
        (
            (0.1, 0.2, 1.0, 0.6, 8, 3, 0.95),
            (0.1, 0.2, 1.0, 0.5, 10, 4, 0.9),
            (0.15, 0.3, 1.75, 0.55, 10, 4, 0.9),
            (0.25, 0.3, 2.25, 0.6, 12, 6, 0.85),
            (0.3, 0.3, 1.25, 0.65, 14, 12, 0.8),
        ),
    ),
    "frost": Corruption(frost, ((1.0, 0.2), (1.0, 0.3), (0.9, 0.4), (0.85, 0.4), (0.75, 0.45))),
    "fog": Corruption(fog, ((0.2, 3.0), (0.5, 3.0), (0.75, 2.5), (1.0, 2.0), (1.5, 1.75))),
    "brightness": Corruption(brightness, (0.05, 0.1, 0.15, 0.2, 0.3)),
    "contrast": Corruption(contrast, (0.75, 0.5, 0.4, 0.3, 0.15)),
    "elastic_transform": Corruption(
        elastic_transform,
        ((0.0, 0.0, 0.08), (0.05, 0.2, 0.07), (0.08, 0.06, 0.06), (0.1, 0.04, 0.05), (0.1, 0.03, 0.03)),
    ),
    "pixelate": Corruption(pixelate, (0.95, 0.9, 0.85, 0.75, 0.65)),
    "jpeg_compression": Corruption(jpeg_compression, (80, 65, 58, 50, 40)),
}


def corrupt(images: Any, name: str, severity: int, *, seed: int, ids: Iterable[int | str] | None = None) -> Any:
    """Images (N, 3, H, W), or (N, H, W, 3) as in the published files, uint8, with one of the `CORRUPTIONS`.

    Takes a NumPy array or a tensor and returns the same kind and layout, new, uint8. What is random about image n
    comes from the stream (seed, "corrupt", name, severity, ids[n]), `ids` being 0 .. N - 1 unless given: a part of a
    set, with its ids, is corrupted as in the whole set. H and W are free, but the strengths are meant for 32.
    """
    one_of("name", name, CORRUPTIONS)
    whole_number("severity", severity, least=1, most=max(SEVERITIES), remedy="5 is the strongest")
    levels = _channels_last(images.cpu().numpy() if isinstance(images, Tensor) else images)
    numbers = range(len(levels)) if ids is None else _id_list(ids, len(levels))
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


def corrupted(data: DataSet, name: str, severity: int = 5, *, seed: int) -> DataSet:
    """`data`'s test split under one of the `CORRUPTIONS`; its other splits are empty, there is nothing to train on.

    Labels and ids stay. Chance follows the ids, so that a part of the test split is corrupted as in the whole. The
    provenance says which corruption this is, and that it was made here.
    """
    test = data.test
    images = corrupt(test.inputs, name, severity, seed=seed, ids=test.ids)
    options = {"corruption": name, "severity": int(severity), "seed": int(seed)}
    provenance = {**data.provenance, "corrupted_from": data.name, "corrupted": {**options, "regenerated": True}}
    return replace(
        data,
        name=f"{data.name}_{name}_{severity}",
        train=data.train.none(),
        val=data.val.none(),
        test=replace(test, inputs=images),
        provenance=provenance,
    )


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


def _id_list(ids: Iterable[int | str], count: int) -> list[int | str]:
    """`ids` as a list, if there is one for each image."""
    numbers = ids.tolist() if isinstance(ids, (Tensor, np.ndarray)) else list(ids)
    if len(numbers) != count:
        raise ValueError(f"ids must be one per image, {count}, got {len(numbers)}; take those of these images")
    for number in numbers:
        if not is_whole(number) and not isinstance(number, str):
            raise TypeError(f"ids must be whole numbers or strings, got {number!r} of type {type(number).__name__}")
    return numbers
