"""A linear layer and Focal Calibration Loss in one step, for so many classes that the logits would not fit.

The rows are taken in chunks: their logits, the loss, and what it adds to the gradients of hidden states, weight and
bias are computed before the next chunk's, so that no more than one chunk of logits, and its gradient, is in memory.
"""

from __future__ import annotations

from typing import Any, NamedTuple, get_args

import torch
from torch import Tensor, nn
from torch.nn.functional import linear

from focalcal.core.checks import shown, whole_number
from focalcal.losses.checks import FLOATS, INTEGERS, dense, labels_in_range
from focalcal.losses.engines import Engine, focal_family
from focalcal.losses.formula import Terms
from focalcal.losses.scale import Scale, check_scale, terms_of
from focalcal.losses.settings import choice, label, naming_options, not_negative

_LOGITS = 2**23  # of a chunk: 32 MB of float32
_FEWEST = 32  # rows of a chunk: fewer and the weight's gradient is read and written more than the rows are multiplied


def linear_focal_calibration(
    hidden: Tensor,
    weight: Tensor,
    labels: Tensor,
    bias: Tensor | None = None,
    *,
    gamma: float,
    lam: float,
    scale: Scale = "paper",
    soft_cap: float | None = None,
    ignore_index: int = -100,
    reduction: str = "mean",
    chunk: int | None = None,
    engine: Engine = "auto",
) -> Tensor:
    """FCL of the logits hidden W^T + b, without the logits: the mean or sum over the rows that are not ignored.

    With `soft_cap` c the logits are c tanh(z / c), z = hidden W^T + b, as Gemma 2 has them. The gradients are computed
    with the loss and added up in float32 for half precision. A mean over no row is NaN, as cross-entropy's.

    Args:
        hidden: (*b, D), what the layer is given.
        weight: (K, D), the layer's.
        labels: (*b), class indices.
        bias: (K,), the layer's, or None.
        gamma: the focusing parameter, >= 0.
        lam: the weight of the Brier score, >= 0.
        scale: "paper", or "matched" to the learning rate of cross-entropy.
        soft_cap: c > 0, or None.
        ignore_index: rows with this label add nothing.
        reduction: "mean" or "sum".
        chunk: the number of rows whose logits are in memory at a time; by default those of 8 million logits, and 32 at
            least.
        engine: as `loss.engine`; "auto" chooses.

    Returns:
        One number.

    >>> hidden, weight = torch.ones(4, 8), torch.zeros(1000, 8)
    >>> linear_focal_calibration(hidden, weight, torch.arange(4), gamma=0.0, lam=0.0)  # log 1000
    tensor(6.9078)
    """
    _check(hidden, weight, labels, bias, reduction)
    label("ignore_index", ignore_index)
    choice(*get_args(Engine))("engine", engine)
    terms = terms_of(gamma=gamma, lam=lam, scale=scale)
    if soft_cap is not None and not (soft_cap := not_negative("soft_cap", soft_cap)):
        raise ValueError("soft_cap must be positive, got 0; None leaves the logits as they are")
    rows, labels = hidden.reshape(-1, hidden.shape[-1]), labels.reshape(-1).long()
    labels_in_range(labels, weight.shape[0], ignore_index)
    counted = labels != ignore_index
    if not bool(counted.all()):
        rows, labels = rows[counted], labels[counted]
    if torch.is_autocast_enabled(hidden.device.type):
        half = torch.get_autocast_dtype(hidden.device.type)
        rows, weight, bias = rows.to(half), weight.to(half), None if bias is None else bias.to(half)
    size = max(_FEWEST, _LOGITS // weight.shape[0]) if chunk is None else chunk
    size = whole_number("chunk", size, least=1, remedy="it is how many rows have their logits in memory; None chooses")
    call = _Call(terms, size, engine, soft_cap, torch.is_grad_enabled())
    total: Tensor = _LinearLoss.apply(rows, weight, bias, labels, call)  # type: ignore[no-untyped-call]
    return total if reduction == "sum" else total / len(labels)


class LinearFocalCalibrationLoss(nn.Module):
    """`linear_focal_calibration` as a module: `loss(hidden, layer.weight, labels, layer.bias)`.

    Args:
        gamma, lam, scale: as in `FocalCalibrationLoss`.
        ignore_index: rows with this label add nothing, and are not multiplied.
        reduction: "mean" or "sum".
        chunk: the number of rows whose logits are in memory at a time; None chooses.

    >>> layer = nn.Linear(8, 1000)
    >>> loss = LinearFocalCalibrationLoss(gamma=3, lam=1)
    >>> loss(torch.zeros(4, 8), layer.weight, torch.arange(4), layer.bias).shape
    torch.Size([])
    """

    @naming_options
    def __init__(
        self,
        gamma: float = 3.0,
        lam: float = 1.0,
        *,
        scale: Scale = "paper",
        ignore_index: int = -100,
        reduction: str = "mean",
        chunk: int | None = None,
    ) -> None:
        super().__init__()
        self.gamma, self.lam = not_negative("gamma", gamma), not_negative("lam", lam)
        self.scale: Scale = check_scale("scale", scale)
        self.ignore_index, self.reduction, self.chunk = ignore_index, _check_reduction(reduction), chunk

    def forward(
        self,
        hidden: Tensor,
        weight: Tensor,
        labels: Tensor,
        bias: Tensor | None = None,
        *,
        soft_cap: float | None = None,
    ) -> Tensor:
        """One number."""
        return linear_focal_calibration(
            hidden,
            weight,
            labels,
            bias,
            gamma=self.gamma,
            lam=self.lam,
            scale=self.scale,
            soft_cap=soft_cap,
            ignore_index=self.ignore_index,
            reduction=self.reduction,
            chunk=self.chunk,
        )

    def extra_repr(self) -> str:
        """The settings."""
        return f"gamma={self.gamma:g}, lam={self.lam:g}, scale={self.scale!r}, reduction={self.reduction!r}"


class _Call(NamedTuple):
    """All that has no gradient."""

    terms: Terms
    chunk: int
    engine: Engine
    soft_cap: float | None
    grad_enabled: bool


class _LinearLoss(torch.autograd.Function):
    """The sum over the rows, and its gradients, which serve one backward; a second one computes them again."""

    @staticmethod
    def forward(ctx: Any, rows: Tensor, weight: Tensor, bias: Tensor | None, labels: Tensor, call: _Call) -> Tensor:
        needed = tuple(call.grad_enabled and flag for flag in ctx.needs_input_grad[:3])
        total, gradients = _pass(rows, weight, bias, labels, call, needed)
        ctx.save_for_backward(rows, weight, bias, labels)
        ctx.call, ctx.needed, ctx.gradients = call, needed, gradients
        return total

    @staticmethod
    def backward(ctx: Any, *upstream: Tensor) -> tuple[Tensor | None, ...]:
        if torch.is_grad_enabled():
            raise RuntimeError(
                "linear_focal_calibration must not be differentiated twice, got create_graph=True; use the logits and "
                "FocalCalibrationLoss for second derivatives"
            )
        rows, weight, bias, labels = ctx.saved_tensors
        gradients, ctx.gradients = ctx.gradients, None
        if gradients is None:
            _, gradients = _pass(rows, weight, bias, labels, ctx.call, ctx.needed)
        # Half precision is rounded last: the factor holds 1 / rows, and a loss scale.
        factor = upstream[0]
        return (
            *(_times(gradient, factor, like) for gradient, like in zip(gradients, (rows, weight, bias), strict=True)),
            None,
            None,
        )


def _pass(
    rows: Tensor, weight: Tensor, bias: Tensor | None, labels: Tensor, call: _Call, needed: tuple[bool, ...]
) -> tuple[Tensor, list[Tensor | None]]:
    """The sum of the loss over the rows and its gradients to rows, weight and bias, chunk by chunk."""
    exact = torch.promote_types(rows.dtype, torch.float32)
    total = torch.zeros((), dtype=exact, device=rows.device)
    inputs = (rows, weight, bias)
    gradients = [
        torch.zeros(value.shape, dtype=exact, device=value.device) if value is not None and wanted else None
        for value, wanted in zip(inputs, needed, strict=True)
    ]
    to_rows, to_weight, to_bias = gradients
    for start in range(0, len(rows), call.chunk):
        part = slice(start, start + call.chunk)
        with torch.enable_grad():
            logits = linear(rows[part].detach(), weight.detach(), None if bias is None else bias.detach())
            logits.requires_grad_(any(needed))
            capped = logits if call.soft_cap is None else call.soft_cap * (logits / call.soft_cap).tanh()
            loss = focal_family(capped, labels[part], call.terms, None, None, "sum", call.engine)
        total += loss.detach()
        if not any(needed):
            continue
        (to_logits,) = torch.autograd.grad(loss, logits)
        del logits, capped, loss
        if to_rows is not None:
            to_rows[part] = to_logits @ weight
        if to_weight is not None:
            _add_product(to_weight, to_logits, rows[part])
        if to_bias is not None:
            to_bias += to_logits.sum(0, dtype=exact)
    return total, gradients


def _add_product(total: Tensor, to_logits: Tensor, rows: Tensor) -> None:
    """total += to_logits^T rows, in place where the types allow it."""
    if to_logits.dtype is total.dtype:
        total.addmm_(to_logits.t(), rows)
    else:
        total += to_logits.t() @ rows


def _times(gradient: Tensor | None, factor: Tensor, like: Tensor | None) -> Tensor | None:
    if gradient is None or like is None:
        return None
    return gradient.mul_(factor).to(like.dtype)


def _check(hidden: Tensor, weight: Tensor, labels: Tensor, bias: Tensor | None, reduction: str) -> None:
    _check_reduction(reduction)
    for name, value in {"hidden": hidden, "weight": weight, "labels": labels, "bias": bias}.items():
        if value is None and name == "bias":
            continue
        wanted = INTEGERS if name == "labels" else FLOATS
        if not isinstance(value, Tensor) or value.is_meta or value.dtype not in wanted:
            kinds = ", ".join(str(kind).removeprefix("torch.") for kind in wanted)
            got = f"{value.dtype} on {value.device}" if isinstance(value, Tensor) else shown(value)
            raise TypeError(f"{name} must be a tensor of {kinds}, got {got}; convert it first")
        dense(name, value)
    if weight.dim() != 2 or hidden.dim() < 1 or hidden.shape[-1] != weight.shape[1]:
        raise ValueError(
            f"hidden must be (*b, D) and weight (K, D), got {tuple(hidden.shape)} and {tuple(weight.shape)}; pass a "
            "linear layer's weight as it is"
        )
    if labels.shape != hidden.shape[:-1]:
        raise ValueError(
            f"labels must be class indices of the shape {tuple(hidden.shape[:-1])}, got {tuple(labels.shape)}; one per "
            "row of hidden"
        )
    if bias is not None and bias.shape != weight.shape[:1]:
        raise ValueError(f"bias must have the shape ({weight.shape[0]},), got {tuple(bias.shape)}; or leave it out")
    types = {str(value.dtype) for value in (hidden, weight, bias) if value is not None}
    if len(types) > 1 and not torch.is_autocast_enabled(hidden.device.type):
        raise TypeError(f"hidden, weight and bias must have one type, got {', '.join(sorted(types))}; convert them")


def _check_reduction(reduction: str) -> str:
    if reduction not in ("mean", "sum"):
        raise ValueError(
            f"reduction must be 'mean' or 'sum', got {shown(reduction)}; for a value per row use the logits"
        )
    return reduction
