"""What a trained network is evaluated on besides its own splits. None of it is part of a run's key."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from focalcal.core.json_dataclass import JsonDataclass
from focalcal.core.primitives import text, whole, yes_or_no
from focalcal.results.keys import evaluation_names
from focalcal.results.layout import is_evaluation

if TYPE_CHECKING:
    from focalcal.predictions import Predictions


@dataclass(frozen=True, kw_only=True)
class Evaluations(JsonDataclass):
    """By default nothing.

    shifts        data sets that test predictions are made on as well: "svhn", "cifar10c"
    severities    of corrupted sets
    saliency      Grad-CAM maps of so many test images
    keep_weights  store the final weights of what is trained, for evaluations that are asked for later
    """

    shifts: tuple[str, ...] = ()
    severities: tuple[int, ...] = (5,)
    saliency: int = 0
    keep_weights: bool = False

    def __post_init__(self) -> None:
        """Canonical values."""
        self._set(
            shifts=tuple(sorted({text("shifts", shift) for shift in _items("shifts", self.shifts)})),
            severities=tuple(sorted({_severity(value) for value in _items("severities", self.severities)})),
            saliency=whole("saliency", self.saliency, 0),
            keep_weights=yes_or_no("keep_weights", self.keep_weights),
        )
        if not self.severities:
            raise ValueError("severities must hold at least one of 1 to 5, got none; leave them out for 5")

    @property
    def names(self) -> tuple[str, ...]:
        """One for each evaluation: `cifar10c-5`, `svhn`, `saliency-8`."""
        return evaluation_names(self.shifts, self.severities, self.saliency)

    def apart(self) -> dict[str, Evaluations]:
        """Each of them alone, by its name."""
        shifted = [
            Evaluations(shifts=(shift,), severities=(severity,))
            for shift in self.shifts
            for severity in self.severities
        ]
        drawn = [Evaluations(saliency=self.saliency)] if self.saliency else []
        return {name: evaluation for evaluation in (*shifted, *drawn) for name in evaluation.names}

    def missing_from(self, there: Iterable[str]) -> tuple[str, ...]:
        """The names that are not `there`. Maps of more images than were asked for will do."""
        known = set(there)
        counts = [name.removeprefix("saliency-") for name in known if name.startswith("saliency-")]
        if self.saliency <= max((int(count) for count in counts if count.isdecimal()), default=0):
            known.add(f"saliency-{self.saliency}")
        return tuple(name for name in self.names if name not in known)


@dataclass(frozen=True, eq=False)
class Evaluation:
    """What came out of evaluating a trained network on more than its own splits.

    name         that of its folder: letters, digits, ".", "_" and "-"
    record       {"metrics": {split: {metric: number}}, "provenance": {...}, "seconds": number}
    predictions  of splits that the run does not have
    files        others to keep, by the name they get
    """

    name: str
    record: Mapping[str, Any]
    predictions: Iterable[Predictions] = ()
    files: Mapping[str, bytes] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """Refuse what cannot be a folder's name."""
        if not is_evaluation(self.name):
            raise ValueError(
                "an evaluation's name must be at most 100 letters, digits, '.', '_' and '-', and not begin with '.' or "
                f"'-', got {self.name!r}; choose another"
            )


def _items(name: str, values: Any) -> tuple[Any, ...]:
    if isinstance(values, str) or not hasattr(values, "__iter__"):
        raise TypeError(f"{name} must be a list, got {values!r}; put it into one")
    return tuple(values)


def _severity(value: Any) -> int:
    number = whole("severities", value, 1)
    if number > 5:
        raise ValueError(f"severities must be from 1 to 5, got {value!r}")
    return number


NOTHING_MORE = Evaluations()
