"""Everything that decides a training run but its loss and its seed, as plain values with their sources."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any, TypeVar

from focalcal.core.arrays import finite_at_least, one_of
from focalcal.core.plain import Plain
from focalcal.core.primitives import Options, numbers, options, positive, text, whole, yes_or_no
from focalcal.data import DATA_SETS
from focalcal.models import MODELS
from focalcal.training.recipe_parts import Optimizer, Schedule, Step, mapping

SOURCES = ("paper", "code", "judgement")
CONSTANT = Schedule(kind="constant")
EVALUATIONS = ("whole", "resize", "ten_crop")
P = TypeVar("P", bound=Plain)


@dataclass(frozen=True, kw_only=True)
class Recipe(Plain):
    """How one network is trained on one data set; the mean of the loss over the batch, the last epoch's weights.

    `augmentation` sees images before and `after_normalisation` after (image / 255 - mean) / std, which makes three
    channels of a grey image where mean and std have three numbers. `evaluation` is what a test image goes through:
    as it is ("whole"), resized to `image_size` (as the random resized crop does it, else bicubic), or ten crops of that
    side whose probabilities are averaged.
    `initial_weights`, a hub id, file or folder for the network's option `pretrained`, and `word_vectors` name what it
    starts from, None for random. `fcl_gamma` and `fcl_lam` are Focal Calibration Loss's operating point.

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
    schedule: Schedule = CONSTANT
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
        mappings = {name: mapping(getattr(self, name)) for name in ("data_options", "model_options", "sources")}
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
