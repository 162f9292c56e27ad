"""MMCE: cross-entropy plus a kernel measure of the batch's calibration."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any, Literal, Unpack, get_args

import torch
from torch import Tensor

from focalcal.core.checks import label_to_ignore, one_of
from focalcal.losses.checks import REDUCTIONS, finite_at_least, holds_probabilities
from focalcal.losses.engines import focal_family
from focalcal.losses.formula import Terms
from focalcal.losses.module import ClassificationLoss, CommonOptions
from focalcal.losses.numerics import at_least_float32
from focalcal.losses.reduction import kept, kept_if_any, without_ignored
from focalcal.losses.settings import Setting, choice, not_negative
from focalcal.losses.targets import refuse_probabilities
from focalcal.losses.torch_state import traced

if TYPE_CHECKING:
    from jaxtyping import Float

Variant = Literal["as_coded", "formula", "unweighted"]
_check_variant = choice(*get_args(Variant))
_check_width = partial(finite_at_least, lowest=0.005)


def mmce(
    logits: Tensor,
    labels: Tensor,
    *,
    variant: Variant = "as_coded",
    width: float = 0.4,
    ignore_index: int | None = None,
) -> Tensor:
    """The calibration measure of a batch: a scalar, not a value per example.

    With c the confidence, a = 1 for a right prediction (no gradient), m right and n wrong examples, and k_ij =
    exp(-|c_i - c_j| / width), the quadratic form Q(x) = sum_ij x_i x_j k_ij gives unweighted Q((a - c) / N) formula
    sqrt Q(x), x_i = (1 - c_i) / m for right and -c_i / n for wrong predictions as_coded sqrt of the three parts of that
    form, each divided once more by m^2, n^2 or m n (+ 1e-5), and 0 unless both kinds are present: what the published
    implementations train Kumar et al. (2018), "Trainable calibration measures for neural networks from kernel mean
    embeddings". Takes O(N log N): the kernel is Laplacian in one dimension.

    Args:
        logits: (N, K) or (N, K, d1, ...).
        labels: class indices, (N, d1, ...).
        variant: "as_coded", "formula" or "unweighted".
        width: of the kernel, at least 0.005.
        ignore_index: examples with this label are left out.

    Returns:
        One number.

    >>> import torch
    >>> mmce(torch.tensor([[1.0, 0.0], [0.0, 0.5]]), torch.tensor([0, 0]), variant="formula")
    tensor(0.4523)
    """
    refuse_probabilities("MMCE", labels)
    holds_probabilities(logits, labels, None)
    _check_variant("variant", variant)
    _check_width("width", width)
    label_to_ignore(ignore_index)
    labels = labels.long()
    if logits.dim() == 1:
        logits, labels = logits.unsqueeze(0), labels.unsqueeze(0)
    eager = logits.is_cpu and not traced()
    keep = kept_if_any(labels, logits.shape[1], ignore_index) if eager else kept(labels, ignore_index)
    logits, labels = without_ignored(logits, labels, keep)
    call = (labels, keep, variant, width)
    if eager and logits.requires_grad and torch.is_grad_enabled():
        value: Tensor = _GradientWithMeasure.apply(logits, call)  # type: ignore[no-untyped-call]
        return value
    return _measure(logits, *call)


def _measure(logits: Tensor, labels: Tensor, keep: Tensor | None, variant: Variant, width: float) -> Tensor:
    """The measure as operations that autograd differentiates."""
    top, predicted = torch.softmax(at_least_float32(logits), 1).max(1)
    order = top.detach().flatten().argsort()
    confidence = top.flatten()[order].double()
    right = (predicted == labels).flatten()[order].double()
    shares, weight = _shares(right, None if keep is None else keep.flatten()[order].double(), variant)
    values = shares * (right - confidence)
    lower, upper = _half_products(values, confidence, width)
    return _from_gram((lower + upper) @ values.T, weight, variant).to(top.dtype)


def _shares(
    right: Float[Tensor, " n"], counts: Float[Tensor, " n"] | None, variant: Variant
) -> tuple[Float[Tensor, "g n"], Float[Tensor, "g g"]]:
    """The factors that make vectors V of the residuals a - c, and the weights of V K V' in the measure."""
    counts = torch.ones_like(right) if counts is None else counts
    if variant == "unweighted":
        return (counts / counts.sum().clamp(min=1)).unsqueeze(0), torch.ones_like(right[:1, None])
    kinds = torch.stack([right * counts, (1 - right) * counts])
    size = kinds.sum(1, keepdim=True)
    each = kinds / size.clamp(min=1)
    if variant == "formula":
        return each.sum(0, keepdim=True), torch.ones_like(size[:1])
    return each, (size > 0).all() / (size * size.T + 1e-5)


def _half_products(values: Tensor, confidence: Tensor, width: float) -> tuple[Tensor, Tensor]:
    """V times the lower triangle of K (diagonal included) and times the upper one, confidences sorted.

    K_ij = exp(-c_i / width) exp(c_j / width) for j <= i, so that a triangle is a cumulative sum: O(N). In
    float64, and centred, so that both factors stay within exp(+-1 / (2 width)).
    """
    rising = ((confidence - 0.5) / width).exp()
    falling = rising.reciprocal()
    lower = (values * rising).cumsum(1) * falling
    weighted = values * falling
    upper = (weighted.flip(1).cumsum(1).flip(1) - weighted) * rising  # from the far end: a total minus a sum cancels
    return lower, upper


def _from_gram(gram: Tensor, weight: Tensor, variant: Variant) -> Tensor:
    total = (gram * weight).sum()
    if variant == "unweighted":
        return total
    # A finite slope at a perfectly calibrated batch; exactly 0 where a kind that is needed is absent.
    return (total.clamp(min=0) + 1e-10).sqrt() * (weight > 0).all()


class _GradientWithMeasure(torch.autograd.Function):
    """The measure with its gradient, a third of the time that autograd takes over forty small operations."""

    @staticmethod
    def forward(ctx: Any, logits: Tensor, call: tuple[Any, ...]) -> Tensor:
        labels, keep, variant, width = call
        probs = torch.softmax(at_least_float32(logits), 1)
        top, predicted = probs.max(1)
        confidence, order = top.flatten().double().sort()
        right = (predicted == labels).flatten()[order].double()
        shares, weight = _shares(right, None if keep is None else keep.flatten()[order].double(), variant)
        values = shares * (right - confidence)
        lower, upper = _half_products(values, confidence, width)
        product = lower + upper
        gram = product @ values.T
        value = _from_gram(gram, weight, variant)
        slope = weight  # d value / d gram
        if variant != "unweighted":
            slope = weight * ((gram * weight).sum() >= 0) / (2 * value.clamp(min=1e-5))
        by_value = shares * (slope @ product)
        # |c_i - c_j| has slope 0 between equal confidences: count from the first and the last of each run of them.
        # (NaN, sorted last, is found past the end.)
        first = torch.searchsorted(confidence, confidence).clamp_(max=len(confidence) - 1)
        last = torch.searchsorted(confidence, confidence, right=True) - 1
        by_kernel = values * (slope @ ((lower - values)[:, first] - upper[:, last]))
        by_confidence = (by_value + by_kernel / width).sum(0) * -2
        pull = torch.empty_like(by_confidence).scatter_(0, order, by_confidence).view_as(top).to(top.dtype) * top
        # d c / d z_k = c (1[k is the prediction] - p_k)
        gradient = probs.mul_(-pull.unsqueeze(1)).scatter_add_(1, predicted.unsqueeze(1), pull.unsqueeze(1))
        ctx.save_for_backward(logits, labels, gradient)
        ctx.call = call
        return value.to(top.dtype)

    @staticmethod
    def backward(ctx: Any, *upstream: Tensor) -> tuple[Tensor, None]:
        if torch.is_grad_enabled():
            logits, labels, _ = ctx.saved_tensors
            value = _measure(logits, labels, *ctx.call[1:])
            return torch.autograd.grad(value, logits, upstream[0], create_graph=True)[0], None
        logits, _, gradient = ctx.saved_tensors
        return (gradient * upstream[0]).to(logits.dtype), None


def _check_reduction(name: str, value: str) -> str:
    one_of(name, value, REDUCTIONS)
    if value == "none":
        raise ValueError(
            f"{name} of MMCE must be 'mean' or 'sum': the measure belongs to the batch, not to an example, "
            "got 'none'; use CrossEntropyLoss(reduction='none') and focalcal.losses.functional.mmce"
        )
    return value


class MMCELoss(ClassificationLoss):
    """Cross-entropy plus lam times the MMCE of the batch. Class indices only; refuses reduction="none".

    `weight` applies to the cross-entropy. reduction="sum" multiplies the measure, which has no sum of its own,
    by the number of examples, so that it keeps its share.

    Args:
        lam: the weight of the measure, >= 0.
        variant: "as_coded", "formula" or "unweighted", see `mmce`.
        width: of its kernel, at least 0.005.
        weight, ignore_index, reduction: as in `nn.CrossEntropyLoss`, but for reduction="none".

    >>> import torch
    >>> MMCELoss(lam=2)(torch.tensor([[1.0, 0.0], [0.0, 0.5]]), torch.tensor([0, 0]))
    tensor(1.5483)
    """

    lam = Setting[float](not_negative)
    variant = Setting[Variant](_check_variant)
    width = Setting[float](_check_width)
    reduction = Setting[str](_check_reduction, default="mean")

    def __init__(
        self, lam: float = 2.0, variant: Variant = "as_coded", width: float = 0.4, **common: Unpack[CommonOptions]
    ) -> None:
        super().__init__(lam=lam, variant=variant, width=width, **common)

    def forward(self, logits: Tensor, target: Tensor) -> Tensor:
        """The reduced loss."""
        refuse_probabilities("MMCE", target)
        entropy = focal_family(logits, target, Terms(), self.weight, self.ignore_index, self.reduction)
        measure = mmce(logits, target, variant=self.variant, width=self.width, ignore_index=self.ignore_index)
        if self.reduction == "sum":
            measure = measure * (target.long() != self.ignore_index).sum()
        whole: Tensor = entropy + self.lam * measure
        return whole
