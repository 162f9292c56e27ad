"""Label smoothing: cross-entropy with softened targets."""

from __future__ import annotations

from typing import Literal, get_args

import torch
import torch.nn.functional as F
from torch import Tensor

from focalcal.core.arrays import class_axis, holds_probabilities, labels_in_range
from focalcal.core.numerics import at_least_float32
from focalcal.losses.engines import Engine, focal_family, natively, traced
from focalcal.losses.formula import Terms
from focalcal.losses.module import FocalFamilyLoss
from focalcal.losses.settings import Setting, choice, not_negative
from focalcal.losses.targets import check_class_probabilities

Spread = Literal["others", "all"]


def label_smoothing(logits: Tensor, target: Tensor, *, epsilon: float = 0.05, spread: Spread = "others") -> Tensor:
    """-sum_k s_k log p_k of each example, with the true class's share lowered by `epsilon`.

    spread="others": s_y = 1 - epsilon and epsilon / (K - 1) on each other class, the form of the calibration
    literature. spread="all": epsilon / K on every class, the label's own included, as torch has it.
    logits (N, K, d1, ...), target indices or probabilities. Szegedy et al. (2016).
    """
    epsilon, spread = _check_epsilon("epsilon", epsilon), _check_spread("spread", spread)
    return _smoothed(logits, target, epsilon, spread, None, None, "none")


def _smoothed(
    logits: Tensor,
    target: Tensor,
    epsilon: float,
    spread: Spread,
    weight: Tensor | None,
    ignore_index: int | None,
    reduction: str,
    engine: Engine = "auto",
) -> Tensor:
    """The kernel where it can serve, else `F.cross_entropy`: "others" is "all" with epsilon K / (K - 1)."""
    soft = holds_probabilities(logits, target, weight)
    classes = logits.shape[class_axis(logits)]
    if spread == "others" and epsilon > 0:
        if epsilon * classes > classes - 1:
            raise ValueError(
                f"epsilon must be at most (K - 1) / K = {(classes - 1) / classes:g} for K = {classes} classes with "
                f"spread='others', got {epsilon!r}; choose a smaller one, or spread='all'"
            )
        epsilon = epsilon * classes / (classes - 1)
    tracing = traced()
    chosen = engine in ("native", "formula") or (engine == "auto" and not tracing and natively(logits))
    if chosen and not soft and weight is None:
        terms = Terms(focal=1 - epsilon + epsilon / classes, smoothing=epsilon / classes)
        return focal_family(logits, target, terms, None, ignore_index, reduction, engine)
    logits = at_least_float32(logits)
    if soft:
        check_class_probabilities(target, ignore_index, readable=logits.is_cpu and not tracing)
        target = target.to(logits.dtype)
    else:
        target = target.long()
        if logits.is_cpu and not tracing:
            labels_in_range(target, classes, ignore_index)
        if ignore_index is not None and logits.dim() > 1:
            logits = torch.where((target != ignore_index).unsqueeze(1), logits, 0.0)
    return F.cross_entropy(
        logits,
        target,
        None if weight is None else weight.to(logits),
        ignore_index=-100 if ignore_index is None else ignore_index,
        reduction=reduction,
        label_smoothing=epsilon,
    )


_check_spread = choice(*get_args(Spread))


def _check_epsilon(name: str, epsilon: float) -> float:
    number = not_negative(name, epsilon)
    if number >= 1.0:
        raise ValueError(f"{name} must be below 1, got {epsilon!r}; 0.05 is usual")
    return number


class LabelSmoothingLoss(FocalFamilyLoss):
    """Cross-entropy with a share `epsilon` of each label spread over the other classes (or over all).

    `weight` belongs to the classes of the softened target, as in torch: sum_k s_k w_k -log p_k. The kernel serves
    class indices without a weight; torch's own `F.cross_entropy` the rest.
    """

    epsilon = Setting[float](_check_epsilon)
    spread = Setting[Spread](_check_spread)

    def __init__(
        self,
        epsilon: float = 0.05,
        spread: Spread = "others",
        *,
        weight: Tensor | None = None,
        ignore_index: int = -100,
        reduction: str = "mean",
    ) -> None:
        super().__init__(weight=weight, ignore_index=ignore_index, reduction=reduction, epsilon=epsilon, spread=spread)

    def forward(self, logits: Tensor, target: Tensor) -> Tensor:
        """The reduced loss."""
        return _smoothed(
            logits,
            target,
            self.epsilon,
            self.spread,
            self.weight,
            self.ignore_index,
            self.reduction,
            self.engine,
        )
