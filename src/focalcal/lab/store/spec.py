"""What a run is: everything that decides its training, and the key that follows from it; and its evaluations.

Device, number of workers, threads and paths do not belong to it; they are in a run's provenance. Neither does what the
trained network is evaluated on besides its own splits.

`training` is the recipe as plain values, so that a stored run can be read when a network or a data set that it names is
not installed any more.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Annotated, Any

from pydantic import AfterValidator, Field

from focalcal.core.schema import Count, Described, Name, NoneOrMore, Number, Options, Plain, Seed, Whole, YesNo, frozen
from focalcal.lab.store.keys import spec_key
from focalcal.lab.store.layout import is_evaluation

if TYPE_CHECKING:
    from focalcal.predictions import Predictions


@frozen
class Protocol(Described):
    """Which examples a run is trained and tested on; by default all. What it is evaluated on besides: `Evaluations`.

    Args:
        imbalance: largest over smallest class of the training split, made long-tailed; None leaves it as it is.
        train_examples: train on so many examples, chosen by the data set's own order and a fixed seed; None: all.
        test_examples: likewise of the validation split, the test split and each shift.
        allow_partial: whether a data set of which files are missing will do.
        evaluate_every: epochs between evaluations; the last epoch is always evaluated.

    >>> Protocol(train_examples=500, evaluate_every=2).train_examples
    500
    """

    imbalance: Annotated[Number, Field(ge=1)] | None = None
    train_examples: Count | None = None
    test_examples: Count | None = None
    allow_partial: YesNo = False
    evaluate_every: Count = 1


EVERYTHING = Protocol()


@frozen
class Spec(Described):
    """One training run. `gamma=2` and `gamma=2.0` are the same one.

    Args:
        data_set, model: by name.
        objective: the loss, by name.
        objective_options: all of its hyper-parameters, defaults included.
        training: the recipe by value: what `Recipe.as_dict()` says, less the fields above.
        protocol: which examples.
        seed: of the initial weights, the order, the augmentation and the drop-out.

    >>> training = {"epochs": 10, "batch_size": 64}
    >>> spec = Spec(data_set="digits", model="mlp", objective="focal", objective_options={"gamma": 2}, seed=0,
    ...             training=training)
    >>> spec.name
    'digits/mlp focal(gamma=2) seed 0'
    """

    data_set: Name
    model: Name
    objective: Name
    seed: Seed
    training: Plain
    objective_options: Options = ()
    protocol: Protocol = EVERYTHING

    @cached_property
    def key(self) -> str:
        """32 hexadecimal digits of SHA-256 over the schema and the fields, sorted, with every number a float."""
        return spec_key(self.as_dict())

    @property
    def name(self) -> str:
        """A line to show a person: `digits/small_cnn fcl(gamma=3, lam=1) seed 0`."""
        shown = ", ".join(
            f"{name}={value:g}" if isinstance(value, float) else f"{name}={value}"
            for name, value in self.objective_options
        )
        objective = f"{self.objective}({shown})" if shown else self.objective
        return f"{self.data_set}/{self.model} {objective} seed {self.seed}"

    def __hash__(self) -> int:
        """As equal specs have equal keys."""
        return hash(self.key)

    def __eq__(self, other: object) -> bool:
        """Whether it is the same run."""
        return isinstance(other, Spec) and self.key == other.key


@frozen
class Evaluations(Described):
    """What a trained network is evaluated on besides its own splits; by default nothing.

    Args:
        shifts: data sets that test predictions are made on as well: "svhn", "cifar10c".
        severities: of corrupted sets.
        saliency: Grad-CAM maps of so many test images.
        keep_weights: store the final weights of what is trained, for evaluations that are asked for later; None: if
            they take no more than 50 MB.

    >>> Evaluations(shifts=("svhn", "cifar10c"), saliency=8).names
    ('cifar10c-5', 'svhn', 'saliency-8')
    """

    shifts: Annotated[tuple[Name, ...], AfterValidator(lambda names: tuple(sorted(set(names))))] = ()
    severities: Annotated[
        tuple[Annotated[Whole, Field(ge=1, le=5)], ...], AfterValidator(lambda numbers: tuple(sorted(set(numbers))))
    ] = (5,)
    saliency: NoneOrMore = 0
    keep_weights: YesNo | None = None

    def __post_init__(self) -> None:
        """A corrupted set has at least one severity."""
        if not self.severities:
            raise ValueError("severities must hold at least one of 1 to 5, got none; leave them out for 5")

    @property
    def names(self) -> tuple[str, ...]:
        """One for each evaluation: `cifar10c-5`, `svhn`, `saliency-8`."""
        names: list[str] = []
        for shift in self.shifts:  # a severity of CIFAR-10-C is an evaluation of its own
            names += [f"{shift}-{severity}" for severity in self.severities] if shift == "cifar10c" else [shift]
        return (*names, *([f"saliency-{self.saliency}"] if self.saliency else []))

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

    Args:
        name: that of its folder: letters, digits, ".", "_" and "-".
        record: {"metrics": {split: {metric: number}}, "provenance": {...}, "seconds": number}.
        predictions: of splits that the run does not have.
        files: others to keep, by the name they get.

    >>> Evaluation("blurred", {"metrics": {"blurred": {"nll": 0.7}}, "provenance": {}, "seconds": 1.0}).name
    'blurred'
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


NOTHING_MORE = Evaluations()
