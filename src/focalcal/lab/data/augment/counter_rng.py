"""Random numbers addressed by counters: number j of example i is a function of (key_i, j) and of nothing else.

A key is any int64, one per example. Number j is SplitMix64's output for the state key + (j + 1) * golden ratio (Steele,
Lea and Flood, 2014, "Fast splittable pseudorandom number generators"), in integer arithmetic that wraps around, which
every device computes alike. So an example's numbers depend neither on its batch nor on the workers or the device;
normal ones, which pass through a logarithm and a cosine, only to the rounding of these on another device.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
import torch
from torch import Tensor

from focalcal.core.rng import stream_key

if TYPE_CHECKING:
    from jaxtyping import Float, Int

Words = TypeVar("Words", Tensor, np.ndarray[Any, np.dtype[np.int64]])

_GOLDEN = 0x9E3779B97F4A7C15 - 2**64  # 2**64 / golden ratio, as int64
_FIRST = 0xBF58476D1CE4E5B9 - 2**64
_SECOND = 0x94D049BB133111EB - 2**64


def example_keys(seed: int, *names: str | int, ids: Any) -> Int[Tensor, " n"]:
    """One key for each example: `ids` (n,) are their numbers in the data set, `names` say what for and which epoch."""
    numbers = ids if isinstance(ids, Tensor) else np.asarray(ids)
    whole = str(numbers.dtype).removeprefix("torch.").startswith(("int", "uint"))
    if numbers.ndim != 1 or not (whole or len(numbers) == 0):  # an empty list has no type of its own
        raise ValueError(
            f"ids must be whole numbers of shape (n,), got {numbers.dtype} of shape {tuple(numbers.shape)}; "
            "pass the examples' positions in the data set"
        )
    numbers = numbers if isinstance(numbers, Tensor) else torch.from_numpy(numbers.astype(np.int64))
    start = int.from_bytes(stream_key(seed, *names)[:8], "little", signed=True)
    return _mix(numbers.long() * _GOLDEN + start)


def drawn_keys(count: int, generator: torch.Generator) -> Int[Tensor, " count"]:
    """One key for each of `count` examples from the generator, for when they have no numbers of their own."""
    low, high = torch.randint(0, 2**32, (2, count), generator=generator, device=generator.device)
    keys: Tensor = (high << 32) + low
    return keys


def derived_keys(keys: Int[Tensor, " n"], step: int) -> Int[Tensor, " n"]:
    """Keys for the `step`-th (0, 1, ...) of several independent uses of the same examples."""
    return _mix(_mix(keys) + torch.tensor(step + 1, device=keys.device) * _GOLDEN)


def uniforms(keys: Int[Tensor, " n"], count: int) -> Float[Tensor, "n count"]:
    """`count` float32 numbers per example, multiples of 2**-24, uniform on [0, 1)."""
    return ((_words(keys, count) >> 40) & 0xFFFFFF).float().mul_(2.0**-24)


def normals(keys: Int[Tensor, " n"], count: int) -> Float[Tensor, "n count"]:
    """`count` float32 standard normal numbers per example, by Box and Muller's sqrt(-2 log u) cos(2 pi v)."""
    bits = _words(keys, count)
    radius = ((bits >> 40) & 0xFFFFFF).float().add_(1).mul_(2.0**-24).log_().mul_(-2).sqrt_()
    return radius * ((bits & 0xFFFFFF).float() * (2 * math.pi * 2.0**-24)).cos_()


def _words(keys: Tensor, count: int) -> Tensor:
    """The words 0 .. count - 1 of each key."""
    if keys.device.type == "cpu":  # a batch has few numbers, and NumPy's calls cost a fraction of torch's
        return torch.from_numpy(_mix(keys.numpy()[:, None] + np.arange(1, count + 1, dtype=np.int64) * _GOLDEN))
    return _words_on_device(keys, count)


def _words_on_device(keys: Tensor, count: int) -> Tensor:
    return _mix(keys[:, None] + torch.arange(1, count + 1, device=keys.device) * _GOLDEN)


def _mix(bits: Words) -> Words:
    """SplitMix64's finaliser. int64 is shifted with its sign, so the copies of the sign are masked away."""
    bits = (((bits >> 30) & (2**34 - 1)) ^ bits) * _FIRST
    bits = (((bits >> 27) & (2**37 - 1)) ^ bits) * _SECOND
    return ((bits >> 31) & (2**33 - 1)) ^ bits
