"""Calibrators that map each class's probability by itself and then divide by the sum."""

from __future__ import annotations

from abc import abstractmethod
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from focalcal.core.numerics import log_probs_and_complements
from focalcal.posthoc.calibrator import Calibrator

if TYPE_CHECKING:
    from jaxtyping import Float, Int

_CERTAIN = -1e3  # as certain as can be


class OneVsRestCalibrator(Calibrator):
    """K binary maps, class k against the rest, normalised (Zadrozny and Elkan, 2002).

    A row in which every class is mapped to 0 keeps its softmax: nothing else is known about it.
    """

    @abstractmethod
    def _class_probs(self, logits: Float[Tensor, "n k"], **tensors: Tensor) -> Float[Tensor, "n k"]:
        """Each class's own calibrated probability, before normalisation."""

    def _map(self, logits: Float[Tensor, "n k"], **tensors: Tensor) -> Float[Tensor, "n k"]:
        each = self._class_probs(logits, **tensors)
        largest = each.amax(1, keepdim=True)
        relative = each / largest.where(largest > 0, 1.0)  # before the sum, which may be too small to divide by
        return torch.where(largest > 0, relative / relative.sum(1, keepdim=True), logits.softmax(1))


def bounded_logs(logits: Float[Tensor, "n k"]) -> tuple[Float[Tensor, "n k"], Float[Tensor, "n k"]]:
    """log p_k and log(1 - p_k), none below -1000: a row of enormous logits does not outweigh all others in a fit."""
    log_p, log_not_p = log_probs_and_complements(logits)
    return log_p.clamp(min=_CERTAIN), log_not_p.clamp(min=_CERTAIN)


def below(points: Float[Tensor, "k m"], values: Float[Tensor, "n k"]) -> Int[Tensor, "k n"]:
    """How many of a class's rising points lie below each of its values."""
    columns = values.T.contiguous()
    if torch.compiler.is_exporting():  # ONNX has no binary search
        return (columns.unsqueeze(2) > points.unsqueeze(1)).sum(2)
    return torch.searchsorted(points.contiguous(), columns)


def interpolated(
    points: Float[Tensor, "k m"], heights: Float[Tensor, "k m"], values: Float[Tensor, "n k"]
) -> Float[Tensor, "n k"]:
    """Each column's piecewise linear function through its rising points, constant beyond them."""
    above = below(points, values)
    left, right = (above - 1).clamp(min=0), above.clamp(max=points.shape[1] - 1)
    start = points.gather(1, left)
    width = points.gather(1, right) - start
    part = torch.where(width > 0, (values.T - start) / torch.where(width > 0, width, 1.0), 0.0)
    return torch.lerp(heights.gather(1, left), heights.gather(1, right), part).T
