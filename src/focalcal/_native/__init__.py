"""The fused kernel, as a function of tensors. Optional: `available()` is False where it was not built.

`FOCALCAL_NATIVE=0` in the environment turns it off.
"""

from __future__ import annotations

import math
import os
import warnings
from importlib import import_module
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

if TYPE_CHECKING:
    from collections.abc import Sequence

DTYPES = {torch.float32: 0, torch.float64: 1, torch.bfloat16: 2}
_REDUCTIONS = {"none": 0, "sum": 1, "mean": 2}
_NO_INDEX = -(2**63)

_built: Any = None  # the compiled module, once looked for and found
_looked = False


class NativeKernelWarning(UserWarning):
    """The fused kernel is missing, so the losses run on ordinary torch operations."""


def available() -> bool:
    """True if the kernel can be used; the first call looks for it, and says once if it is missing."""
    global _built, _looked
    if not _looked:
        _looked = True
        if os.environ.get("FOCALCAL_NATIVE") != "0":
            try:
                _built = import_module("focalcal._native._kernel")
            except ImportError as error:
                warnings.warn(
                    f"focalcal's fused kernel is missing ({error}); the losses are right but slower, on torch "
                    "operations. Install a C compiler and reinstall focalcal, or set FOCALCAL_NATIVE=0 to "
                    "silence this.",
                    NativeKernelWarning,
                    stacklevel=2,
                )
    return _built is not None


def instruction_sets() -> tuple[str, ...]:
    """The instruction sets that the kernel can use on this processor, best last."""
    if not available():
        return ()
    names: tuple[str, ...] = _built.instruction_sets()
    return names


def _layout(shape: Sequence[int], strides: Sequence[int]) -> tuple[int, int, int] | None:
    """Strides (batch, class, position) of an (N, K, d1, ...) array whose positions are evenly spaced."""
    if len(shape) == 2:
        return strides[0], strides[1], 1
    spaced = [(n, step) for n, step in zip(shape[2:], strides[2:], strict=True) if n != 1]
    for (_, outer), (n, step) in pairwise(spaced):
        if outer != n * step and 0 not in shape:
            return None
    return strides[0], strides[1], spaced[-1][1] if spaced else 1


def fused_loss(
    logits: Tensor,
    labels: Tensor,
    weight: Tensor | None = None,
    *,
    focal: float = 1.0,
    gamma: float = 0.0,
    lam: float = 0.0,
    smoothing: float = 0.0,
    rival: bool = False,
    steps: Tensor | None = None,
    ignore_index: int | None = None,
    reduction: str = "mean",
    gradient: bool = True,
    instruction_set: int = -1,
) -> tuple[Tensor, Tensor | None, int]:
    """focal * -(1 - p_y)^gamma log p_y + lam |p - e_y|^2, and its gradient in the logits.

    Instead of lam, `smoothing` adds smoothing * sum_{k != y} -log p_k (label smoothing), and `rival` makes the
    weight (1 - p_y + p_j)^gamma with p_j the largest probability below p_y (Dual Focal).

    Logits (N, K, d1, ...) in float32, float64 or bfloat16 on the CPU, in any strides; labels int64
    (N, d1, ...); weight (K,). `steps` (float64, 2 B - 1 numbers: B - 1 edges, then B gammas) makes gamma a
    step function of p_y, negative values meaning (1 + p_y)^|gamma|. Returns the loss (float32, or float64
    for float64 logits), the gradient or None, and the flat position of the first label out of range, or -1;
    if there is one, nothing else was computed.
    """
    if not available():
        raise RuntimeError("the native kernel is not here; focalcal.losses works without it")
    dtype = DTYPES.get(logits.dtype)
    logits = logits.resolve_neg()  # a negated view keeps its sign outside the memory
    shape = logits.shape
    if dtype is None or not logits.is_cpu or len(shape) < 2:
        raise TypeError(
            "logits must be (N, K, d1, ...) in float32, float64 or bfloat16 on the CPU, "
            f"got {logits.dtype} of shape {tuple(shape)} on {logits.device}"
        )
    inner = 1 if len(shape) == 2 else math.prod(shape[2:])
    strides = _layout(shape, logits.stride())
    if strides is None:
        logits = logits.contiguous()
        strides = _layout(shape, logits.stride())
        assert strides is not None  # a contiguous array has evenly spaced positions
    labels = labels.contiguous()
    if labels.dtype is not torch.int64 or not labels.is_cpu or labels.numel() != shape[0] * inner:
        raise TypeError(f"labels must be {shape[0] * inner} int64 on the CPU, got {labels.numel()} {labels.dtype}")
    real = torch.float64 if dtype == 1 else torch.float32
    loss = torch.empty(labels.shape if reduction == "none" else (), dtype=real, device="cpu")
    weight_at = steps_at = step_count = grad_at = 0
    if weight is not None:
        weight = weight.to(device="cpu", dtype=real).contiguous()
        if weight.shape != shape[1:2]:
            raise ValueError(f"weight must have shape ({shape[1]},), got {tuple(weight.shape)}")
        weight_at = weight.data_ptr()
    if steps is not None:
        steps = steps.to(device="cpu", dtype=torch.float64).contiguous()
        steps_at, step_count = steps.data_ptr(), (steps.numel() + 1) // 2
    grad, grad_strides = None, strides
    if gradient:
        grad = torch.empty_like(logits)
        grad_at = grad.data_ptr()
        if not logits.is_contiguous():  # else it has the strides of the logits
            found = _layout(shape, grad.stride())
            if found is None:
                grad = torch.empty(shape, dtype=logits.dtype, device="cpu")
                grad_at = grad.data_ptr()
                found = _layout(shape, grad.stride())
                assert found is not None
            grad_strides = found
    bad = _built.fused_loss(
        logits.data_ptr(), dtype, shape[0], shape[1], inner, *strides, grad_at, *grad_strides, labels.data_ptr(),
        weight_at, _NO_INDEX if ignore_index is None else ignore_index, loss.data_ptr(), _REDUCTIONS[reduction],
        step_count, steps_at, focal, gamma, lam, smoothing, rival, torch.get_num_threads(), instruction_set,
    )  # fmt: skip
    return loss, grad, bad
