"""One entry for cross-entropy, focal, Brier, FCL, FLSD-53 and AdaFocal: check, choose an engine, reduce.

Engines: `native` (the C kernel), `torch` (analytic gradient in torch operations) and `formula` (torch
operations that autograd differentiates). The first two compute the gradient with the loss; `auto` takes
the first that can serve the call.
"""

from __future__ import annotations

from typing import Any, Literal

import torch
from torch import Tensor
from torch.autograd import forward_ad

from focalcal import _native
from focalcal.core.arrays import REDUCTIONS, bad_label, finite_at_least, holds_probabilities, labels_in_range, one_of
from focalcal.losses.analytic import loss_and_gradient
from focalcal.losses.formula import Terms, per_example, per_example_expected
from focalcal.losses.reduction import kept, reduce, reduce_expected, without_ignored

Engine = Literal["auto", "native", "torch", "formula"]
_PLAIN = (Tensor, torch.nn.Parameter)


def focal_family(
    logits: Tensor,
    target: Tensor,
    terms: Terms,
    weight: Tensor | None = None,
    ignore_index: int | None = None,
    reduction: str = "mean",
    engine: Engine = "auto",
) -> Tensor:
    """The loss that `terms` describes, reduced as `CrossEntropyLoss` reduces. float32 for half precision."""
    if holds_probabilities(logits, target, weight):
        return _expected(logits, target, terms, weight, ignore_index, reduction)
    if reduction not in REDUCTIONS:
        one_of("reduction", reduction, REDUCTIONS)
    if target.dtype != torch.int64:
        target = target.long()
    if logits.dim() == 1:
        loss = focal_family(
            logits.unsqueeze(0), target.unsqueeze(0), terms, weight, ignore_index, reduction, engine
        )
        return loss.squeeze(0) if reduction == "none" else loss
    if engine == "formula" or traced():
        if not traced() and logits.is_cpu:
            labels_in_range(target, logits.shape[1], ignore_index)
        return reduced_formula(logits, target, weight, terms, ignore_index, reduction)
    native = (
        engine != "torch"
        and logits.is_cpu
        and logits.dtype in _native.DTYPES
        and type(logits) in _PLAIN
        and _native.available()
    )
    if engine == "native" and not native:
        raise ValueError(
            "engine='native' needs the compiled kernel and float32, float64 or bfloat16 logits on the CPU, got "
            f"{logits.dtype} on {logits.device} with instruction sets {_native.instruction_sets()}; use 'auto'"
        )
    loss: Tensor = _GradientWithLoss.apply(logits, target, weight, (terms, ignore_index, reduction, native))
    return loss


def traced() -> bool:
    """True where Python sees no values (torch.compile, functorch) or tangents must flow (forward AD)."""
    return (
        torch.compiler.is_compiling()
        or torch._C._are_functorch_transforms_active()
        or forward_ad._current_level >= 0
    )


def reduced_formula(
    logits: Tensor,
    labels: Tensor,
    weight: Tensor | None,
    terms: Terms,
    ignore_index: int | None,
    reduction: str,
) -> Tensor:
    """The differentiable formula, reduced."""
    keep = kept(labels, ignore_index)
    logits, labels = without_ignored(logits, labels, keep)
    return reduce(per_example(logits, labels, terms), labels, weight, keep, reduction)


def _expected(
    logits: Tensor,
    target: Tensor,
    terms: Terms,
    weight: Tensor | None,
    ignore_index: int | None,
    reduction: str,
) -> Tensor:
    one_of("reduction", reduction, REDUCTIONS)
    if ignore_index is not None and ignore_index >= 0:
        raise ValueError(
            f"ignore_index = {ignore_index} has no meaning for class probabilities; leave it at its default and "
            "give the examples to ignore a target of zeros"
        )
    if logits.dim() == 1:
        loss = per_example_expected(logits.unsqueeze(0), target.unsqueeze(0), weight, terms)
        return reduce_expected(loss.squeeze(0) if reduction == "none" else loss, reduction)
    return reduce_expected(per_example_expected(logits, target, weight, terms), reduction)


class _GradientWithLoss(torch.autograd.Function):
    """Loss and gradient in one pass. The stored gradient serves one backward; a second one computes it
    again, and one that builds a graph differentiates the formula."""

    @staticmethod
    def forward(ctx: Any, logits: Tensor, labels: Tensor, weight: Tensor | None, call: tuple[Any, ...]) -> Tensor:
        loss, gradient = _compute(logits, labels, weight, call, ctx.needs_input_grad[0])
        if gradient is not None:
            ctx.save_for_backward(logits, labels, weight)
            ctx.call = call
            ctx.gradient = gradient
        return loss

    @staticmethod
    def backward(ctx: Any, *upstream: Tensor) -> tuple[Tensor | None, None, None, None]:
        factor = upstream[0]
        if torch.is_grad_enabled():
            logits, labels, weight = ctx.saved_tensors
            terms, ignore_index, reduction, _ = ctx.call
            loss = reduced_formula(logits, labels, weight, terms, ignore_index, reduction)
            (gradient,) = torch.autograd.grad(loss, logits, factor, create_graph=True)
            return gradient, None, None, None
        gradient = ctx.gradient
        ctx.gradient = None
        if gradient is None:
            logits, labels, weight = ctx.saved_tensors
            _, gradient = _compute(logits, labels, weight, ctx.call, True)
        return _scaled(gradient, factor, ctx.call), None, None, None


def _compute(
    logits: Tensor, labels: Tensor, weight: Tensor | None, call: tuple[Any, ...], gradient: bool
) -> tuple[Tensor, Tensor | None]:
    terms, ignore_index, reduction, native = call
    if native:
        focal, gamma, lam, steps = terms
        loss, grad, bad = _native.fused_loss(
            logits, labels, weight, focal=focal, gamma=gamma, lam=lam, steps=steps, ignore_index=ignore_index,
            reduction=reduction, gradient=gradient,
        )  # fmt: skip
        if bad >= 0:
            raise bad_label(int(labels.flatten()[bad]), bad, logits.shape[1], ignore_index)
        return loss, grad
    if logits.is_cpu:
        labels_in_range(labels, logits.shape[1], ignore_index)
    return loss_and_gradient(logits, labels, weight, terms, ignore_index, reduction, gradient)


def _scaled(gradient: Tensor, factor: Tensor, call: tuple[Any, ...]) -> Tensor:
    """gradient * factor, in the gradient's own memory where the factor is a plain scalar."""
    _, _, reduction, native = call
    if reduction == "none":
        return (gradient * factor.unsqueeze(1)).to(gradient.dtype)
    if not native:
        return gradient.mul_(factor) if not _batched(factor) else gradient * factor
    if _batched(factor):
        return (gradient * factor).to(gradient.dtype)
    _native.scale_by(gradient, factor)
    return gradient


def _batched(factor: Tensor) -> bool:
    """True for the tensors of `is_grads_batched`, whose legacy vmap functorch's own check does not see."""
    return torch._C._functorch.is_legacy_batchedtensor(factor) or torch._C._functorch.is_batchedtensor(factor)


def check_gamma(gamma: float) -> float:
    """A focusing parameter: finite and not negative."""
    return finite_at_least("gamma", gamma, 0.0)


def check_lam(lam: float) -> float:
    """An anchor weight: finite and not negative."""
    return finite_at_least("lam", lam, 0.0)
