"""How the Triton kernels are launched: the tiles, the buffers, and where a label out of range shows up."""

from __future__ import annotations

from functools import cache
from importlib import import_module
from typing import Any, NamedTuple

import torch
from torch import Tensor

from focalcal.core.extras import required
from focalcal.losses.checks import bad_label
from focalcal.losses.formula import Terms
from focalcal.losses.native_engine import evenly_spaced

_LABELS_PER_BLOCK, _PARTS = 1024, 256
_TILE = 1024  # logits per program where several examples share one
_MOST_CLASSES = 16384  # that one block holds without spilling registers
_SHARED_LOADS = 16  # examples side by side whose logits of one class are adjacent in memory


def kernels() -> Any:
    """The module of kernels, which imports Triton."""
    required("triton", purpose="engine='triton'", extra="triton")
    return import_module("focalcal.losses.triton_kernel")


class Tile(NamedTuple):
    """How the logits are cut: examples and classes per program, whether those are all classes, and warps for it."""

    rows: int
    block: int
    whole: bool
    warps: int


def tile(classes: int, class_stride: int) -> Tile:
    """The tile for so many classes.

    One example per program from 1,024 classes on. Where the classes of an example are not adjacent in memory (images,
    transposed logits), neighbouring examples are, and a program takes enough of them to use what each load brings.
    """
    least = 1 if class_stride == 1 else _SHARED_LOADS
    block = max(4, 1 << (classes - 1).bit_length())
    whole = block * least <= _MOST_CLASSES
    if not whole:
        block = 4096 // least
    rows = max(_TILE // block, least)
    return Tile(rows, block, whole, min(16, max(4, rows * block // 512)))


def fused_loss(
    logits: Tensor,
    labels: Tensor,
    weight: Tensor | None,
    terms: Terms,
    ignore_index: int | None,
    reduction: str,
    *,
    value: bool = True,
    gradient: bool = True,
    factor: Tensor | None = None,
) -> tuple[Tensor | None, Tensor | None]:
    """The reduced loss, float32 for half precision, and the gradient of its sum times `factor`, in the logits' dtype.

    Logits (N, K, d1, ...) in any strides, labels (N, d1, ...) int32 or int64. `factor` is one number or, for
    reduction="none", one per example.
    """
    kernel = kernels()
    logits, (batch_stride, class_stride, position_stride) = evenly_spaced(logits.detach().resolve_neg())
    classes, rows, labels = logits.shape[1], labels.numel(), labels.contiguous()
    real = torch.float64 if logits.dtype is torch.float64 else torch.float32
    each = torch.empty(labels.shape, dtype=real, device=logits.device) if value else None
    grad, grad_strides = evenly_spaced(torch.empty_like(logits)) if gradient else (None, (1, 1, 1))
    if rows:
        parts = min(_PARTS, -(-rows // _LABELS_PER_BLOCK))
        totals = torch.empty(parts, dtype=real, device=logits.device)
        weight, edges, gammas = (
            None if part is None else part.to(totals).contiguous() for part in (weight, terms.edges, terms.gammas)
        )
        bad = torch.empty(parts, dtype=torch.int64, device=logits.device)
        shape = tile(classes, class_stride)
        report = _report(logits.device)
        with torch.cuda.device(logits.get_device()):
            kernel.count_labels[(parts,)](
                labels, weight, totals, bad, rows, classes, ignore_index, BLOCK=_LABELS_PER_BLOCK
            )
            kernel.loss_and_gradient[(-(-rows // shape.rows),)](
                logits, labels, weight, edges, gammas, totals if reduction == "mean" else None, bad, report,
                None if factor is None else factor.contiguous(), each, grad,
                rows, classes, rows // logits.shape[0], batch_stride, class_stride, position_stride, *grad_strides,
                ignore_index, 0 if gammas is None else gammas.numel(), parts,
                terms.focal, terms.gamma, terms.lam, terms.smoothing,
                KIND=_kind(kernel, terms), ANCHORED=terms.lam != 0, EACH=reduction == "none",
                REAL=kernel.tl.float64 if real is torch.float64 else kernel.tl.float32,
                WIDE=classes * max(class_stride, grad_strides[1]) >= 2**31, WHOLE=shape.whole,
                ROWS=shape.rows, BLOCK=shape.block, PARTS=_PARTS, num_warps=shape.warps, enable_fp_fusion=True,
            )  # fmt: skip
        if logits.is_cpu:
            raise_reported(logits.device, ignore_index)
    if each is None or reduction == "none":
        return each, grad
    return each.sum() if rows or reduction == "sum" else each.sum() / 0, grad


def _kind(kernel: Any, terms: Terms) -> Any:
    if terms.rival:
        return kernel.DUAL
    if terms.smoothing:
        return kernel.SMOOTH
    return kernel.FOCAL if terms.focal else kernel.BRIER


def multiply_(gradient: Tensor, factor: Tensor) -> Tensor:
    """A gradient that `fused_loss` made, times one number, in place; nothing is read where the number is 1."""
    kernel = kernels()
    size = gradient.numel()
    if size:
        with torch.cuda.device(gradient.get_device()):
            kernel.multiply[(-(-size // _TILE),)](gradient, factor, size, BLOCK=_TILE)
    return gradient


@cache
def _report(device: torch.device) -> Tensor:
    """Where the kernel writes of a label out of range: position (-1 for none), label, number of classes.

    Page-locked memory that a GPU writes to and Python reads without waiting for it.
    """
    return torch.tensor([-1, 0, 0], dtype=torch.int64, device="cpu", pin_memory=device.type != "cpu")


def raise_reported(device: torch.device, ignore_index: int | None) -> None:
    """Raise if a call on this device has met a label out of range.

    On a GPU that is an earlier call: to wait for this one would cost every call.
    """
    report = _report(device)
    if report[0] < 0:
        return
    if device.type != "cpu":
        torch.cuda.synchronize(device)
    position, label, classes = report.tolist()
    report[0] = -1
    error = bad_label(label, position, classes, ignore_index)
    if device.type != "cpu":
        error.add_note("The GPU met it in this call or in one before it, whose loss is NaN.")
    raise error
