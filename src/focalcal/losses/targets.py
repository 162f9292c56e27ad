"""Targets that a loss cannot take."""

from __future__ import annotations

from torch import Tensor


def refuse_ignored_class(ignore_index: int | None) -> None:
    """Class probabilities have no label that could be the ignored one; a negative index ignores none."""
    if ignore_index is not None and ignore_index >= 0:
        raise ValueError(
            f"ignore_index = {ignore_index} has no meaning for class probabilities; leave it at its default and "
            "give the examples to ignore a target of zeros"
        )


def refuse_probabilities(name: str, target: Tensor) -> None:
    """Class probabilities mean an expectation over labels, which some objectives do not have."""
    if isinstance(target, Tensor) and target.is_floating_point():
        raise TypeError(
            f"target of {name} must hold class indices: the loss depends on which class is the true one in a way "
            f"that has no expectation over class probabilities, got {target.dtype} of shape {tuple(target.shape)}; "
            "pass integer labels, or use FocalCalibrationLoss, FocalLoss, BrierLoss or CrossEntropyLoss"
        )
