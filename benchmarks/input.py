"""How many images a second does augmentation give, beside a pipeline that takes one image at a time?

    python benchmarks/input.py [--rounds N] [--json FILE]

Pad by 4, crop at a random place, mirror half: 32 x 32 images from one array of levels to a batch (N, 3, 32, 32). The
per-image pipeline is the usual one: an array to a Pillow image, `ImageOps.expand`, `crop`, `transpose`, back to a
tensor, `stack`; or without `expand`, by a `crop` that reaches beyond the image, which Pillow fills with zeros. All
make the same batches from the same offsets, which is checked before anything is timed. One
thread, CPU time of that thread, contenders in turn, each as often as takes ten milliseconds, medians over rounds; in
the rows called cold each is called once after work that fills the caches with something else, as a training step does.
The random numbers and, for float batches, the division by 255 are included on both sides.
"""

from __future__ import annotations

import argparse
import itertools
import json
import math
import platform
import random
import statistics
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import PIL
import torch
from PIL import Image, ImageOps
from torch import Tensor

from focalcal.lab.data.augment import PadCropFlip, RandAugment, RandomErasing, RandomResizedCrop
from focalcal.lab.data.augment.counter_rng import example_keys, uniforms

BATCHES = (128, 512)
PAD = 4
TARGET = 10  # times the images a second of the per-image pipeline


def per_image(images: np.ndarray, keys: Tensor, as_float: bool, expand: bool) -> Tensor:
    draws = uniforms(keys, 3)
    places = (draws[:, :2] * (2 * PAD + 1)).long().tolist()
    mirrored = (draws[:, 2] < 0.5).tolist()
    side, tensors = images.shape[1], []
    for levels, (top, left), flip in zip(images, places, mirrored, strict=True):
        picture = Image.fromarray(levels)
        if expand:
            picture = ImageOps.expand(picture, PAD).crop((left, top, left + side, top + side))
        else:
            picture = picture.crop((left - PAD, top - PAD, left - PAD + side, top - PAD + side))
        if flip:
            picture = picture.transpose(Image.Transpose.FLIP_LEFT_RIGHT)
        tensor = torch.from_numpy(np.array(picture)).permute(2, 0, 1).contiguous()
        tensors.append(tensor.float().div_(255) if as_float else tensor)
    return torch.stack(tensors)


def whole_batch(images: Tensor, keys: Tensor, as_float: bool) -> Tensor:
    batch = PadCropFlip(PAD)(images, keys)
    return batch.float().div_(255) if as_float else batch


def interleaved(contenders: dict[str, Callable[[], object]], rounds: int, cold: bool = False) -> dict[str, float]:
    """Median seconds of CPU of each; a turn is as many calls as take ten milliseconds, or a single one if cold."""
    times: dict[str, list[float]] = {name: [] for name in contenders}
    calls = {name: 1 if cold else calls_in(0.01, function) for name, function in contenders.items()}
    shuffle = random.Random(0)
    for _ in range(rounds):
        for name in shuffle.sample(list(contenders), len(contenders)):
            if cold:
                other_work()
            begin = time.thread_time()
            for _ in range(calls[name]):
                contenders[name]()
            times[name].append((time.thread_time() - begin) / calls[name])
    return {name: statistics.median(values) for name, values in times.items()}


def other_work() -> None:
    """Some milliseconds of torch, NumPy and Python that share nothing with the contenders."""
    torch.ones(500, 1000) @ torch.ones(1000, 1000)
    np.sort(np.random.default_rng(0).random(300_000))
    " ".join(str(number) for number in range(20_000))


def calls_in(seconds: float, function: Callable[[], object]) -> int:
    function()
    begin = time.thread_time()
    function()
    return max(1, math.ceil(seconds / (time.thread_time() - begin)))


def compare(count: int, as_float: bool, rounds: int, cold: bool) -> dict[str, float]:
    levels = np.random.default_rng(0).integers(0, 256, (count, 32, 32, 3), dtype=np.uint8)
    images = torch.from_numpy(levels).permute(0, 3, 1, 2).contiguous()
    keys = example_keys(0, "augment", 0, ids=range(count))
    contenders: dict[str, Callable[[], Tensor]] = {
        "expand and crop": lambda: per_image(levels, keys, as_float, expand=True),
        "crop beyond": lambda: per_image(levels, keys, as_float, expand=False),
        "focalcal": lambda: whole_batch(images, keys, as_float),
    }
    batches = [make() for make in contenders.values()]
    if not all(torch.equal(batch, batches[0]) for batch in batches):
        raise RuntimeError("the pipelines disagree: there is nothing to compare")
    return {name: count / seconds for name, seconds in interleaved(contenders, rounds, cold).items()}


def others(rounds: int) -> dict[str, float]:
    """Images a second of the other augmentations, 128 at a time."""
    keys = example_keys(0, "augment", 0, ids=range(128))
    levels = torch.randint(0, 256, (128, 3, 32, 32), dtype=torch.uint8)
    floats = torch.randn(128, 3, 32, 32)
    contenders: dict[str, Callable[[], object]] = {
        "RandomResizedCrop(32), uint8": lambda: RandomResizedCrop(32)(levels, keys),
        "RandAugment(), uint8": lambda: RandAugment()(levels, keys),
        "RandomErasing(), float32": lambda: RandomErasing()(floats, keys),
    }
    return {name: 128 / seconds for name, seconds in interleaved(contenders, rounds).items()}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=41)
    parser.add_argument("--json", type=Path)
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    print(
        f"python {platform.python_version()}, torch {torch.__version__}, Pillow {PIL.__version__}; target {TARGET} x\n"
    )
    print("| batch | result | expand and crop, images/s | crop beyond, images/s | focalcal, images/s | ratios |")
    print("|---|---|---|---|---|---|")
    results = {}
    for count, as_float, cold in itertools.product(BATCHES, (False, True), (False, True)):
        rate = compare(count, as_float, arguments.rounds, cold)
        kind = ("float32" if as_float else "uint8") + (", cold" if cold else "")
        results[f"{count} {kind}"] = rate
        rates = " | ".join(f"{value:,.0f}" for value in rate.values())
        ratios = ", ".join(f"{rate['focalcal'] / value:.1f}" for value in list(rate.values())[:-1])
        print(f"| {count} | {kind} | {rates} | {ratios} |")
    print("\n| other augmentations, 128 x 3 x 32 x 32 | images/s |\n|---|---|")
    for name, rate in others(arguments.rounds).items():
        results[name] = {"focalcal": rate}
        print(f"| {name} | {rate:,.0f} |")
    if arguments.json:
        arguments.json.write_text(json.dumps(results, indent=1))


if __name__ == "__main__":
    main()
