"""Targets that a loss cannot take."""

from __future__ import annotations

from torch import Tensor


def refuse_probabilities(name: str, target: Tensor) -> None:
    """Class probabilities mean an expectation over labels, which some objectives do not have."""
    if isinstance(target, Tensor) and target.is_floating_point():
        raise TypeError(
            f"target of {name} must hold class indices: the loss depends on which class is the true one in a way "
            f"that has no expectation over class probabilities, got {target.dtype} of shape {tuple(target.shape)}; "
            "pass integer labels, or use FocalCalibrationLoss, FocalLoss, BrierLoss or CrossEntropyLoss"
        )
