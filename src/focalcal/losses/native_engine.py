"""The pass that computes a loss and its gradient, as a function of tensors."""

from __future__ import annotations

import math
from functools import cache
from itertools import pairwise

import torch
from torch import Tensor

from focalcal._native import kernel

DTYPES = {torch.float32: 0, torch.float64: 1, torch.bfloat16: 2}
_REDUCTIONS = {"none": 0, "sum": 1, "mean": 2}


@cache
def _one_number(dtype: torch.dtype) -> Tensor:
    """A tensor like a loss: `empty_like` takes half of the time of `empty`."""
    return torch.empty((), dtype=dtype, device="cpu")


def evenly_spaced(array: Tensor) -> tuple[Tensor, tuple[int, int, int]]:
    """An (N, K, d1, ...) array whose positions d1, ... have one stride, and its strides (batch, class, position).

    The array itself where it can be: contiguous, channels-last and most slices.
    """
    shape, strides = array.shape, array.stride()
    spaced = [(n, step) for n, step in zip(shape[2:], strides[2:], strict=True) if n != 1]
    if all(outer == n * step for (_, outer), (n, step) in pairwise(spaced)) or 0 in shape:
        return array, (strides[0], strides[1], spaced[-1][1] if spaced else 1)
    inner = math.prod(shape[2:])
    copy = torch.empty_like(array, memory_format=torch.contiguous_format).copy_(array)
    return copy, (shape[1] * inner, inner, 1)


def fused_rows(
    logits: Tensor,
    labels: Tensor,
    focal: float,
    gamma: float,
    lam: float,
    smoothing: float,
    rival: bool,
    ignore_index: int | None,
    reduction: str,
    gradient: bool,
) -> tuple[Tensor, Tensor | None, int]:
    """`fused_loss` as most networks are trained, a tenth of a call's time quicker because nothing is looked at.

    The caller knows that logits (N, K) are float32, labels (N,) int64, both contiguous on the CPU, and that the loss is
    reduced to one number.
    """
    rows, classes = logits.shape
    loss = torch.empty_like(_one_number(torch.float32))
    grad = torch.empty_like(logits) if gradient else None
    bad = kernel().fused_loss(
        logits.data_ptr(), 0, rows, classes, 1, classes, 1, 1, 0 if grad is None else grad.data_ptr(), classes, 1, 1,
        labels.data_ptr(), 0, ignore_index is not None, ignore_index or 0, loss.data_ptr(), _REDUCTIONS[reduction],
        0, 0, 0, focal, gamma, lam, smoothing, rival, torch.get_num_threads(), -1,
    )  # fmt: skip
    return loss, grad, bad


def fused_loss(
    logits: Tensor,
    labels: Tensor,
    weight: Tensor | None = None,
    focal: float = 1.0,
    gamma: float = 0.0,
    lam: float = 0.0,
    edges: Tensor | None = None,
    gammas: Tensor | None = None,
    smoothing: float = 0.0,
    rival: bool = False,
    ignore_index: int | None = None,
    reduction: str = "mean",
    gradient: bool = True,
    instruction_set: int = -1,
) -> tuple[Tensor, Tensor | None, int]:
    """focal * -(1 - p_y)^gamma log p_y + lam |p - e_y|^2, and its gradient in the logits.

    Logits (N, K, d1, ...) in float32, float64 or bfloat16 on the CPU, in any strides; labels int64
    (N, d1, ...); weight (K,). The other terms are those of `focalcal.losses.formula.Terms`. Returns the loss
    (float32, or float64 for float64 logits), the gradient or None, and the flat position of the first label out
    of range, or -1; if there is one, nothing else was computed.
    """
    dtype = DTYPES.get(logits.dtype)
    if logits.is_neg():
        logits = logits.resolve_neg()  # a negated view keeps its sign outside the memory
    shape = logits.shape
    if dtype is None or not logits.is_cpu or len(shape) < 2:
        raise TypeError(
            "logits must be (N, K, d1, ...) in float32, float64 or bfloat16 on the CPU, "
            f"got {logits.dtype} of shape {tuple(shape)} on {logits.device}"
        )
    if len(shape) == 2:
        (row, column), inner = logits.stride(), 1
        strides = (row, column, 1)
    else:
        inner = math.prod(shape[2:])
        logits, strides = evenly_spaced(logits)
    labels = labels.contiguous()
    if labels.dtype is not torch.int64 or not labels.is_cpu or labels.numel() != shape[0] * inner:
        raise TypeError(f"labels must be {shape[0] * inner} int64 on the CPU, got {labels.numel()} {labels.dtype}")
    loss = torch.empty_like(_one_number(torch.float64 if logits.dtype is torch.float64 else torch.float32))
    if reduction == "none":
        loss = loss.new_empty(labels.shape)
    weight_at = edges_at = gammas_at = steps = grad_at = 0
    if weight is not None:
        weight = weight.to(loss).contiguous()
        if weight.shape != shape[1:2]:
            raise ValueError(f"weight must have shape ({shape[1]},), got {tuple(weight.shape)}")
        weight_at = weight.data_ptr()
    if gammas is not None and edges is not None:
        gammas = gammas.to(device="cpu", dtype=torch.float32).contiguous()
        edges = edges.to(device="cpu", dtype=torch.float32).contiguous()
        steps = gammas.numel()
        if edges.numel() != steps + 1:
            raise ValueError(f"edges must be one more than the {steps} gammas, got {edges.numel()}")
        edges_at, gammas_at = edges.data_ptr(), gammas.data_ptr()
    grad, grad_strides = None, strides
    if gradient:
        grad = torch.empty_like(logits)
        grad_at = grad.data_ptr()
        if not logits.is_contiguous():  # else it has the strides of the logits
            grad, grad_strides = evenly_spaced(grad)
            grad_at = grad.data_ptr()
    bad = kernel().fused_loss(
        logits.data_ptr(), dtype, shape[0], shape[1], inner, *strides, grad_at, *grad_strides, labels.data_ptr(),
        weight_at, ignore_index is not None, ignore_index or 0, loss.data_ptr(), _REDUCTIONS[reduction],
        steps, edges_at, gammas_at, focal, gamma, lam, smoothing, rival, torch.get_num_threads(), instruction_set,
    )  # fmt: skip
    return loss, grad, bad
