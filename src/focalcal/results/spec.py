"""What a run is: everything that decides its training, and the key that follows from it.

Device, number of workers, threads and paths do not belong to it; they are in a run's provenance. Neither does what the
trained network is evaluated on besides: see `results/evaluations.py`.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from focalcal.core.arrays import finite_at_least
from focalcal.core.json_dataclass import JsonDataclass
from focalcal.core.primitives import Options, as_json, options, text, whole, yes_or_no
from focalcal.results.keys import SCHEMA, stored_key

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
        return {**self._fields(), "training": _plain("training", self.training)}  # a copy, to do with as one likes

    def _fields(self) -> dict[str, Any]:
        """`as_dict`, with the training as it is kept here."""
        return {**super().as_dict(), "objective_options": {name: as_json(value) for name, value in self._options}}

    @property
    def _options(self) -> Options:
        return tuple(dict(self.objective_options).items())

    @cached_property
    def key(self) -> str:
        """32 hexadecimal digits of SHA-256 over the schema and the fields, sorted, with every number a float."""
        return stored_key(json.dumps({"schema": SCHEMA, **self._fields()}))

    @property
    def name(self) -> str:
        """A line to show a person: `digits/small_cnn fcl(gamma=3, lam=1) seed 0`."""
        shown = ", ".join(f"{name}={_short(value)}" for name, value in self._options)
        objective = f"{self.objective}({shown})" if shown else self.objective
        return f"{self.data_set}/{self.model} {objective} seed {self.seed}"

    def __hash__(self) -> int:
        """As equal specs have equal keys."""
        return hash(self.key)

    def __eq__(self, other: object) -> bool:
        """Whether it is the same run."""
        return isinstance(other, Spec) and self.key == other.key


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
