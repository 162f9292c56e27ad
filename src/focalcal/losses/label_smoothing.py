"""Label smoothing: cross-entropy with softened targets."""

from __future__ import annotations

from typing import Literal, Unpack, get_args

from torch import Tensor

from focalcal.losses.checks import class_count
from focalcal.losses.engines import focal_family
from focalcal.losses.formula import Terms
from focalcal.losses.module import CommonOptions, FocalFamilyLoss
from focalcal.losses.settings import Setting, choice, not_negative

Spread = Literal["others", "all"]
_check_spread = choice(*get_args(Spread))


def _check_epsilon(name: str, epsilon: float) -> float:
    number = not_negative(name, epsilon)
    if number >= 1.0:
        raise ValueError(f"{name} must be below 1, got {epsilon!r}; 0.05 is usual")
    return number


def label_smoothing(logits: Tensor, target: Tensor, *, epsilon: float = 0.05, spread: Spread = "others") -> Tensor:
    """-sum_k s_k log p_k of each example, with the true class's share lowered by `epsilon`.

    spread="others": s_y = 1 - epsilon and epsilon / (K - 1) on each other class, the form of the calibration
    literature. spread="all": epsilon / K on every class, the label's own included, as torch has it. Szegedy et al.
    (2016).

    Args:
        logits: (N, K) or (N, K, d1, ...).
        target: class indices (N, d1, ...) or probabilities of the shape of the logits.
        epsilon: the share that is spread, in [0, 1).
        spread: over the "others", or over "all".

    Returns:
        One value per example, (N, d1, ...).

    >>> import torch
    >>> label_smoothing(torch.tensor([[1.0, 0.0, 0.0]]), torch.tensor([0]))
    tensor([0.6014])
    """
    terms = _terms(logits, _check_epsilon("epsilon", epsilon), _check_spread("spread", spread))
    return focal_family(logits, target, terms, reduction="none")


def _terms(logits: Tensor, epsilon: float, spread: Spread) -> Terms:
    """ "others" is "all" with epsilon K / (K - 1)."""
    if spread == "others" and epsilon > 0:
        classes = class_count(logits)
        if epsilon * classes > classes - 1:
            raise ValueError(
                f"epsilon must be at most (K - 1) / K = {(classes - 1) / classes:g} for K = {classes} classes with "
                f"spread='others', got {epsilon!r}; choose a smaller one, or spread='all'"
            )
        epsilon = epsilon * classes / (classes - 1)
    return Terms(label_smoothing=epsilon)


class LabelSmoothingLoss(FocalFamilyLoss):
    """Cross-entropy with a share `epsilon` of each label spread over the other classes (or over all).

    `weight` belongs to the classes of the softened target, as in torch: sum_k s_k w_k -log p_k. The kernel serves
    class indices without a weight; torch's own `F.cross_entropy` the rest.

    Args:
        epsilon: the share that is spread, in [0, 1).
        spread: over the "others", or over "all", as torch has it.
        weight, ignore_index, reduction: as in `nn.CrossEntropyLoss`.

    >>> import torch
    >>> LabelSmoothingLoss(0.05)(torch.tensor([[1.0, 0.0, 0.0]]), torch.tensor([0]))
    tensor(0.6014)
    """

    epsilon = Setting[float](_check_epsilon)
    spread = Setting[Spread](_check_spread)

    def __init__(self, epsilon: float = 0.05, spread: Spread = "others", **common: Unpack[CommonOptions]) -> None:
        super().__init__(epsilon=epsilon, spread=spread, **common)

    def forward(self, logits: Tensor, target: Tensor) -> Tensor:
        """The reduced loss."""
        terms = _terms(logits, self.epsilon, self.spread)
        weight = self._buffers["weight"]
        return focal_family(logits, target, terms, weight, self.ignore_index, self.reduction, self.engine)
