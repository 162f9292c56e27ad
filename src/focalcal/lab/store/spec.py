"""What a run is: everything that decides its training, and the key that follows from it; and its evaluations.

Device, number of workers, threads and paths do not belong to it; they are in a run's provenance. Neither does what the
trained network is evaluated on besides its own splits.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any

from focalcal.core.checks import finite_at_least, text, whole, yes_or_no
from focalcal.core.json_dataclass import JsonDataclass
from focalcal.core.primitives import Options, options
from focalcal.lab.store.keys import SCHEMA, evaluation_names, stored_key
from focalcal.lab.store.layout import is_evaluation

if TYPE_CHECKING:
    from focalcal.predictions import Predictions

_LARGEST_SEED = 2**53 - 1  # the key writes numbers as floats


@dataclass(frozen=True, kw_only=True)
class Protocol(JsonDataclass):
    """Which examples a run is trained and tested on; by default all. What it is evaluated on besides: `Evaluations`.

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


@dataclass(frozen=True, kw_only=True)
class Spec(JsonDataclass):
    """One training run. `gamma=2` and `gamma=2.0` are the same one.

    data_set, model     by name
    objective           the loss, by name
    objective_options   all of its hyper-parameters, defaults included
    training            the recipe by value: what `Recipe.as_dict()` says, less the fields above
    protocol            which examples
    seed                of the initial weights, the order, the augmentation and the drop-out
    """

    OPTIONS = ("objective_options",)

    data_set: str
    model: str
    objective: str
    seed: int
    training: Mapping[str, Any]
    objective_options: Mapping[str, Any] | Options = ()
    protocol: Protocol = EVERYTHING

    def __post_init__(self) -> None:
        """Canonical values; nested mappings are kept as they are read from JSON."""
        for name in ("data_set", "model", "objective"):
            text(name, getattr(self, name))
        if not isinstance(self.training, Mapping):
            raise TypeError(f"training must be a mapping, got {type(self.training).__name__}; use Recipe.as_dict()")
        protocol = self.protocol
        self._set(
            seed=whole("seed", self.seed, 0),
            objective_options=options("objective_options", self.objective_options),
            protocol=protocol if isinstance(protocol, Protocol) else Protocol.from_dict(protocol),
            training=_plain("training", self.training),
        )
        if self.seed > _LARGEST_SEED:
            raise ValueError(f"seed must be at most 2**53 - 1, got {self.seed}; choose a smaller one")

    def as_dict(self) -> dict[str, Any]:
        """Every field as plain values; `json.loads(json.dumps(...))` gives the same back."""
        return {**super().as_dict(), "training": _plain("training", self.training)}  # a copy, to do with as one likes

    @cached_property
    def key(self) -> str:
        """32 hexadecimal digits of SHA-256 over the schema and the fields, sorted, with every number a float."""
        return stored_key(json.dumps({"schema": SCHEMA, **super().as_dict()}))

    @property
    def name(self) -> str:
        """A line to show a person: `digits/small_cnn fcl(gamma=3, lam=1) seed 0`."""
        shown = ", ".join(f"{name}={_short(value)}" for name, value in dict(self.objective_options).items())
        objective = f"{self.objective}({shown})" if shown else self.objective
        return f"{self.data_set}/{self.model} {objective} seed {self.seed}"

    def __hash__(self) -> int:
        """As equal specs have equal keys."""
        return hash(self.key)

    def __eq__(self, other: object) -> bool:
        """Whether it is the same run."""
        return isinstance(other, Spec) and self.key == other.key


@dataclass(frozen=True, kw_only=True)
class Evaluations(JsonDataclass):
    """What a trained network is evaluated on besides its own splits; by default nothing.

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


def _short(value: Any) -> str:
    return f"{value:g}" if isinstance(value, float) else str(value)


def _plain(name: str, value: Any) -> Any:
    """What JSON can express, with whole numbers as int, at every depth."""
    if value is None or isinstance(value, (str, bool)):
        return value
    if isinstance(value, (int, float)):
        if not math.isfinite(value) or float(value) != value:
            raise ValueError(f"{name} must be finite and a float without loss, got {value!r}; choose another value")
        return int(value) if float(value).is_integer() else float(value)
    if isinstance(value, (dict, Mapping)):
        if strange := [key for key in value if not isinstance(key, str)]:
            raise TypeError(f"{name} must have names as keys, got {strange[0]!r}; make it a string")
        return {key: _plain(f"{name}[{key!r}]", inner) for key, inner in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(f"{name}[{at}]", inner) for at, inner in enumerate(value)]
    raise TypeError(
        f"{name} must be what JSON can say, got {value!r} of type {type(value).__name__}; use plain Python values"
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
