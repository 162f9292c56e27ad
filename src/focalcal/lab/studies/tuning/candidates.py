"""What a search chooses between: an objective with its options, and if asked a learning rate and a weight decay."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from focalcal.lab.studies.search_space import SPACE, Range, rounded
from focalcal.lab.studies.spec_builder import override_recipe, spec_of

if TYPE_CHECKING:
    import optuna

    from focalcal.lab.store import Protocol, Spec
    from focalcal.lab.training import Recipe

_FACTOR = 16.0  # how far from the recipe's a learning rate or weight decay goes, down and up
_STEP = 4.0  # between the points of a grid over them


# The learning rate of the recipe is cross-entropy's; on this scale it carries over.
_FIXED: Mapping[str, Mapping[str, Any]] = MappingProxyType(
    {name: {"scale": "matched"} for name in ("fcl", "focal", "brier")}
)
_USUAL: Mapping[str, Mapping[str, float]] = MappingProxyType(
    {"focal": {"gamma": 3.0}, "dual_focal": {"gamma": 3.0}, "ls": {"epsilon": 0.05}, "mmce": {"lam": 2.0}}
)


@dataclass(frozen=True)
class TuneCandidate:
    """An objective with its options, and a learning rate and weight decay where they are not the recipe's.

    Args:
        objective: by name.
        options: pairs of name and value.
        lr, weight_decay: None: the recipe's.

    >>> TuneCandidate("fcl", (("gamma", 3.0), ("lam", 0.5)), lr=0.1).name
    'fcl(gamma=3, lam=0.5, lr=0.1)'
    """

    objective: str
    options: tuple[tuple[str, Any], ...] = ()
    lr: float | None = None
    weight_decay: float | None = None

    def spec(self, recipe: Recipe, *, seed: int, protocol: Protocol, fingerprint: str | None) -> Spec:
        """The run of this candidate, on data of this fingerprint if they are not shipped."""
        changes = {name: value for name in ("lr", "weight_decay") if (value := getattr(self, name)) is not None}
        changed = override_recipe(recipe, {"optimizer": changes}) if changes else recipe
        options = dict(self.options)
        return spec_of(changed, self.objective, options, seed=seed, protocol=protocol, fingerprint=fingerprint)

    @property
    def name(self) -> str:
        """For tables, e.g. fcl(gamma=3, lam=0.5)."""
        shown = [f"{key}={value:g}" for key, value in self.options if isinstance(value, float | int)]
        shown += [f"{key}={value:g}" for key in ("lr", "weight_decay") if (value := getattr(self, key)) is not None]
        return f"{self.objective}({', '.join(shown)})" if shown else self.objective

    @property
    def params(self) -> dict[str, Any]:
        """As the sampler names them."""
        fixed = _FIXED.get(self.objective, {})
        params: dict[str, Any] = {"objective": self.objective}
        params |= {f"{self.objective}.{key}": value for key, value in self.options if key not in fixed}
        return params | {key: value for key in ("lr", "weight_decay") if (value := getattr(self, key)) is not None}


def candidate(objective: str, **options: float) -> TuneCandidate:
    """With the options that are not searched added."""
    return TuneCandidate(objective, tuple(sorted({**options, **_FIXED.get(objective, {})}.items())))


def usual(objective: str) -> TuneCandidate:
    """The objective at the options that papers use; one that is not known here at its defaults."""
    return candidate(objective, **_USUAL.get(objective, {}))


def suggest(trial: optuna.trial.BaseTrial, objectives: Sequence[str], optimizer: Mapping[str, Range]) -> TuneCandidate:
    """The sampler's choice."""
    objective = trial.suggest_categorical("objective", list(objectives))
    space = SPACE.get(objective, {})
    options = {name: limits.suggest(trial, f"{objective}.{name}") for name, limits in space.items()}
    settings = {name: limits.suggest(trial, name) for name, limits in optimizer.items()}
    return TuneCandidate(objective, candidate(objective, **options).options, **_changed(settings, optimizer))


def optimizer_ranges(recipe: Recipe, *, learning_rate: bool, weight_decay: bool) -> dict[str, Range]:
    """A factor of sixteen around what the recipe has; a recipe without weight decay is searched from 1e-5 to 1e-3."""
    ranges = {}
    if learning_rate:
        ranges["lr"] = _around(recipe.optimizer.lr)
    if weight_decay:
        decay = recipe.optimizer.weight_decay
        ranges["weight_decay"] = _around(decay) if decay else Range(1e-5, 1e-3, (1e-5, 1e-4, 1e-3), log=True)
    return ranges


def grid(objectives: Sequence[str], optimizer: Mapping[str, Range]) -> list[TuneCandidate]:
    """Every point of every objective's grid."""
    settings = [
        dict(zip(optimizer, at, strict=True)) for at in itertools.product(*(r.grid for r in optimizer.values()))
    ]
    return [
        TuneCandidate(
            objective, candidate(objective, **dict(zip(space, point, strict=True))).options, **_changed(at, optimizer)
        )
        for objective in objectives
        for space in (SPACE.get(objective, {}),)
        for point in itertools.product(*(limits.grid for limits in space.values()))
        for at in settings
    ]


def _changed(settings: Mapping[str, float], optimizer: Mapping[str, Range]) -> dict[str, float]:
    """Without those that are the recipe's own, so that a run has one candidate."""
    return {name: value for name, value in settings.items() if value != optimizer[name].own}


def _around(value: float) -> Range:
    own = rounded(value)
    return Range(own / _FACTOR, own * _FACTOR, (own / _STEP, own, own * _STEP), log=True, own=own)
