"""Rows on their way into a file and out of it."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor


def stored(values: Tensor | NDArray[Any]) -> NDArray[Any]:
    """A chunk as it is written: contiguous, little-endian, half precision widened to float32, truths as 0 and 1."""
    if isinstance(values, Tensor):
        values = values.cpu()
        if values.dtype in (torch.float16, torch.bfloat16):
            values = values.float()
        values = values.numpy()
        if values.dtype == np.bool_:
            values = values.view(np.uint8)
    return np.ascontiguousarray(values.astype(values.dtype.newbyteorder("<"), copy=False))


def rows_at_once(classes: int) -> int:
    """Rows of a chunk that is written: 64 MB of scores at most."""
    return max(1, min(65536, (1 << 24) // max(1, classes)))


def joined(chunks: list[dict[str, Any]]) -> dict[str, Any]:
    """The fields of consecutive rows as one."""
    if len(chunks) == 1:
        return chunks[0]
    whole = dict(chunks[0])
    for name, value in whole.items():
        if isinstance(value, np.ndarray):
            whole[name] = np.concatenate([chunk[name] for chunk in chunks])
    return whole
