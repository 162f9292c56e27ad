"""Examples as tensors on the memory they are in, read-only memory maps too."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from torch import Tensor

from focalcal.core.arrays import Array, as_array, dense


def as_tensor(name: str, values: Any) -> Tensor:
    """A tensor on the same memory and device, detached; anything array-like is taken."""
    if isinstance(values, Tensor):
        dense(name, values)
        if values.is_meta:
            raise ValueError(f"{name} must hold numbers, got a tensor on the device meta; materialise it first")
        return values.detach().resolve_neg()
    array = as_array(name, values)
    if any(step < 0 or step % array.itemsize for step in array.strides):
        array = array.copy()  # torch has no negative strides, nor parts of elements
    return torch.from_numpy(array if array.flags.writeable else np.asarray(_Writable(array)))


class _Writable:
    """A read-only array's memory, said to be writable: torch knows no other kind, and nothing here writes."""

    def __init__(self, array: Array) -> None:
        self.array = array  # keeps the memory alive
        self.__array_interface__ = dict(array.__array_interface__, data=(array.__array_interface__["data"][0], False))
