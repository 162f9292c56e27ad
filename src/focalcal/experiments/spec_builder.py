"""Between recipes and specs: what a cell of a study is, and how it is read back."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from difflib import get_close_matches
from inspect import Parameter, signature
from typing import Any

from torch import nn

from focalcal.core.primitives import Options
from focalcal.core.primitives import options as canonical_options
from focalcal.data import DATA_SETS
from focalcal.experiments.shifts import SHIFTS
from focalcal.losses import LOSSES
from focalcal.models import MODEL_INFO, MODELS
from focalcal.results.evaluations import Evaluations
from focalcal.results.protocol import EVERYTHING, Protocol
from focalcal.results.spec import Spec
from focalcal.training.operating_points import operating_point
from focalcal.training.recipe import Recipe

CALIBRATION_LOSSES = ("fcl", "multilabel_fcl")  # their gamma and lam are the setting's unless they are given
_ELSEWHERE = ("data_set", "model")  # fields of a recipe that a spec keeps outside `training`
_OF_THE_LOOP = ("weight", "ignore_index", "reduction")  # arguments of every loss that are no hyper-parameters


def spec_of(
    recipe: Recipe,
    objective: str,
    options: Mapping[str, Any] | Options = (),
    *,
    seed: int,
    protocol: Protocol = EVERYTHING,
) -> Spec:
    """The run of this recipe with this objective of LOSSES and these of its options; the others have their defaults.

    Focal Calibration Loss takes the gamma and lam of `operating_point` where they are not given. Whatever can be
    refused without data is refused here: an unknown objective or option, a value the loss does not take, an objective
    that does not go with the recipe.
    """
    resolved = objective_options(objective, options, recipe)
    _check_pair(recipe, objective)
    check_recipe_options(recipe)
    return Spec(
        data_set=recipe.data_set,
        model=recipe.model,
        objective=objective,
        objective_options=resolved,
        training={name: value for name, value in recipe.as_dict().items() if name not in _ELSEWHERE},
        protocol=protocol,
        seed=seed,
    )


def recipe_of(spec: Spec) -> Recipe:
    """The recipe of a spec; `spec_of` makes the same spec of it, its objective, options, seed and protocol."""
    return Recipe.from_dict({**spec.training, "data_set": spec.data_set, "model": spec.model})


def loss_of(spec: Spec) -> nn.Module:
    """A fresh loss."""
    return _built(spec.objective, dict(spec.objective_options))


def known_options(objective: str) -> dict[str, Any]:
    """The hyper-parameters of an objective of LOSSES and their defaults.

    >>> known_options("fcl")
    {'gamma': 3.0, 'lam': 1.0, 'scale': 'paper'}
    """
    if objective not in LOSSES:
        raise ValueError(unknown("an objective", objective, LOSSES))
    parameters = signature(LOSSES[objective]).parameters.values()
    named = [parameter for parameter in parameters if parameter.kind is not Parameter.VAR_KEYWORD]
    return {parameter.name: parameter.default for parameter in named if parameter.name not in _OF_THE_LOOP}


def _later_options(objective: str) -> dict[str, Any]:
    """Keyword-only options, which a run records only where they differ from their defaults.

    So a loss can gain an option without a run that was stored before getting another key.
    """
    parameters, known = signature(LOSSES[objective]).parameters, known_options(objective)
    return {name: default for name, default in known.items() if parameters[name].kind is Parameter.KEYWORD_ONLY}


def objective_options(objective: str, given: Mapping[str, Any] | Options, recipe: Recipe) -> dict[str, Any]:
    """The options of the objective: as given, else the setting's point, else its default; the loss has seen them.

    All of them, but for keyword-only ones at their default.
    """
    known = known_options(objective)
    chosen = dict(canonical_options(f"the options of {objective}", given))
    for name in chosen:
        if name not in known:
            raise ValueError(unknown(f"an option of {objective}", name, known))
    point = operating_point(recipe.data_set, recipe.model)
    if objective in CALIBRATION_LOSSES and point is not None:
        known |= point._asdict()
    resolved = dict(canonical_options(f"the options of {objective}", {**known, **chosen}))
    _built(objective, resolved)
    later = _later_options(objective)
    return {name: value for name, value in resolved.items() if name not in later or value != later[name]}


def unknown(what: str, name: Any, known: Iterable[str]) -> str:
    """That there is no such name, the nearest that there is, and all of them.

    >>> unknown("an objective", "focl", ("ce", "focal"))
    "'focl' is not an objective; did you mean 'focal'? Known: ce, focal"
    """
    names = [str(one) for one in known]
    near = get_close_matches(str(name), names, n=1)
    guess = f"; did you mean {near[0]!r}?" if near else "."
    return f"{name!r} is not {what}{guess} Known: {', '.join(names) or 'none'}"


def multilabel(recipe: Recipe) -> bool:
    """Whether its network gives one probability a label, so that its loss has to be a multilabel one."""
    return MODEL_INFO[recipe.model].multilabel


def has_validation(recipe: Recipe) -> bool:
    """Whether the data set, as the recipe loads it, holds examples out for validation."""
    parameter = signature(DATA_SETS[recipe.data_set]).parameters.get("validation")
    held_out = dict(recipe.data_options).get("validation", 1 if parameter is None else parameter.default)
    return bool(held_out)


def check_recipe_options(recipe: Recipe) -> None:
    """Refuse options that the network or the loader does not have."""
    builder, loader = MODELS[recipe.model], DATA_SETS[recipe.data_set]
    known = [name for name in signature(builder).parameters if name not in ("classes", "embedding", "pretrained")]
    for name in dict(recipe.model_options):
        if name not in known:
            raise ValueError(f"model_options: {unknown(f'an option of {recipe.model}', name, known)}")
    known = [name for name in signature(loader).parameters if name not in ("folder", "allow_partial")]
    for name in dict(recipe.data_options):
        if name not in known:
            raise ValueError(f"data_options: {unknown(f'an option of {recipe.data_set}', name, known)}")


def _built(objective: str, options: Mapping[str, Any]) -> nn.Module:
    if objective not in LOSSES:
        raise ValueError(unknown("an objective", objective, LOSSES))
    return LOSSES[objective](**options)


def _check_pair(recipe: Recipe, objective: str) -> None:
    wanted = [name for name in LOSSES if name.startswith("multilabel_") == multilabel(recipe)]
    if objective not in wanted:
        kind = "any number of labels" if multilabel(recipe) else "one label"
        raise ValueError(
            f"objective must suit {recipe.model} on {recipe.data_set}, where an example has {kind}, got {objective!r}; "
            f"use one of {', '.join(wanted)}"
        )
    if objective == "adafocal" and not has_validation(recipe):
        raise ValueError(
            f"adafocal needs validation examples, and this recipe holds none of {recipe.data_set} out; "
            "set data_options.validation, e.g. 5000"
        )


def check_evaluations(recipe: Recipe, evaluations: Evaluations) -> None:
    """Refuse evaluations that such a network cannot have, whatever the data."""
    for name in evaluations.shifts:
        if name not in SHIFTS:
            raise ValueError(f"shifts: {unknown('a shift', name, SHIFTS)}")
    if evaluations.saliency and MODEL_INFO[recipe.model].feature_layer is None:
        able = ", ".join(name for name, info in MODEL_INFO.items() if info.feature_layer is not None)
        raise ValueError(
            f"saliency must be 0 for {recipe.model}, which has no feature maps, got {evaluations.saliency}; "
            f"networks that have: {able}"
        )
