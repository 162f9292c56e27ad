"""Between recipes and specs: overrides, what a cell of a study is, what is refused without data, and the way back."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from functools import cache
from inspect import Parameter, signature
from pathlib import Path
from typing import Any

from torch import nn

from focalcal.core.checks import unknown_name
from focalcal.core.plugins import resolve, source_hash
from focalcal.core.schema import Canonical, plain
from focalcal.lab.data import LOADERS, data_options
from focalcal.lab.models import MODEL_INFO, MODELS, is_estimator, model_builder, model_info, model_options
from focalcal.lab.store.spec import EVERYTHING, Evaluations, Protocol, Spec
from focalcal.lab.studies.own_data import FINGERPRINT, own_fingerprint
from focalcal.lab.studies.shifts import SHIFTS
from focalcal.lab.training.operating_points import fcl_point
from focalcal.lab.training.recipe import Recipe, Schedule, merged
from focalcal.losses import LOSSES

CALIBRATION_LOSSES = ("fcl", "multilabel_fcl")  # their gamma and lam are the setting's unless they are given
SOURCES = "sources"  # in a spec's training: the hash of the code of each plug-in, if there is one
_ELSEWHERE = ("data_set", "model")  # fields of a recipe that a spec keeps outside `training`
_CATCH_ALL = (Parameter.VAR_POSITIONAL, Parameter.VAR_KEYWORD)
_OF_THE_LOOP = ("weight", "ignore_index", "reduction")  # arguments of a loss that are no hyper-parameters
# Fields of a recipe, not in a key where they are so, as before they were.
_LATER = {"averaging": None, "keep": "last", "bfloat16": False, "alternating_flip": False}
Options = Mapping[str, Any] | tuple[tuple[str, Any], ...]


def override_recipe(recipe: Recipe, values: Mapping[str, Any]) -> Recipe:
    """The recipe with these fields instead of its own; see `recipe.merged`."""
    return Recipe.from_dict(merged(recipe, values))


def shrink_recipe(recipe: Recipe, *, epochs: int, batch_size: int) -> Recipe:
    """The recipe at another number of epochs, its milestones and warm-up moved in proportion, and in smaller batches.

    A milestone that would fall on the last epoch or before the first is left out.
    """
    ratio = epochs / recipe.epochs
    schedule = recipe.schedule
    warmup = int(schedule.warmup * ratio)
    milestones = tuple(
        sorted({max(1, int(epoch * ratio)) for epoch in schedule.milestones if max(1, epoch * ratio) < epochs})
    )
    if schedule.kind == "milestones" and not milestones:
        schedule = Schedule(kind="constant", warmup=warmup)
    else:
        schedule = replace(schedule, milestones=milestones, warmup=warmup)
    return replace(recipe, epochs=epochs, batch_size=min(batch_size, recipe.batch_size), schedule=schedule)


def spec_of(
    recipe: Recipe,
    objective: str,
    options: Options = (),
    *,
    seed: int,
    protocol: Protocol = EVERYTHING,
    data_dir: Path | None = None,
    fingerprint: str | None = None,
) -> Spec:
    """The run of a recipe with an objective. Whatever can be refused without data is refused here: an unknown
    objective or option, a value the loss does not take, an objective that does not go with the recipe.

    Args:
        recipe: how the network is trained.
        objective: a name of LOSSES, or a plug-in's.
        options: of the objective; the others have their defaults. Focal Calibration Loss takes the gamma and lam of
            `fcl_point` where they are not given.
        seed: of the run.
        protocol: which examples.
        data_dir: data that are not shipped are loaded from there for their `fingerprint`.
        fingerprint: of these data, if it is known.

    Returns:
        The spec.

    >>> from focalcal.lab.training import recipe
    >>> spec_of(recipe("digits_mlp_lite"), "focal", {"gamma": 2}, seed=0).name
    'digits/mlp focal(gamma=2) seed 0'
    """
    resolved = objective_options(objective, options, recipe)
    problem = pair_problem(recipe, objective, build_loss(objective, resolved))
    if problem is not None:
        raise ValueError(problem)
    for field, _, message in unknown_options(recipe):
        raise ValueError(f"{field}: {message}")
    if fingerprint is None:
        fingerprint = own_fingerprint(recipe, allow_partial=protocol.allow_partial, data_dir=data_dir)
    return Spec(
        data_set=recipe.data_set,
        model=recipe.model,
        objective=objective,
        objective_options=tuple(resolved.items()),
        training=training_of(recipe, objective, fingerprint),
        protocol=protocol,
        seed=seed,
    )


def training_of(recipe: Recipe, objective: str, fingerprint: str | None = None) -> dict[str, Any]:
    """What a spec says about the training: the recipe by value, the sources of plug-ins, own data's fingerprint."""
    sources = plugin_sources(recipe.data_set, recipe.model, objective)
    own = {SOURCES: sources or None, FINGERPRINT: fingerprint}
    return Canonical({**_settings_of(recipe), **{name: value for name, value in own.items() if value is not None}})


@cache
def _settings_of(recipe: Recipe) -> dict[str, Any]:
    if is_estimator(model_builder(recipe.model)):  # which is fitted once, whatever the recipe says
        recipe = replace(recipe, epochs=1, schedule=Schedule())
    settings = {name: value for name, value in recipe.as_dict().items() if name not in _ELSEWHERE}
    return {name: plain(value) for name, value in settings.items() if name not in _LATER or value != _LATER[name]}


def recipe_of(spec: Spec) -> Recipe:
    """The recipe of a spec; `spec_of` makes the same spec of it, its objective, options, seed and protocol.

    Args:
        spec: of a run that this package trained.

    Returns:
        The recipe.

    >>> from focalcal.lab.training import recipe
    >>> recipe_of(spec_of(recipe("digits_mlp_lite"), "ce", seed=0)) == recipe("digits_mlp_lite")
    True
    """
    settings = {name: value for name, value in spec.training.items() if name not in (SOURCES, FINGERPRINT)}
    return Recipe.from_dict({**settings, "data_set": spec.data_set, "model": spec.model})


def loss_of(spec: Spec) -> nn.Module:
    """A fresh loss."""
    return build_loss(spec.objective, dict(spec.objective_options))


def plugin_sources(data_set: str, model: str, objective: str) -> dict[str, str]:
    """SHA-256 of the code of each plug-in among these."""
    hashes = {
        "data_set": source_hash("data_sets", data_set, LOADERS),
        "model": source_hash("models", model, MODELS),
        "objective": source_hash("objectives", objective, LOSSES),
    }
    return {part: sha256 for part, sha256 in hashes.items() if sha256 is not None}


def check_sources(spec: Spec) -> None:
    """Refuse plug-ins whose code is not that which the spec was made with: the run would not be what its key says."""
    present = plugin_sources(spec.data_set, spec.model, spec.objective)
    for part, sha256 in spec.training.get(SOURCES, {}).items():
        if present.get(part) != sha256:
            raise ValueError(
                f"{part} {getattr(spec, part)!r} must be the code that run {spec.key[:12]} was planned with, got "
                "code that has changed since; restore it, or start the study again for a run of its own"
            )


def loss_builder(objective: str) -> Callable[..., nn.Module]:
    """What is called with an objective's options to make the loss: of LOSSES, or `package.module:Name`."""
    return resolve("objectives", objective, LOSSES)


def build_loss(objective: str, options: Mapping[str, Any]) -> nn.Module:
    """The loss of that name."""
    loss = loss_builder(objective)(**options)
    if not isinstance(loss, nn.Module):
        raise TypeError(f"objective {objective!r} must give an nn.Module, got {type(loss).__name__}; subclass it")
    return loss


def known_options(objective: str) -> dict[str, Any]:
    """The hyper-parameters of an objective and their defaults, `Parameter.empty` for those without.

    >>> known_options("fcl")
    {'gamma': 3.0, 'lam': 1.0, 'scale': 'paper', 'label_smoothing': 0.0}
    """
    return {parameter.name: parameter.default for parameter in _hyper_parameters(objective)}


@cache
def _hyper_parameters(objective: str) -> tuple[Parameter, ...]:
    parameters = signature(loss_builder(objective)).parameters.values()
    named = [parameter for parameter in parameters if parameter.kind not in _CATCH_ALL]
    return tuple(parameter for parameter in named if parameter.name not in _OF_THE_LOOP)


def objective_options(objective: str, given: Options, recipe: Recipe) -> dict[str, Any]:
    """The options of the objective: as given, else the setting's point, else its default.

    All of them, but for keyword-only ones of the package's losses at their default: so a loss can gain an option
    without a run that was stored before getting another key.
    """
    known, chosen = known_options(objective), dict(given)
    for name in chosen:
        if name not in known:
            raise ValueError(unknown_name(f"an option of {objective}", name, known))
    point = fcl_point(recipe.data_set, recipe.model)
    if objective in CALIBRATION_LOSSES and point is not None:
        known |= point._asdict()
    known |= chosen
    if lacking := [name for name, value in known.items() if value is Parameter.empty]:
        raise ValueError(f"{objective} must be given {', '.join(lacking)}, which has no default; add it to its options")
    resolved: dict[str, Any] = {}
    for parameter in sorted(_hyper_parameters(objective), key=lambda parameter: parameter.name):
        try:
            value = plain(known[parameter.name])
        except ValueError as error:
            raise ValueError(f"{parameter.name} {error}") from None
        later = objective in LOSSES and parameter.kind is Parameter.KEYWORD_ONLY
        if not later or value != parameter.default:
            resolved[parameter.name] = value
    return resolved


def is_multilabel(model: str) -> bool:
    """Whether the network gives one probability per label, so that its loss has to be a multilabel one."""
    return model_info(model).multilabel


def has_validation(data_set: str, options: Options) -> bool:
    """Whether the data set, loaded with these options, holds examples out for validation; yes where it does not say."""
    return bool({"validation": 1, **data_options(data_set), **dict(options)}["validation"])


def unknown_options(recipe: Recipe) -> Iterator[tuple[str, str, str]]:
    """Options that the loader or the network does not have: the recipe's field, the option, what is wrong."""
    known = [option for option in model_options(recipe.model) if option not in ("embedding", "pretrained")]
    tables = (
        ("data_options", recipe.data_set, list(data_options(recipe.data_set))),
        ("model_options", recipe.model, known),
    )
    for field, owner, names in tables:
        for option in dict(getattr(recipe, field)):
            if option not in names:
                yield field, option, unknown_name(f"an option of {owner}", option, names)


def pair_problem(recipe: Recipe, objective: str, loss: nn.Module) -> str | None:
    """Why the objective cannot be trained with this recipe, if it cannot."""
    multilabel = is_multilabel(recipe.model)
    wanted = [name for name in LOSSES if name.startswith("multilabel_") == multilabel]
    if objective in LOSSES and objective not in wanted:
        kind = "any number of labels" if multilabel else "one label"
        return (
            f"objective must suit {recipe.model} on {recipe.data_set}, where an example has {kind}, got {objective!r}; "
            f"use one of {', '.join(wanted)}"
        )
    if objective != "ce" and is_estimator(model_builder(recipe.model)):
        return f"objective must be ce for {recipe.model}, which has a loss of its own, got {objective!r}; leave it out"
    steered = objective if callable(getattr(loss, "update", None)) else None
    needs = steered or (f"keep = {recipe.keep!r}" if recipe.keep != "last" else None)
    if needs and not has_validation(recipe.data_set, recipe.data_options):
        return (
            f"{needs} needs validation examples, and this recipe holds none of {recipe.data_set} out; "
            "set data_options.validation, e.g. 5000"
        )
    if recipe.keep != "last" and multilabel:
        return f"keep must be 'last' for {recipe.model}, where an example has any number of labels, got {recipe.keep!r}"
    return None


def saliency_problem(model: str, evaluations: Evaluations) -> str | None:
    """Why such a network cannot have these saliency maps, whatever the data."""
    if not evaluations.saliency or model_info(model).feature_layer is not None:
        return None
    able = ", ".join(name for name, info in MODEL_INFO.items() if info.feature_layer is not None)
    return (
        f"saliency must be 0 for {model}, which has no feature maps, got {evaluations.saliency}; "
        f"networks that have: {able}"
    )


def check_evaluations(model: str, evaluations: Evaluations) -> None:
    """Refuse evaluations that such a network cannot have, whatever the data."""
    for shift in evaluations.shifts:
        if shift not in SHIFTS:
            raise ValueError(f"shifts: {unknown_name('a shift', shift, SHIFTS)}")
    problem = saliency_problem(model, evaluations)
    if problem is not None:
        raise ValueError(problem)
