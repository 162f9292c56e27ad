"""Targets that a loss cannot take."""

from __future__ import annotations

from torch import Tensor

from focalcal.core.checks import ROUNDING, off_simplex, sum_tolerance
from focalcal.losses.checks import class_axis
from focalcal.losses.numerics import at_least_float32


def check_class_probabilities(target: Tensor, ignore_index: int | None, *, readable: bool) -> None:
    """Refuse an `ignore_index` that is a class, and rows (N, K, d1, ...) or (K,) that are no distributions.

    A row of zeros is an example to ignore, as in `F.cross_entropy`; NaN propagates. The rows are not looked at unless
    `readable`: reading would wait for a GPU, and where the call is traced there is nothing to read.
    """
    if ignore_index is not None and ignore_index >= 0:
        raise ValueError(
            f"ignore_index = {ignore_index} has no meaning for class probabilities; leave it at its default and "
            "give the examples to ignore a target of zeros"
        )
    if not readable or target.numel() == 0:
        return
    axis = class_axis(target)
    rows = at_least_float32(target.detach())
    total, least = rows.sum(axis), rows.amin(axis)
    wrong = off_simplex(least, total, sum_tolerance(target)) & ~total.isnan()
    if target.dim() > 1:
        wrong &= (rows != 0).any(axis)
    if bool(wrong.any()):
        raise _no_distribution(target, total, least, wrong)


def _no_distribution(target: Tensor, total: Tensor, least: Tensor, wrong: Tensor) -> ValueError:
    at = tuple(wrong.nonzero()[0].tolist())
    received = f"{float(least[at]):g}" if float(least[at]) < -ROUNDING else f"a sum of {float(total[at]):g}"
    where, remedy = f" in row {at[0]}" if len(at) == 1 else f" at position {at}", "divide each row by its sum"
    if target.dim() == 1:
        count = len(target)
        where = f"; logits of shape ({count},) are one example with {count} classes"
        remedy = f"for {count} examples pass logits of shape ({count}, K)"
    return ValueError(
        "target must hold class probabilities, >= 0 and summing to 1 within "
        f"{sum_tolerance(target):.2g} over the classes, got {received}{where}; {remedy}, pass integer class "
        "indices, or use the Multilabel losses if an example has several labels"
    )


def refuse_probabilities(name: str, target: Tensor) -> None:
    """Class probabilities mean an expectation over labels, which some objectives do not have."""
    if isinstance(target, Tensor) and target.is_floating_point():
        raise TypeError(
            f"target of {name} must hold class indices: the loss depends on which class is the true one in a way "
            f"that has no expectation over class probabilities, got {target.dtype}; "
            "pass integer labels, or use FocalCalibrationLoss, FocalLoss, BrierLoss or CrossEntropyLoss"
        )
