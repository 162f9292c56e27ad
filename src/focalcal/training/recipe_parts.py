"""What a recipe is made of: optimiser, schedule and augmentation steps, as plain values."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from focalcal.core.arrays import finite_at_least, one_of
from focalcal.core.plain import Plain
from focalcal.core.primitives import Options, as_json, options, positive, share, whole, yes_or_no
from focalcal.data import augment as augmentations

OPTIMIZERS = ("sgd", "adam", "adamw")
SCHEDULES = ("constant", "milestones", "cosine", "plateau")
UNDECAYED = ("bias", "norm", "position")
AUGMENTATIONS = tuple(
    sorted(name for name in augmentations.__all__ if name[0].isupper() and name not in ("Augmentation", "Compose"))
)


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
        return {"name": self.name, "options": mapping(self.options)}


def mapping(pairs: Any) -> dict[str, Any]:
    """Options as JSON has them."""
    return {name: as_json(value) for name, value in dict(pairs).items()}


def _names(name: str, values: Any, allowed: Sequence[str]) -> tuple[str, ...]:
    if isinstance(values, str):
        raise TypeError(f"{name} must be several names, got the string {values!r}; put it into a tuple")
    for value in values:
        one_of(name, value, allowed)
    return tuple(sorted(set(values)))
