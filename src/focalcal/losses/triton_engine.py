"""The focal family on a GPU by `engine="triton"`: what the kernels take, and when they compute the gradient."""

from __future__ import annotations

import os

import torch
from torch import Tensor

from focalcal.losses.formula import Terms
from focalcal.losses.triton_launch import fused_loss, kernels, multiply_, raise_reported

__all__ = ["check", "gradient", "loss", "multiply_"]

DTYPES = (torch.float32, torch.bfloat16, torch.float16, torch.float64)


def check(logits: Tensor) -> None:
    """Refuse engine="triton" for what it cannot serve, in a sentence."""
    kernels()
    interpreted = os.environ.get("TRITON_INTERPRET") == "1"  # Triton runs its kernels in Python, on CPU tensors
    if logits.dtype not in DTYPES or not (logits.is_cuda or (logits.is_cpu and interpreted)):
        raise ValueError(
            "engine='triton' needs floating-point logits on a GPU, or on the CPU with TRITON_INTERPRET=1 set before "
            f"Triton is imported, got {logits.dtype} on {logits.device}; use 'auto'"
        )


def loss(
    logits: Tensor,
    labels: Tensor,
    weight: Tensor | None,
    terms: Terms,
    ignore_index: int | None,
    reduction: str,
    differentiable: bool,
) -> tuple[Tensor, Tensor | None]:
    """The reduced loss, and its gradient where that need not wait for the upstream factor."""
    raise_reported(logits.device, ignore_index)
    now = differentiable and not _waits(logits, reduction)
    value, stored = fused_loss(logits, labels, weight, terms, ignore_index, reduction, gradient=now)
    assert value is not None
    return value, stored


def _waits(logits: Tensor, reduction: str) -> bool:
    """True if the backward pass reads the logits again rather than scale a gradient that was written with the loss.

    float16 must not be rounded before a loss scale has come with the upstream factor, and the factors of
    reduction="none" are as many as the examples.
    """
    return logits.dtype is torch.float16 or reduction == "none"


def gradient(
    logits: Tensor,
    factor: Tensor | None,
    labels: Tensor,
    weight: Tensor | None,
    terms: Terms,
    ignore_index: int | None,
    reduction: str,
) -> Tensor:
    """The gradient of the sum of what `loss` returned, times `factor`, computed anew in the same steps."""
    raise_reported(logits.device, ignore_index)
    at_once = factor if _waits(logits, reduction) else None
    _, computed = fused_loss(logits, labels, weight, terms, ignore_index, reduction, value=False, factor=at_once)
    assert computed is not None
    return computed if factor is None or factor is at_once else multiply_(computed, factor)
