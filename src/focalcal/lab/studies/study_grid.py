"""The lists of a study crossed: every recipe with every objective, option and seed, checked before a spec is built."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from itertools import chain, product
from math import prod
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

from focalcal.core.checks import unknown_name
from focalcal.core.schema import Fault, KeyPath, among, frozen, validated
from focalcal.lab.store.spec import EVERYTHING, NOTHING_MORE, Evaluations, Protocol, Spec
from focalcal.lab.studies.own_data import own_fingerprint
from focalcal.lab.studies.search_space import SPACE, Dimension, dimension
from focalcal.lab.studies.shifts import SHIFTS
from focalcal.lab.studies.spec_builder import (
    build_loss,
    has_validation,
    is_multilabel,
    known_options,
    objective_options,
    pair_problem,
    saliency_problem,
    shrink_recipe,
    training_of,
    unknown_options,
)
from focalcal.lab.training import RECIPES
from focalcal.lab.training.recipe import Recipe, merged

if TYPE_CHECKING:
    from focalcal.lab.studies.study_file import Smoke, Study, Tables

_MOST_CELLS = 100_000  # half a gigabyte to plan, and months to train
_NO_RECIPE = ("recipe", "objectives", "label")  # keys of a setting that are no fields of its recipe
_SETTING_KEYS = (*_NO_RECIPE, *(field.name for field in fields(Recipe)))
_NO_OPTION = ("name", "label", "training", "search")  # keys of an objective that are no options of its loss
_PROTOCOL = [field.name for field in fields(Protocol)]
_NO_VALUE = "must hold at least one value, got an empty list; leave it out for the default"
_NO_VALIDATION = "'validation' needs validation examples, and {} holds none out; set data_options.validation, e.g. 5000"


@frozen
class _Rules(Protocol, Evaluations):
    """`[protocol]`: which examples, which is part of a run, and what trained networks are evaluated on besides."""

    shifts: tuple[Annotated[str, among("a shift", SHIFTS)], ...] = ()


@dataclass(frozen=True)
class StudySetting:
    """A recipe with its changes, where it is named, and its own objectives if it has any in place of the study's.

    base   the name of the recipe before the changes
    label  what reports call it; "" for its data set and network
    """

    path: KeyPath
    base: str
    recipe: Recipe
    objectives: tuple[StudyObjective, ...] = ()
    label: str = ""


@dataclass(frozen=True)
class StudyObjective:
    """A loss, those of its options that the study states, or in a pair all, and where it and each of them is named.

    label      what reports call it; "" for the loss
    training   changes of the recipe that go with it
    search     where options are searched, and `predicted`, lam as so many times what cross-entropy predicts: of a study
               with `[tune]`; the options of a pair are those that its search begins with
    """

    path: KeyPath
    name: str
    options: Mapping[str, Any]
    places: Mapping[str, KeyPath]
    label: str = ""
    training: Mapping[str, Any] = field(default_factory=dict)
    search: Mapping[str, Dimension] = field(default_factory=dict)
    predicted: float | None = None


class CellLabel(NamedTuple):
    """What a study calls the setting and the objective of a cell; "" where it does not say."""

    setting: str = ""
    objective: str = ""


@dataclass(frozen=True)
class StudyGrid:
    """The cells of a study at one of its two sizes, and what is wrong with it beyond the form of its tables."""

    pairs: Sequence[tuple[StudySetting, StudyObjective]]
    seeds: Sequence[int]
    protocol: Protocol
    evaluations: Evaluations
    faults: Sequence[Fault]

    def cells(self, data_dir: Path | None = None) -> dict[Spec, CellLabel]:
        """A spec for each pair and seed, each once; seeds vary slower than the pairs of one setting.

        Data that are not shipped are loaded from `data_dir`, once each, for their fingerprints.
        """
        by_setting: dict[KeyPath, list[tuple[dict[str, Any], CellLabel]]] = {}
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
            by_setting.setdefault(setting.path, []).append((cell, CellLabel(setting.label, objective.label)))
        products = (product(self.seeds, cells) for cells in by_setting.values())
        labels: dict[Spec, CellLabel] = {}
        for seed, (cell, label) in chain.from_iterable(products):
            labels.setdefault(Spec(seed=seed, **cell), label)
        return labels


def build_grid(study: Study, smoke: Smoke | None = None) -> StudyGrid:
    """Everything that the study's tables ask for, at the size of `smoke` if that is given; what is wrong is told."""
    own_settings, own_objectives = smoke is not None and smoke.settings, smoke is not None and smoke.objectives
    settings_at: KeyPath = ("smoke", "settings") if own_settings else ("settings",)
    objectives_at: KeyPath = ("smoke", "objectives") if own_objectives else ("objectives",)
    written, shared = own_settings or study.settings, own_objectives or study.objectives
    seeds = study.seeds if smoke is None else smoke.seeds
    if (count := _count(written, shared) * len(seeds)) > _MOST_CELLS:
        message = f"must be at most {_MOST_CELLS:,} cells with the settings and seeds, got {count:,}; divide the study"
        return StudyGrid((), seeds, EVERYTHING, NOTHING_MORE, [Fault(("smoke",) if smoke else objectives_at, message)])
    faults: list[Fault] = []
    settings = _settings(written, settings_at, faults)
    objectives = _objectives(shared, objectives_at, faults)
    protocol, evaluations = _rules(study, smoke, faults)
    if smoke is None:
        crossed = [(setting, each) for setting in settings for each in setting.objectives or objectives]
        if study.temperature == "validation":
            recipes = [setting.recipe for setting in settings]
            lacking = [one.data_set for one in recipes if not has_validation(one.data_set, one.data_options)]
            faults += [Fault(("temperature",), _NO_VALIDATION.format(name)) for name in lacking]
    else:
        settings = [
            replace(setting, recipe=shrink_recipe(setting.recipe, epochs=smoke.epochs, batch_size=smoke.batch_size))
            for setting in settings
        ]
        crossed = _cover([setting for setting in settings if not setting.objectives], objectives)
        crossed += [pair for setting in settings for pair in _cover([setting], setting.objectives)]
    of_saliency = ("smoke",) if smoke is not None and "saliency" in smoke.protocol else ()
    for model in dict.fromkeys(setting.recipe.model for setting in settings):
        if (problem := saliency_problem(model, evaluations)) is not None:
            faults.append(Fault((*of_saliency, "protocol", "saliency"), problem))
    if study.tune is None:
        searched = [objective for _, objective in crossed if objective.search or objective.predicted is not None]
        message = "needs the table [tune] of the study; add it"
        faults += [Fault((*objective.path[:-2], "search"), message) for objective in searched]
    else:
        faults += _faults_of_tuning(settings, crossed)
    return StudyGrid(_pairs(crossed, faults), seeds, protocol, evaluations, list(dict.fromkeys(faults)))


def _faults_of_tuning(
    settings: Iterable[StudySetting], crossed: Iterable[tuple[StudySetting, StudyObjective]]
) -> Iterator[Fault]:
    """What a study with `[tune]` needs besides: validation rows, settings that can be told apart, cross-entropy."""
    places: dict[str, KeyPath] = {}
    for setting in settings:
        recipe = setting.recipe
        if not has_validation(recipe.data_set, recipe.data_options):
            yield Fault(
                ("tune",),
                f"needs validation rows, and {recipe.data_set} holds none out; set data_options.validation, e.g. 2000",
            )
        if is_multilabel(recipe.model):
            yield Fault(("tune",), f"needs one label per example, and {recipe.model} gives several; remove the setting")
        place = setting.label or f"{recipe.data_set}/{recipe.model}"
        if places.setdefault(place, setting.path) != setting.path:
            message = f"must be given, since there is another setting {place!r}: each has options of its own"
            yield Fault((*setting.path[:2], "label"), message)
    compared = {setting.path for setting, objective in crossed if objective.name == "ce"}
    for setting, objective in crossed:
        if objective.predicted is not None and setting.path not in compared:
            yield Fault(objective.places["lam"], "needs the objective ce in the same setting, which predicts it")


def _listed(value: Any) -> list[Any]:
    return value if isinstance(value, list) else [value]


def _count(settings: Tables, objectives: Tables) -> int:
    """How many pairs there would be, without making one."""

    def points(tables: Iterable[Any]) -> int:
        return sum(prod(len(_listed(value)) for value in table.values()) for table in tables if isinstance(table, dict))

    common = points(objectives)
    own = (points(_listed(table.get("objectives", []))) or common for table in settings)
    pairs = sum(len(_listed(table.get("recipe"))) * count for table, count in zip(settings, own, strict=True))
    return max(pairs, common)


def _names(table: Mapping[str, Any], key: str, path: KeyPath, faults: list[Fault]) -> Iterator[tuple[KeyPath, str]]:
    """Each name that a table gives, one or a list, and its path."""
    if key not in table:
        faults.append(Fault((*path, key), "must be given"))
        return
    names = _listed(table[key])
    if not names or not all(isinstance(name, str) for name in names):
        faults.append(Fault((*path, key), f"must be a name or a list of names, got {table[key]!r}"))
        return
    for place, name in enumerate(names):
        yield (*path, key, place), name


def _settings(tables: Tables, at: KeyPath, faults: list[Fault]) -> list[StudySetting]:
    """Every recipe that is named, with its table's changes; what is wrong is added to the faults, here and below."""
    settings: list[StudySetting] = []
    for position, table in enumerate(tables):
        path = (*at, position)
        unknown = [key for key in table if key not in _SETTING_KEYS]
        faults += [Fault((*path, key), unknown_name("a key here", key, _SETTING_KEYS)) for key in unknown]
        changes = {key: value for key, value in table.items() if key in _SETTING_KEYS and key not in _NO_RECIPE}
        label = _label(table, path, faults)
        own = tuple(_objectives(table.get("objectives", []), (*path, "objectives"), faults))
        for place, name in _names(table, "recipe", path, faults):
            if name not in RECIPES:
                faults.append(Fault(place, unknown_name("a recipe", name, RECIPES)))
                continue
            recipe, found = validated(Recipe, merged(RECIPES[name], changes), path)
            faults += found
            if recipe is not None:
                faults += [Fault((*path, field, option), message) for field, option, message in unknown_options(recipe)]
            # To check the objectives in any case.
            settings.append(StudySetting(place, name, recipe or RECIPES[name], own, label))
    return settings


def _label(table: Mapping[str, Any], path: KeyPath, faults: list[Fault]) -> str:
    label = table.get("label", "")
    if not isinstance(label, str) or (label and not label.strip()):
        faults.append(Fault((*path, "label"), f"must be a text, got {label!r}"))
        return ""
    if label and any(isinstance(table.get(key), list) and len(table[key]) > 1 for key in ("recipe", "name")):
        faults.append(Fault((*path, "label"), f"must be of one, got {label!r} for several; give each its own table"))
    return label


def _objectives(tables: Any, at: KeyPath, faults: list[Fault]) -> list[StudyObjective]:
    """Every objective that is named, once for each combination of its options' values."""
    objectives: list[StudyObjective] = []
    if not isinstance(tables, list | tuple) or not all(isinstance(table, dict) for table in tables):
        faults.append(Fault(at, f"must be a list of tables, got {tables!r}"))
        return objectives
    for position, table in enumerate(tables):
        path = (*at, position)
        options = {option: _listed(values) for option, values in table.items() if option not in _NO_OPTION}
        label, training = _label(table, path, faults), table.get("training", {})
        if not isinstance(training, dict):
            faults.append(Fault((*path, "training"), f"must be a table of a recipe's fields, got {training!r}"))
            training = {}
        predicted = _predicted(options, path, faults)
        for place, name in _names(table, "name", path, faults):
            try:
                known = known_options(name)
            except ValueError as error:
                faults.append(Fault(place, str(error)))
                continue
            wrong = {
                option: unknown_name(f"an option of {name}", option, known) for option in set(options) - set(known)
            }
            wrong |= {option: _NO_VALUE for option, values in options.items() if option in known and not values}
            faults += [Fault((*path, option), message) for option, message in wrong.items()]
            right = {option: values for option, values in options.items() if option not in wrong}
            search = _search(table.get("search"), name, known, options, path, faults)
            for points in product(*map(enumerate, right.values())):
                places = {option: (*path, option, point[0]) for option, point in zip(right, points, strict=True)}
                values = {option: point[1] for option, point in zip(right, points, strict=True)}
                objectives.append(StudyObjective(place, name, values, places, label, training, search, predicted))
    return objectives


def _predicted(options: dict[str, list[Any]], path: KeyPath, faults: list[Fault]) -> float | None:
    """The factor of `lam = { predicted = 0.5 }`, which 1 stands for until it is known."""
    given = next(iter(options.get("lam", [])), None)
    if not isinstance(given, dict):
        return None
    factor = given.get("predicted")
    if set(given) != {"predicted"} or isinstance(factor, bool) or not isinstance(factor, int | float) or factor <= 0:
        faults.append(Fault((*path, "lam"), f"must be {{ predicted = FACTOR }} with a factor above 0, got {given!r}"))
        factor = 1.0
    if len(options.get("gamma", [])) != 1:
        faults.append(Fault((*path, "gamma"), "must be given, one value, where lam is predicted for it"))
    options["lam"] = [1.0]
    return float(factor)


def _search(
    given: Any, name: str, known: Mapping[str, Any], options: Mapping[str, Any], path: KeyPath, faults: list[Fault]
) -> dict[str, Dimension]:
    """The options that are searched, and where."""
    if given is None:
        return {}
    if given == "default" and name in SPACE:
        return {option: where for option, where in SPACE[name].items() if option not in options}
    if not isinstance(given, dict):
        message = f"must be a table from options to their values, or 'default' for {', '.join(SPACE)}, got {given!r}"
        faults.append(Fault((*path, "search"), message))
        return {}
    space: dict[str, Dimension] = {}
    for option, values in given.items():
        place = (*path, "search", option)
        if option not in known:
            faults.append(Fault(place, unknown_name(f"an option of {name}", option, known)))
        elif option in options:
            faults.append(Fault(place, f"must not be given as an option too, got {options[option][0]!r} there"))
        else:
            try:
                space[option] = dimension(values)
            except ValueError as error:
                faults.append(Fault(place, str(error)))
    return space


def _pairs(
    crossed: Iterable[tuple[StudySetting, StudyObjective]], faults: list[Fault]
) -> list[tuple[StudySetting, StudyObjective]]:
    """Those that go together, with every option resolved."""
    pairs: list[tuple[StudySetting, StudyObjective]] = []
    losses: dict[str, Any] = {}  # each built once, so that it can refuse its options
    for setting, objective in crossed:
        if objective.training:
            path = (*objective.path[:-2], "training")
            recipe, found = validated(Recipe, merged(setting.recipe, objective.training), path)
            faults += [fault for fault in found if fault not in faults]
            setting = replace(setting, recipe=recipe or setting.recipe)  #
        try:
            known = known_options(objective.name)
            start = {option: where.start(known[option]) for option, where in objective.search.items()}
            options = objective_options(objective.name, {**objective.options, **start}, setting.recipe)
            which = repr((objective.name, options))
            if which not in losses:
                losses[which] = build_loss(objective.name, options)
            for option, where in objective.search.items():
                for value in where.ends:
                    build_loss(objective.name, {**options, option: value})
            problem = pair_problem(setting.recipe, objective.name, losses[which])
        except (TypeError, ValueError) as error:
            problem = " ".join(str(error).split())
        if problem is None:
            pairs.append((setting, replace(objective, options=options)))
        else:  # a loss names the option that it refuses
            faults.append(Fault(objective.places.get(problem.partition(" ")[0], objective.path), problem))
    return pairs


def _rules(study: Study, smoke: Smoke | None, faults: list[Fault]) -> tuple[Protocol, Evaluations]:
    """What `[protocol]` says, and for the smallest size `[smoke]` and `[smoke.protocol]` over it."""
    rules, found = validated(_Rules, study.protocol, ("protocol",))
    if smoke is not None and not found:
        size = {"train_examples": smoke.train_examples, "test_examples": smoke.test_examples, "allow_partial": True}
        rules, found = validated(_Rules, {**study.protocol, **size, **smoke.protocol}, ("smoke", "protocol"))
    faults += found
    if rules is None:
        return EVERYTHING, NOTHING_MORE
    values = {field.name: getattr(rules, field.name) for field in fields(_Rules)}
    return Protocol(**{name: values[name] for name in _PROTOCOL}), Evaluations(
        **{name: value for name, value in values.items() if name not in _PROTOCOL}
    )


def _cover(
    settings: Sequence[StudySetting], objectives: Sequence[StudyObjective]
) -> list[tuple[StudySetting, StudyObjective]]:
    """Pairs with every setting and every objective in at least one; of a grid of options the last point."""
    last = list({(objective.path, objective.name): objective for objective in objectives}.values())
    if not settings or not last:
        return []
    return [(settings[k % len(settings)], last[k % len(last)]) for k in range(max(len(settings), len(last)))]
