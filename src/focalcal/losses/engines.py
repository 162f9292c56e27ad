"""One entry for every objective that has a value per example: check, choose an engine, reduce.

Engines: `native` (the C kernel), `triton` (its like for GPUs), `torch` (analytic gradient in torch operations) and
`formula` (torch operations that autograd differentiates). All but the last compute the gradient with the loss; `auto`
takes the first that can serve the call, but `triton`, which no GPU has run yet, only if it is asked for. Dual Focal and
label smoothing have no analytic gradient in torch operations.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal, NamedTuple

import torch
from torch import Tensor

from focalcal import _native
from focalcal.losses import native_engine, triton_engine
from focalcal.losses.analytic import loss_and_gradient
from focalcal.losses.checks import bad_label, class_count, dense, holds_probabilities, labels_in_range
from focalcal.losses.formula import Terms, per_example, per_example_expected
from focalcal.losses.reduction import kept, kept_if_any, reduce, reduce_expected, without_ignored
from focalcal.losses.scale import cached_matched_terms, matched_terms
from focalcal.losses.smoothing import mean_over_classes, smooth_cross_entropy
from focalcal.losses.targets import check_class_probabilities, refuse_probabilities
from focalcal.losses.torch_state import is_batched, traced, unwrap_if_dead

Engine = Literal["auto", "native", "triton", "torch", "formula"]
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
    if terms.matched:
        terms = _matched(logits, terms)
    if terms.label_smoothing:
        return _smooth(logits, target, terms, weight, ignore_index, reduction, engine)
    usual = weight is None and _usual(logits, target)
    if not usual:
        if holds_probabilities(logits, target, weight):
            return _expected(logits, target, terms, weight, ignore_index, reduction)
        if target.dtype is not torch.int64 and target.dtype is not torch.int32:
            target = target.long()
        if logits.dim() == 1:
            single = focal_family(
                logits.unsqueeze(0), target.unsqueeze(0), terms, weight, ignore_index, reduction, engine
            )
            return single.squeeze(0) if reduction == "none" else single
    tracing = traced()
    native = not tracing and engine in ("auto", "native") and (_native.available() if usual else natively(logits))
    triton = engine == "triton" and not tracing
    if not native and not tracing:  # the kernel's own call checks the rest
        dense("logits", logits)
        dense("target", target)
    if engine == "native" and not native and not tracing:
        raise ValueError(
            "engine='native' needs the compiled kernel and float32, float64 or bfloat16 logits on the CPU, got "
            f"{logits.dtype} on {logits.device} with instruction sets {_native.instruction_sets()}; use 'auto'"
        )
    if engine == "triton" and not tracing:
        triton_engine.check(logits)
    if not triton and target.dtype is not torch.int64:
        target = target.long()
    if engine == "formula" or tracing or (not native and not triton and (terms.rival or terms.smoothing)):
        if not tracing and logits.is_cpu:
            labels_in_range(target, logits.shape[1], ignore_index)
        return reduced_formula(logits, target, weight, terms, ignore_index, reduction)
    bare = usual and native and _bare(logits, target, terms, reduction)
    call = _Call(target, weight, terms, ignore_index, reduction, native, triton, bare, torch.is_grad_enabled())
    return _apply(unwrap_if_dead(logits), call)


def _matched(logits: Tensor, terms: Terms) -> Terms:
    """`terms` at their scale for this many classes."""
    classes = class_count(logits)
    return matched_terms(terms, classes) if torch.compiler.is_compiling() else cached_matched_terms(terms, classes)


def _smooth(
    logits: Tensor,
    target: Tensor,
    terms: Terms,
    weight: Tensor | None,
    ignore_index: int | None,
    reduction: str,
    engine: Engine,
) -> Tensor:
    """(1 - e) loss(., y) + e / K sum_k w_k loss(., k), with the reductions of `F.cross_entropy`.

    The kernels serve cross-entropy without a weight whole and of the other losses the first term; the second is made of
    torch operations.
    """
    if holds_probabilities(logits, target, weight):
        return _expected(logits, target, terms, weight, ignore_index, reduction)
    if logits.dim() == 1:
        single = _smooth(logits.unsqueeze(0), target.unsqueeze(0), terms, weight, ignore_index, reduction, engine)
        return single.squeeze(0) if reduction == "none" else single
    share, classes, target = terms.label_smoothing, logits.shape[1], target.long()
    if not terms.gamma and not terms.lam:
        fused = engine == "auto" and not traced() and natively(logits)
        if weight is None and (fused or engine in ("native", "triton", "formula")):
            terms = Terms(focal=terms.focal * (1 - share + share / classes), smoothing=terms.focal * share / classes)
            return focal_family(logits, target, terms, None, ignore_index, reduction, engine)
        if logits.is_cpu and not traced():
            labels_in_range(target, classes, ignore_index)
        return smooth_cross_entropy(logits, target, terms, weight, ignore_index, reduction)
    sharp = Terms(*terms[:8])
    at_label = focal_family(logits, target, sharp, weight, ignore_index, reduction, engine)
    return (1 - share) * at_label + share * mean_over_classes(logits, target, sharp, weight, ignore_index, reduction)


def natively(logits: Tensor) -> bool:
    """True if the kernel can read these logits."""
    return logits.is_cpu and logits.dtype in native_engine.DTYPES and type(logits) in _PLAIN and _native.available()


def _usual(logits: Tensor, target: Tensor) -> bool:
    """True for (N, K) float32 logits with N int64 labels on the CPU: nothing more to check, and quick to see."""
    if type(logits) is not Tensor or type(target) is not Tensor or target.dtype is not torch.int64:
        return False
    try:
        shape = logits.shape
    except RuntimeError:  # a nested tensor, to be refused
        return False
    return (
        len(shape) == 2
        and target.dim() == 1
        and target.numel() == shape[0]
        and shape[1] > 0
        and logits.dtype is torch.float32
        and logits.is_cpu
        and target.is_cpu
    )


def _bare(logits: Tensor, target: Tensor, terms: Terms, reduction: str) -> bool:
    """True if the kernel can read a usual call's tensors as they are, and gives one number."""
    return (
        terms.gammas is None
        and reduction != "none"
        and logits.is_contiguous()
        and target.is_contiguous()
        and not logits.is_neg()
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
    """The expectation over class probabilities, reduced."""
    if terms.rival or terms.gammas is not None:
        refuse_probabilities("Dual Focal" if terms.rival else "FLSD and AdaFocal", target)
    check_class_probabilities(target, ignore_index, readable=target.is_cpu and not traced())
    if terms.label_smoothing:
        target = target * (1 - terms.label_smoothing) + terms.label_smoothing / class_count(logits)
    if logits.dim() == 1:
        loss = per_example_expected(logits.unsqueeze(0), target.unsqueeze(0), weight, terms)
        return reduce_expected(loss.squeeze(0) if reduction == "none" else loss, reduction)
    return reduce_expected(per_example_expected(logits, target, weight, terms), reduction)


class _Call(NamedTuple):
    """All that has no gradient: each further argument of `apply` costs a microsecond."""

    labels: Tensor
    weight: Tensor | None
    terms: Terms
    ignore_index: int | None
    reduction: str
    native: bool
    triton: bool
    bare: bool
    grad_enabled: bool


class _GradientWithLoss(torch.autograd.Function):
    """Loss and gradient in one pass. The stored gradient serves one backward; a second one computes it
    again, and one that builds a graph differentiates the formula."""

    @staticmethod
    def forward(ctx: Any, logits: Tensor, call: _Call) -> Tensor:
        differentiable = call.grad_enabled and ctx.needs_input_grad[0]
        loss, gradient = _compute(logits, call, differentiable)
        if differentiable:  # saved, to be told if they change before a second use
            terms = call.terms
            if call.weight is None and terms.gammas is None:
                ctx.save_for_backward(logits, call.labels)
            else:
                ctx.save_for_backward(logits, call.labels, call.weight, terms.edges, terms.gammas)
            ctx.call = call
            ctx.dtype = logits.dtype
            ctx.gradient = gradient
        return loss

    @staticmethod
    def backward(ctx: Any, *upstream: Tensor) -> tuple[Tensor | None, None]:
        factor, call = upstream[0], ctx.call
        if torch.is_grad_enabled():
            logits, labels = ctx.saved_tensors[:2]
            loss = reduced_formula(logits, labels.long(), call.weight, call.terms, call.ignore_index, call.reduction)
            (gradient,) = torch.autograd.grad(loss, logits, factor, create_graph=True)
            return gradient, None
        gradient = ctx.gradient
        ctx.gradient = None
        batched = is_batched(factor)
        if call.triton and not batched:
            if gradient is not None:
                return triton_engine.multiply_(gradient, factor), None
            return triton_engine.gradient(ctx.saved_tensors[0], factor, *call[:5]), None
        if gradient is None:
            gradient = _gradient(ctx.saved_tensors[0], call)
        if call.reduction == "none" or batched:
            gradient = gradient * (factor.unsqueeze(1) if call.reduction == "none" else factor)
        elif not call.native or factor.item() != 1.0:  # loss.backward() passes 1
            gradient.mul_(factor)
        # Half precision is rounded last: a loss scale comes as the factor, and would multiply zeros.
        return gradient if gradient.dtype is ctx.dtype else gradient.to(ctx.dtype), None


# What `Function.apply` does once functorch is known to be idle, without asking again: 2 us less.
_apply: Callable[[Tensor, _Call], Tensor] = super(torch.autograd.Function, _GradientWithLoss).apply


def _gradient(logits: Tensor, call: _Call) -> Tensor:
    """The gradient of the sum of what the call returned."""
    if call.triton:
        return triton_engine.gradient(logits, None, *call[:5])
    _, gradient = _compute(logits, call, True)
    assert gradient is not None
    return gradient


def _compute(logits: Tensor, call: _Call, gradient: bool) -> tuple[Tensor, Tensor | None]:
    labels, weight, terms, ignore_index, reduction, native, triton, bare, _ = call
    if triton:
        return triton_engine.loss(logits, labels, weight, terms, ignore_index, reduction, gradient)
    if native:
        try:
            if bare:
                focal, gamma, lam, _, _, smoothing, rival = terms[:7]
                loss, grad, bad = native_engine.fused_rows(
                    logits, labels, focal, gamma, lam, smoothing, rival, ignore_index, reduction, gradient
                )
            else:
                loss, grad, bad = native_engine.fused_loss(
                    logits, labels, weight, *terms[:7], ignore_index, reduction, gradient
                )
        except RuntimeError:  # tensors without memory to read; looking for them beforehand would cost every call
            dense("logits", logits)
            dense("target", labels)
            raise
        if bad >= 0:
            raise bad_label(int(labels.flatten()[bad]), bad, logits.shape[1], ignore_index)
        return loss, grad
    keep = kept_if_any(labels, logits.shape[1], ignore_index) if logits.is_cpu else kept(labels, ignore_index)
    return loss_and_gradient(logits, labels, weight, terms, keep, reduction, gradient)
