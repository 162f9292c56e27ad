"""Which examples a run is trained and evaluated on, and what is kept of it, beyond its recipe."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from focalcal.core.arrays import finite_at_least
from focalcal.core.plain import Plain
from focalcal.core.primitives import text, whole, yes_or_no


@dataclass(frozen=True, kw_only=True)
class Protocol(Plain):
    """Defaults: all examples, no shift, predictions kept and weights not.

    imbalance       largest over smallest class of the training split, made long-tailed; None leaves it as it is
    train_examples  train on so many examples, chosen by the data set's own order and a fixed seed; None: all
    test_examples   likewise of the validation split, the test split and each shift
    shifts          data sets that the test predictions are made on as well: "svhn", "cifar10c"
    severities      of corrupted sets
    allow_partial   whether a data set of which files are missing will do
    evaluate_every  epochs between evaluations; the last epoch is always evaluated
    keep_weights    store the final weights
    saliency        store Grad-CAM maps of so many test images
    """

    imbalance: float | None = None
    train_examples: int | None = None
    test_examples: int | None = None
    shifts: tuple[str, ...] = ()
    severities: tuple[int, ...] = (5,)
    allow_partial: bool = False
    evaluate_every: int = 1
    keep_weights: bool = False
    saliency: int = 0

    def __post_init__(self) -> None:
        """Canonical values."""
        if self.imbalance is not None:
            self._set(imbalance=finite_at_least("imbalance", self.imbalance, 1.0))
        for name in ("train_examples", "test_examples"):
            if getattr(self, name) is not None:
                self._set(**{name: whole(name, getattr(self, name), 1)})
        self._set(
            shifts=tuple(sorted({text("shifts", one) for one in _several("shifts", self.shifts)})),
            severities=tuple(sorted({_severity(one) for one in _several("severities", self.severities)})),
            allow_partial=yes_or_no("allow_partial", self.allow_partial),
            evaluate_every=whole("evaluate_every", self.evaluate_every, 1),
            keep_weights=yes_or_no("keep_weights", self.keep_weights),
            saliency=whole("saliency", self.saliency, 0),
        )


def _several(name: str, values: Any) -> tuple[Any, ...]:
    if isinstance(values, str) or not hasattr(values, "__iter__"):
        raise TypeError(f"{name} must be a list, got {values!r}; put it into one")
    return tuple(values)


def _severity(value: Any) -> int:
    number = whole("severities", value, 1)
    if number > 5:
        raise ValueError(f"severities must be from 1 to 5, got {value!r}")
    return number


EVERYTHING = Protocol()
