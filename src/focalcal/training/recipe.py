"""Everything that decides a training run but its loss and its seed, as plain values with their sources."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import MISSING, dataclass, fields
from typing import Any, Self, TypeVar

from focalcal.core.arrays import finite_at_least, one_of
from focalcal.data import DATA_SETS
from focalcal.data import augment as augmentations
from focalcal.models import MODELS
from focalcal.training.primitives import (
    Options,
    as_json,
    numbers,
    options,
    positive,
    share,
    text,
    whole,
    yes_or_no,
)

SOURCES = ("paper", "code", "judgement")
OPTIMIZERS = ("sgd", "adam", "adamw")
SCHEDULES = ("constant", "milestones", "cosine", "plateau")
UNDECAYED = ("bias", "norm", "position")
EVALUATIONS = ("whole", "resize", "ten_crop")
AUGMENTATIONS = tuple(
    sorted(name for name in augmentations.__all__ if name[0].isupper() and name not in ("Augmentation", "Compose"))
)


class Plain:
    """A frozen dataclass whose fields are in canonical form, to and from what JSON can express."""

    def as_dict(self) -> dict[str, Any]:
        """Every field, as dict, list, str, int, float, bool and None; equal objects give the same JSON text."""
        return {one.name: _expressed(getattr(self, one.name)) for one in fields(self)}  # type: ignore[arg-type]

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> Self:
        """What `as_dict` described. An unknown field is an error, as is a missing one without a default."""
        if not isinstance(values, Mapping):
            raise TypeError(f"{cls.__name__} must be described by a mapping, got {type(values).__name__}")
        known = {one.name: one for one in fields(cls)}  # type: ignore[arg-type]
        if unknown := [name for name in values if name not in known]:
            raise ValueError(f"{cls.__name__} has no field {', '.join(map(repr, unknown))}; it has {', '.join(known)}")
        missing = [name for name, one in known.items() if one.default is MISSING and name not in values]
        if missing:
            raise ValueError(f"{cls.__name__} needs {', '.join(map(repr, missing))}")
        return cls(**values)

    def _set(self, **values: Any) -> None:
        for name, value in values.items():
            object.__setattr__(self, name, value)


def _expressed(value: Any) -> Any:
    if isinstance(value, Plain):
        return value.as_dict()
    if isinstance(value, tuple) and value and all(isinstance(one, Plain) for one in value):
        return [one.as_dict() for one in value]
    return as_json(value)


P = TypeVar("P", bound=Plain)


@dataclass(frozen=True, kw_only=True)
class Optimizer(Plain):
    """`sgd` takes momentum and nesterov; `adam` adds weight_decay to the gradient, `adamw` decays apart from it.

    `undecayed` names the parameters without weight decay: "bias", "norm" (scale and shift of any normalisation),
    "position" (position embeddings and class tokens, tables of relative positions).
    """

    name: str
    lr: float
    momentum: float | None = None
    nesterov: bool | None = None
    betas: tuple[float, ...] | None = None
    weight_decay: float = 0.0
    undecayed: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        """Canonical numbers; refuses what its kind does not have."""
        one_of("optimizer.name", self.name, OPTIMIZERS)
        self._set(lr=positive("lr", self.lr), weight_decay=finite_at_least("weight_decay", self.weight_decay, 0.0))
        if self.name == "sgd":
            if self.betas is not None:
                raise ValueError(f"betas must be None for sgd, got {self.betas!r}; they belong to adam and adamw")
            momentum = share("momentum", 0.0 if self.momentum is None else self.momentum)
            nesterov = yes_or_no("nesterov", bool(self.nesterov) if self.nesterov is None else self.nesterov)
            if nesterov and not momentum:
                raise ValueError("nesterov must be False without momentum; set momentum, e.g. 0.9")
            self._set(momentum=momentum, nesterov=nesterov)
        else:
            if self.momentum is not None or self.nesterov is not None:
                raise ValueError(f"momentum and nesterov must be None for {self.name}; they belong to sgd")
            betas = tuple(share("betas", one) for one in ((0.9, 0.999) if self.betas is None else self.betas))
            if len(betas) != 2:
                raise ValueError(f"betas must be two numbers, got {self.betas!r}")
            self._set(betas=betas)
        self._set(undecayed=_names("undecayed", self.undecayed, UNDECAYED))


@dataclass(frozen=True, kw_only=True)
class Schedule(Plain):
    """How the learning rate moves: up linearly over `warmup` epochs, then by `kind`.

    constant    stays
    milestones  times `factor` at the end of each of these epochs
    cosine      half a cosine from lr after the warm-up to 0 at the end
    plateau     times `factor` once the validation loss has not fallen for more than `patience` epochs
    """

    kind: str = "constant"
    milestones: tuple[int, ...] = ()
    factor: float | None = None
    patience: int | None = None
    warmup: int = 0

    def __post_init__(self) -> None:
        """Canonical numbers; each kind has its own fields and no others."""
        one_of("schedule.kind", self.kind, SCHEDULES)
        self._set(warmup=whole("warmup", self.warmup, 0))
        self._set(milestones=tuple(whole("milestones", one, 1) for one in self.milestones))
        if any(after <= before for before, after in zip(self.milestones, self.milestones[1:], strict=False)):
            raise ValueError(f"milestones must increase, got {self.milestones}")
        wanted = {
            "milestones": self.kind == "milestones",
            "factor": self.kind in ("milestones", "plateau"),
            "patience": self.kind == "plateau",
        }
        for name, needed in wanted.items():
            value = getattr(self, name)
            if needed and (value is None or value == ()):
                raise ValueError(f"a schedule of kind {self.kind!r} needs {name}")
            if not needed and value not in (None, ()):
                raise ValueError(f"a schedule of kind {self.kind!r} has no {name}, got {value!r}")
        if self.factor is not None:
            self._set(factor=share("factor", positive("factor", self.factor)))
        if self.patience is not None:
            self._set(patience=whole("patience", self.patience, 0))


@dataclass(frozen=True, kw_only=True)
class Step(Plain):
    """One augmentation of `focalcal.data.augment`, by class name, and its arguments."""

    name: str
    options: Mapping[str, Any] | Options = ()

    def __post_init__(self) -> None:
        """The options sorted; the class is called once, so that it can refuse them."""
        one_of("augmentation", self.name, AUGMENTATIONS)
        self._set(options=options(f"{self.name}'s options", self.options))
        self.build()

    def build(self) -> augmentations.Augmentation:
        """The augmentation."""
        built: augmentations.Augmentation = getattr(augmentations, self.name)(**dict(self.options))
        return built

    def as_dict(self) -> dict[str, Any]:
        """Its name and options."""
        return {"name": self.name, "options": _mapping(self.options)}


@dataclass(frozen=True, kw_only=True)
class Recipe(Plain):
    """How one network is trained on one data set; the mean of the loss over the batch, the last epoch's weights.

    `augmentation` sees images before and `after_normalisation` after (image / 255 - mean) / std, which makes three
    channels of a grey image where mean and std have three numbers. `evaluation` is what a test image goes through:
    as it is ("whole"), resized to `image_size`, or ten crops of that side whose probabilities are averaged.
    `initial_weights` and `word_vectors` name what the network starts from, None for random. `fcl_gamma` and `fcl_lam`
    are Focal Calibration Loss's operating point.

    `sources` says of every field that is set, or of a part of one such as "optimizer.lr", who states it: the paper, the
    code of a reference it names, or nobody, which makes it our judgement. A part overrides its field.
    """

    data_set: str
    classes: int
    model: str
    optimizer: Optimizer
    epochs: int
    batch_size: int
    fcl_gamma: float
    fcl_lam: float
    sources: Mapping[str, str] | Options
    schedule: Schedule = Schedule()
    data_options: Mapping[str, Any] | Options = ()
    model_options: Mapping[str, Any] | Options = ()
    initial_weights: str | None = None
    word_vectors: str | None = None
    drop_last: bool = False
    mixed_precision: bool = False
    gradient_clip: float | None = None
    augmentation: tuple[Step, ...] = ()
    mean: tuple[float, ...] | None = None
    std: tuple[float, ...] | None = None
    after_normalisation: tuple[Step, ...] = ()
    image_size: int | None = None
    evaluation: str = "whole"

    def __post_init__(self) -> None:
        """Every field canonical, and the fields consistent with each other."""
        one_of("data_set", self.data_set, DATA_SETS)
        one_of("model", self.model, MODELS)
        one_of("evaluation", self.evaluation, EVALUATIONS)
        self._set(
            classes=whole("classes", self.classes, 2),
            optimizer=_made(Optimizer, "optimizer", self.optimizer),
            schedule=_made(Schedule, "schedule", self.schedule),
            epochs=whole("epochs", self.epochs, 1),
            batch_size=whole("batch_size", self.batch_size, 1),
            fcl_gamma=finite_at_least("fcl_gamma", self.fcl_gamma, 0.0),
            fcl_lam=finite_at_least("fcl_lam", self.fcl_lam, 0.0),
            data_options=options("data_options", self.data_options),
            model_options=options("model_options", self.model_options),
            drop_last=yes_or_no("drop_last", self.drop_last),
            mixed_precision=yes_or_no("mixed_precision", self.mixed_precision),
            augmentation=tuple(_made(Step, "augmentation", one) for one in self.augmentation),
            after_normalisation=tuple(_made(Step, "after_normalisation", one) for one in self.after_normalisation),
        )
        for name in ("initial_weights", "word_vectors"):
            if getattr(self, name) is not None:
                text(name, getattr(self, name))
        if self.gradient_clip is not None:
            self._set(gradient_clip=positive("gradient_clip", self.gradient_clip))
        self._check_epochs()
        self._check_images()
        self._set(sources=_checked_sources(self))

    def _check_epochs(self) -> None:
        last = max((self.schedule.warmup, *self.schedule.milestones))
        if last >= self.epochs:
            raise ValueError(f"warmup and milestones must lie before epochs = {self.epochs}, got {last}")

    def _check_images(self) -> None:
        if (self.mean is None) != (self.std is None):
            raise ValueError("mean and std must be given together, or neither")
        if self.mean is not None and self.std is not None:
            self._set(mean=numbers("mean", self.mean), std=tuple(positive("std", one) for one in self.std))
            if len(self.mean) != len(self.std) or len(self.mean) not in (1, 3):
                raise ValueError(f"mean and std must have 1 or 3 numbers each, got {self.mean} and {self.std}")
        if (self.image_size is None) != (self.evaluation == "whole"):
            raise ValueError(
                f"image_size must be given for evaluation 'resize' and 'ten_crop' alone, got {self.image_size!r} "
                f"for {self.evaluation!r}"
            )
        if self.image_size is not None:
            self._set(image_size=whole("image_size", self.image_size, 1))

    def as_dict(self) -> dict[str, Any]:
        """Every field as plain values; `json.loads(json.dumps(...))` gives the same back."""
        mappings = {name: _mapping(getattr(self, name)) for name in ("data_options", "model_options", "sources")}
        return {**super().as_dict(), **mappings}

    def settings(self) -> dict[str, Any]:
        """`as_dict` without the sources: what decides a run."""
        return {name: value for name, value in self.as_dict().items() if name != "sources"}

    def source(self, field: str) -> str | None:
        """Who states this field or part of one, "paper", "code" or "judgement"; None for a field that is not set."""
        one_of("field", field, _parts())
        stated = dict(self.sources)
        return stated.get(field, stated.get(field.split(".")[0]))

    @property
    def known(self) -> tuple[str, ...]:
        """The fields, or parts of fields, that the paper or a reference's code states."""
        return tuple(name for name, source in dict(self.sources).items() if source != "judgement")

    @property
    def judged(self) -> tuple[str, ...]:
        """The fields, or parts of fields, that are our judgement."""
        return tuple(name for name, source in dict(self.sources).items() if source == "judgement")


def _parts() -> tuple[str, ...]:
    """The names that a source can be given for."""
    whole_fields = [one.name for one in fields(Recipe) if one.name != "sources"]
    nested: dict[str, type[Plain]] = {"optimizer": Optimizer, "schedule": Schedule}
    parts = [f"{field}.{one.name}" for field, kind in nested.items() for one in fields(kind)]  # type: ignore[arg-type]
    return (*whole_fields, *parts)


def _checked_sources(recipe: Recipe) -> Options:
    stated = dict(options("sources", recipe.sources))
    for name, source in stated.items():
        one_of("a field of sources", name, _parts())
        one_of(f"sources[{name!r}]", source, SOURCES)
    unset = (None, (), False)
    silent = [
        one.name
        for one in fields(recipe)
        if one.name not in ("sources", *stated) and getattr(recipe, one.name) not in unset
    ]
    silent = [name for name in silent if name != "evaluation" or recipe.evaluation != "whole"]
    if silent:
        raise ValueError(f"sources must say 'paper', 'code' or 'judgement' of {', '.join(silent)}")
    return tuple(stated.items())


def _made(kind: type[P], name: str, value: Any) -> P:
    if isinstance(value, kind):
        return value
    if isinstance(value, Mapping):
        return kind.from_dict(value)
    raise TypeError(f"{name} must be a {kind.__name__} or its fields in a mapping, got {type(value).__name__}")


def _names(name: str, values: Any, allowed: Sequence[str]) -> tuple[str, ...]:
    if isinstance(values, str):
        raise TypeError(f"{name} must be several names, got the string {values!r}; put it into a tuple")
    for value in values:
        one_of(name, value, allowed)
    return tuple(sorted(set(values)))


def _mapping(pairs: Any) -> dict[str, Any]:
    return {name: as_json(value) for name, value in dict(pairs).items()}
