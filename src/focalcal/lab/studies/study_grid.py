"""The lists of a study crossed: every recipe with every objective, option and seed, checked before a spec is built."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from inspect import Parameter
from itertools import chain, product
from math import prod
from pathlib import Path
from typing import Any

from focalcal.core.checks import unknown_name
from focalcal.lab.store.spec import EVERYTHING, NOTHING_MORE, Evaluations, Protocol, Spec
from focalcal.lab.studies.own_data import own_fingerprint
from focalcal.lab.studies.spec_builder import (
    build_loss,
    has_validation,
    known_options,
    objective_options,
    override_recipe,
    pair_problem,
    saliency_problem,
    shrink_recipe,
    training_of,
    unknown_options,
)
from focalcal.lab.studies.study_schema import ObjectivesTable, ProtocolTable, SettingsTable, StudyTable
from focalcal.lab.training import RECIPES
from focalcal.lab.training.recipe import Recipe

KeyPath = tuple[str | int, ...]
_MOST_CELLS = 100_000  # half a gigabyte to plan, and months to train
_PROTOCOL_FIELDS = [field.name for field in fields(Protocol)]


@dataclass(frozen=True)
class Fault:
    """What is wrong, and the path of the key, such as ("settings", 0, "optimizer", "lr")."""

    path: KeyPath
    message: str


@dataclass(frozen=True)
class Setting:
    """A recipe with its overrides, where it is named, and its own objectives if it has any in place of the study's."""

    path: KeyPath
    recipe: Recipe
    objectives: tuple[Objective, ...] = ()


@dataclass(frozen=True)
class Objective:
    """A loss, those of its options that the study states, or in a pair all, and where it is named."""

    path: KeyPath
    name: str
    options: Mapping[str, Any]


@dataclass(frozen=True)
class StudyGrid:
    """The cells of a study at one of its two sizes, and what is wrong with it beyond the form of its tables."""

    pairs: Sequence[tuple[Setting, Objective]]
    seeds: Sequence[int]
    protocol: Protocol
    evaluations: Evaluations
    faults: Sequence[Fault]

    def specs(self, data_dir: Path | None = None) -> tuple[Spec, ...]:
        """A spec for each pair and seed, each once; seeds vary slower than the pairs of one setting.

        Data that are not shipped are loaded from `data_dir`, once each, for their fingerprints.
        """
        by_setting: dict[KeyPath, list[dict[str, Any]]] = {}
        fingerprints: dict[Any, str | None] = {}
        for setting, objective in self.pairs:
            recipe = setting.recipe
            if (data := (recipe.data_set, recipe.data_options)) not in fingerprints:
                partial = self.protocol.allow_partial
                fingerprints[data] = own_fingerprint(recipe, allow_partial=partial, data_dir=data_dir)
            cell = {
                "data_set": recipe.data_set,
                "model": recipe.model,
                "objective": objective.name,
                "objective_options": objective.options,
                "training": training_of(recipe, objective.name, fingerprints[data]),
                "protocol": self.protocol,
            }
            by_setting.setdefault(setting.path, []).append(cell)
        products = (product(self.seeds, cells) for cells in by_setting.values())
        return tuple(dict.fromkeys(Spec(seed=seed, **cell) for seed, cell in chain.from_iterable(products)))


def build_grid(study: StudyTable, *, smoke: bool = False) -> StudyGrid:
    """Everything that the study's tables ask for; what is wrong is left out and told."""
    small = study.smoke
    settings_at = ("smoke", "settings") if smoke and small.settings else ("settings",)
    objectives_at = ("smoke", "objectives") if smoke and small.objectives else ("objectives",)
    faults: list[Fault] = []
    seeds = small.seeds if smoke else study.seeds
    written = small.settings if len(settings_at) > 1 else study.settings
    shared = small.objectives if len(objectives_at) > 1 else study.objectives
    if (count := _count(written, shared, len(seeds))) > _MOST_CELLS:
        message = f"must be at most {_MOST_CELLS:,} cells with the settings and seeds, got {count:,}; divide the study"
        return StudyGrid((), seeds, EVERYTHING, NOTHING_MORE, [Fault(("smoke",) if smoke else objectives_at, message)])
    settings = _settings(written, settings_at, faults)
    objectives = _objectives(shared, objectives_at, faults)
    protocol, evaluations = _rules(study.protocol, EVERYTHING, NOTHING_MORE)
    if smoke:
        size: dict[str, Any] = {
            "train_examples": small.train_examples,
            "test_examples": small.test_examples,
            "allow_partial": True,
        }
        protocol, evaluations = _rules(small.protocol, replace(protocol, **size), evaluations)
        settings = [
            replace(setting, recipe=shrink_recipe(setting.recipe, epochs=small.epochs, batch_size=small.batch_size))
            for setting in settings
        ]
        crossed = _cover([setting for setting in settings if not setting.objectives], objectives)
        crossed += [pair for setting in settings for pair in _cover([setting], setting.objectives)]
    else:
        faults += _temperature_faults(study, settings)
        crossed = [(setting, each) for setting in settings for each in setting.objectives or objectives]
    pairs = _pairs(crossed, faults)
    of_saliency = ("smoke",) if smoke and "saliency" in small.protocol.model_fields_set else ()
    for model in dict.fromkeys(setting.recipe.model for setting in settings):
        if (problem := saliency_problem(model, evaluations)) is not None:
            faults.append(Fault((*of_saliency, "protocol", "saliency"), problem))
    return StudyGrid(pairs, seeds, protocol, evaluations, faults)


def _count(settings: Iterable[SettingsTable], objectives: Sequence[ObjectivesTable], seeds: int) -> int:
    """How many cells there would be, without making one."""

    def points(tables: Iterable[ObjectivesTable]) -> int:
        return sum(len(table.name) * prod(map(len, table.options().values())) for table in tables)

    common = points(objectives)
    pairs = sum(len(table.recipe) * (points(table.objectives) if table.objectives else common) for table in settings)
    return max(pairs, common) * seeds


def _settings(tables: Sequence[SettingsTable], at: KeyPath, faults: list[Fault]) -> list[Setting]:
    """Every recipe that is named, with its table's overrides; what is wrong is added to the faults, here and below."""
    settings: list[Setting] = []
    for position, table in enumerate(tables):
        path = (*at, position)
        own = tuple(_objectives(table.objectives, (*path, "objectives"), faults))
        for place, name in enumerate(table.recipe):
            try:
                recipe = override_recipe(RECIPES[name], table.overrides())
            except (TypeError, ValueError) as error:  # of fields that do not go together
                faults.append(Fault(path, _one_line(error)))
                continue
            faults += [Fault((*path, field, option), message) for field, option, message in unknown_options(recipe)]
            settings.append(Setting((*path, "recipe", place), recipe, own))
    return settings


def _objectives(tables: Sequence[ObjectivesTable], at: KeyPath, faults: list[Fault]) -> list[Objective]:
    """Every objective that is named, once for each combination of its options' values."""
    objectives: list[Objective] = []
    for position, table in enumerate(tables):
        path, options = (*at, position), table.options()
        for place, name in enumerate(table.name):
            wrong = _option_faults(name, options, path)
            faults += wrong
            if not wrong:
                objectives += [
                    Objective((*path, "name", place), name, dict(zip(options, values, strict=True)))
                    for values in product(*options.values())
                ]
    return objectives


def _option_faults(objective: str, options: Mapping[str, Sequence[Any]], path: KeyPath) -> list[Fault]:
    """Each value is tried beside the defaults of the others, or the first value of those without a default."""
    known = known_options(objective)
    faults = [
        Fault((*path, option), unknown_name(f"an option of {objective}", option, known))
        for option in options
        if option not in known
    ]
    faults += [
        Fault((*path, option), "must hold at least one value, got an empty list; leave it out for the default")
        for option, values in options.items()
        if not values
    ]
    usable = {option: values for option, values in options.items() if option in known and values}
    others = {option: values[0] for option, values in usable.items() if known[option] is Parameter.empty}
    for option, values in usable.items():
        for place, value in enumerate(values):
            try:
                build_loss(objective, objective_options(objective, {**others, option: value}, _ANY_RECIPE))
            except (TypeError, ValueError) as error:
                faults.append(Fault((*path, option, place), _one_line(error)))
    return faults


_ANY_RECIPE = next(iter(RECIPES.values()))


def _pairs(crossed: Iterable[tuple[Setting, Objective]], faults: list[Fault]) -> list[tuple[Setting, Objective]]:
    """Those that go together, with every option resolved."""
    pairs: list[tuple[Setting, Objective]] = []
    for setting, objective in crossed:
        try:
            options = objective_options(objective.name, objective.options, setting.recipe)
            problem = pair_problem(setting.recipe, objective.name, build_loss(objective.name, options))
        except (TypeError, ValueError) as error:
            problem = _one_line(error)
        if problem is None:
            pairs.append((setting, replace(objective, options=options)))
        else:
            faults.append(Fault(objective.path, problem))
    return pairs


def _rules(table: ProtocolTable, protocol: Protocol, evaluations: Evaluations) -> tuple[Protocol, Evaluations]:
    """Both with the fields that the table has."""
    written = table.model_dump(exclude_unset=True)
    of_protocol = {name: value for name, value in written.items() if name in _PROTOCOL_FIELDS}
    others = {name: value for name, value in written.items() if name not in _PROTOCOL_FIELDS}
    return replace(protocol, **of_protocol), replace(evaluations, **others)


def _cover(settings: Sequence[Setting], objectives: Sequence[Objective]) -> list[tuple[Setting, Objective]]:
    """Pairs with every setting and every objective in at least one; of a grid of options the last point."""
    last = list({(objective.path, objective.name): objective for objective in objectives}.values())
    if not settings or not last:
        return []
    return [(settings[k % len(settings)], last[k % len(last)]) for k in range(max(len(settings), len(last)))]


def _temperature_faults(study: StudyTable, settings: Iterable[Setting]) -> list[Fault]:
    if study.temperature != "validation":
        return []
    message = "'validation' needs validation examples, and {} holds none out; set data_options.validation, e.g. 5000"
    return [
        Fault(("temperature",), message.format(setting.recipe.data_set))
        for setting in settings
        if not has_validation(setting.recipe.data_set, setting.recipe.data_options)
    ]


def _one_line(error: Exception) -> str:
    return " ".join(str(error).split())
