"""Which examples a run is trained and tested on, beyond its recipe."""

from __future__ import annotations

from dataclasses import dataclass

from focalcal.core.arrays import finite_at_least
from focalcal.core.json_dataclass import JsonDataclass
from focalcal.core.primitives import whole, yes_or_no


@dataclass(frozen=True, kw_only=True)
class Protocol(JsonDataclass):
    """By default all examples. What else a trained network is evaluated on is no part of it: see `Evaluations`.

    imbalance       largest over smallest class of the training split, made long-tailed; None leaves it as it is
    train_examples  train on so many examples, chosen by the data set's own order and a fixed seed; None: all
    test_examples   likewise of the validation split, the test split and each shift
    allow_partial   whether a data set of which files are missing will do
    evaluate_every  epochs between evaluations; the last epoch is always evaluated
    """

    imbalance: float | None = None
    train_examples: int | None = None
    test_examples: int | None = None
    allow_partial: bool = False
    evaluate_every: int = 1

    def __post_init__(self) -> None:
        """Canonical values."""
        if self.imbalance is not None:
            self._set(imbalance=finite_at_least("imbalance", self.imbalance, 1.0))
        for name in ("train_examples", "test_examples"):
            if getattr(self, name) is not None:
                self._set(**{name: whole(name, getattr(self, name), 1)})
        self._set(
            allow_partial=yes_or_no("allow_partial", self.allow_partial),
            evaluate_every=whole("evaluate_every", self.evaluate_every, 1),
        )


EVERYTHING = Protocol()
