"""Everything that decides a training run but its loss and its seed, as plain values."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, TypeVar

from focalcal.core.checks import finite_at_least, numbers, one_of, positive, share, text, whole, yes_or_no
from focalcal.core.json_dataclass import JsonDataclass
from focalcal.core.plugins import check_name
from focalcal.core.primitives import Options, options
from focalcal.lab.data import DATA_SETS
from focalcal.lab.data import augment as augmentations
from focalcal.lab.models import MODELS, model_options

OPTIMIZERS = ("sgd", "adam", "adamw")
SCHEDULES = ("constant", "milestones", "cosine", "plateau")
UNDECAYED = ("bias", "norm", "position")
EVALUATIONS = ("whole", "resize", "ten_crop")
AUGMENTATIONS = tuple(
    sorted(name for name in augmentations.__all__ if name[0].isupper() and name not in ("Augmentation", "Compose"))
)
Part = TypeVar("Part", bound=JsonDataclass)


@dataclass(frozen=True, kw_only=True)
class Optimizer(JsonDataclass):
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
        self._set(
            lr=positive("lr", self.lr),
            weight_decay=finite_at_least("weight_decay", self.weight_decay, 0.0),
            undecayed=_names("undecayed", self.undecayed, UNDECAYED),
        )
        if self.name == "sgd":
            self._check_sgd()
        else:
            self._check_adam()

    def _check_sgd(self) -> None:
        if self.betas is not None:
            raise ValueError(f"betas must be None for sgd, got {self.betas!r}; they belong to adam and adamw")
        momentum = share("momentum", 0.0 if self.momentum is None else self.momentum)
        nesterov = yes_or_no("nesterov", False if self.nesterov is None else self.nesterov)
        if nesterov and not momentum:
            raise ValueError("nesterov must be False without momentum; set momentum, e.g. 0.9")
        self._set(momentum=momentum, nesterov=nesterov)

    def _check_adam(self) -> None:
        if self.momentum is not None or self.nesterov is not None:
            raise ValueError(f"momentum and nesterov must be None for {self.name}; they belong to sgd")
        betas = tuple(share("betas", beta) for beta in ((0.9, 0.999) if self.betas is None else self.betas))
        if len(betas) != 2:
            raise ValueError(f"betas must be two numbers, got {self.betas!r}")
        self._set(betas=betas)


@dataclass(frozen=True, kw_only=True)
class Schedule(JsonDataclass):
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
        self._set(
            warmup=whole("warmup", self.warmup, 0),
            milestones=tuple(whole("milestones", epoch, 1) for epoch in self.milestones),
        )
        if any(after <= before for before, after in zip(self.milestones, self.milestones[1:], strict=False)):
            raise ValueError(f"milestones must increase, got {self.milestones}")
        wanted = {
            "milestones": self.kind == "milestones",
            "factor": self.kind in ("milestones", "plateau"),
            "patience": self.kind == "plateau",
        }
        for name, needed in wanted.items():
            value = getattr(self, name)
            if needed and value in (None, ()):
                raise ValueError(f"a schedule of kind {self.kind!r} needs {name}")
            if not needed and value not in (None, ()):
                raise ValueError(f"a schedule of kind {self.kind!r} has no {name}, got {value!r}")
        if self.factor is not None:
            self._set(factor=share("factor", positive("factor", self.factor)))
        if self.patience is not None:
            self._set(patience=whole("patience", self.patience, 0))


@dataclass(frozen=True, kw_only=True)
class Step(JsonDataclass):
    """One augmentation of `focalcal.lab.data.augment`, by class name, and its arguments."""

    OPTIONS: ClassVar[tuple[str, ...]] = ("options",)
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


CONSTANT = Schedule(kind="constant")


@dataclass(frozen=True, kw_only=True)
class Recipe(JsonDataclass):
    """How one network is trained on one data set; the mean of the loss over the batch, the last epoch's weights.

    With `averaging`, a share of the steps such as 0.2, what is evaluated, steers the loss and is kept at the end is
    the average of the weights over about that share of the steps so far (`focalcal.lab.training.averaging`).

    `augmentation` sees images before and `after_normalisation` after (image / 255 - mean) / std, which makes three
    channels of a grey image where mean and std have three numbers. `evaluation` is what a test image goes through:
    as it is ("whole"), resized to `image_size` (as the random resized crop does it, else bicubic), or ten crops of that
    side whose probabilities are averaged (an epoch's evaluation sees the one at the centre).
    `initial_weights`, whatever the network's builder takes as `pretrained` (a hub id, file or folder), and
    `word_vectors` name what it starts from, None for random.

    A shipped recipe's sources are in `recipes.sources`, the gamma and lam of Focal Calibration Loss that go with its
    data set and network in `operating_points`.
    """

    OPTIONS: ClassVar[tuple[str, ...]] = ("data_options", "model_options")
    LATER: ClassVar[tuple[str, ...]] = ("averaging",)
    data_set: str
    classes: int
    model: str
    optimizer: Optimizer
    epochs: int
    batch_size: int
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
    averaging: float | None = None

    def __post_init__(self) -> None:
        """Every field canonical, and the fields consistent with each other."""
        check_name("data_sets", self.data_set, DATA_SETS)
        check_name("models", self.model, MODELS)
        one_of("evaluation", self.evaluation, EVALUATIONS)
        self._set(
            classes=whole("classes", self.classes, 2),
            optimizer=_part(Optimizer, "optimizer", self.optimizer),
            schedule=_part(Schedule, "schedule", self.schedule),
            epochs=whole("epochs", self.epochs, 1),
            batch_size=whole("batch_size", self.batch_size, 1),
            data_options=options("data_options", self.data_options),
            model_options=options("model_options", self.model_options),
            drop_last=yes_or_no("drop_last", self.drop_last),
            mixed_precision=yes_or_no("mixed_precision", self.mixed_precision),
            augmentation=tuple(_part(Step, "augmentation", step) for step in self.augmentation),
            after_normalisation=tuple(_part(Step, "after_normalisation", step) for step in self.after_normalisation),
        )
        self._check_start()
        if self.gradient_clip is not None:
            self._set(gradient_clip=positive("gradient_clip", self.gradient_clip))
        if self.averaging is not None:
            self._set(averaging=share("averaging", positive("averaging", self.averaging)))
        last = max((self.schedule.warmup, *self.schedule.milestones))
        if last >= self.epochs:
            raise ValueError(f"warmup and milestones must lie before epochs = {self.epochs}, got {last}")
        self._check_images()

    def _check_start(self) -> None:
        """What the network's builder takes, a recipe may name."""
        for name, option in (("initial_weights", "pretrained"), ("word_vectors", "embedding")):
            given = getattr(self, name)
            if given is not None and option not in model_options(self.model):
                able = [model for model in MODELS if option in model_options(model)]
                raise ValueError(
                    f"{name} must be None for {self.model}, which takes none, got {given!r}; leave it out, "
                    f"or use {', '.join(able)}"
                )
            if given is not None:
                text(name, given)

    def _check_images(self) -> None:
        if (self.mean is None) != (self.std is None):
            raise ValueError("mean and std must be given together, or neither")
        if self.mean is not None and self.std is not None:
            self._set(mean=numbers("mean", self.mean), std=tuple(positive("std", number) for number in self.std))
            if len(self.mean) != len(self.std) or len(self.mean) not in (1, 3):
                raise ValueError(f"mean and std must have 1 or 3 numbers each, got {self.mean} and {self.std}")
        if (self.image_size is None) != (self.evaluation == "whole"):
            raise ValueError(
                f"image_size must be given for evaluation 'resize' and 'ten_crop' alone, got {self.image_size!r} "
                f"for {self.evaluation!r}"
            )
        if self.image_size is not None:
            self._set(image_size=whole("image_size", self.image_size, 1))


def _part(kind: type[Part], name: str, value: Any) -> Part:
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
