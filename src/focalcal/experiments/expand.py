"""The lists of a study crossed: every recipe with every objective, option and seed."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any

from focalcal.experiments.overrides import overridden
from focalcal.experiments.spec_builder import check_evaluations, known_options, objective_options, spec_of, unknown
from focalcal.experiments.study_errors import Fault, attempt
from focalcal.experiments.toml_lines import Path
from focalcal.losses import LOSSES
from focalcal.results.evaluations import NOTHING_MORE, Evaluations
from focalcal.results.spec import EVERYTHING, Protocol, Spec
from focalcal.training import RECIPES
from focalcal.training.recipe import Recipe


@dataclass(frozen=True)
class Entry:
    """A table of the file: where it stands, its names, and what it says beside them."""

    path: Path
    names: Sequence[str]
    others: Mapping[str, Any]


@dataclass(frozen=True)
class Setting:
    """A recipe, by the name it came from, with its overrides."""

    path: Path
    recipe: Recipe


@dataclass(frozen=True)
class Objective:
    """A loss and those of its options that the study states."""

    path: Path
    name: str
    options: Mapping[str, Any]


def settings_of(entries: Iterable[Entry]) -> tuple[list[Setting], list[Fault]]:
    """Every recipe that is named, with its entry's overrides."""
    found, faults = [], []
    for entry in entries:
        for place, name in _places(entry, "recipe"):
            if name not in RECIPES:
                faults.append(Fault(place, unknown("a recipe", name, RECIPES)))
                continue
            recipe, wrong = attempt(_overriding(RECIPES[name]), entry.others, entry.path)
            faults += wrong
            found.append(Setting(place, recipe))
    return found, faults


def objectives_of(entries: Iterable[Entry]) -> tuple[list[Objective], list[Fault]]:
    """Every objective that is named, once for each combination of its options' values."""
    found, faults = [], []
    for entry in entries:
        for place, name in _places(entry, "name"):
            if name not in LOSSES:
                faults.append(Fault(place, unknown("an objective", name, LOSSES)))
                continue
            wrong = [fault for option in entry.others for fault in _option_faults(name, option, entry)]
            faults += wrong
            if not wrong:
                lists = [value if isinstance(value, list) else [value] for value in entry.others.values()]
                found += [
                    Objective(place, name, dict(zip(entry.others, values, strict=True))) for values in product(*lists)
                ]
    return found, faults


@dataclass(frozen=True)
class Rules:
    """What `[protocol]` says: which examples, which is part of a run, and how trained networks are evaluated."""

    protocol: Protocol = EVERYTHING
    evaluations: Evaluations = NOTHING_MORE


DEFAULT_RULES = Rules()


def rules_of(values: Mapping[str, Any], path: Path, base: Rules = DEFAULT_RULES) -> tuple[Rules, list[Fault]]:
    """The rules with these fields instead of those of `base`."""
    parts = base.protocol.as_dict(), base.evaluations.as_dict()

    def make(chosen: Mapping[str, Any]) -> Rules:
        for name in chosen:
            if name not in parts[0] | parts[1]:
                raise ValueError(unknown("a field of the protocol", name, parts[0] | parts[1]))
        examples, evaluations = ({name: chosen.get(name, value) for name, value in part.items()} for part in parts)
        return Rules(Protocol.from_dict(examples), Evaluations.from_dict(evaluations))

    return attempt(make, values, path)


def crossed(
    pairs: Iterable[tuple[Setting, Objective]], seeds: Sequence[int], rules: Rules, of_rules: Path
) -> tuple[list[Spec], list[Fault]]:
    """A spec for each pair and seed, each once; seeds vary slower than the pairs of one setting.

    `of_rules` is where faults of the rules belong.
    """
    specs: dict[Spec, None] = {}
    faults: dict[Fault, None] = {}
    by_setting: dict[Path, list[tuple[Setting, Objective]]] = {}
    for setting, objective in pairs:
        by_setting.setdefault(setting.path, []).append((setting, objective))
    for group in by_setting.values():
        for seed, (setting, objective) in product(seeds, group):
            try:
                spec = spec_of(setting.recipe, objective.name, objective.options, seed=seed, protocol=rules.protocol)
                check_evaluations(setting.recipe, rules.evaluations)
                specs[spec] = None
            except (TypeError, ValueError) as error:
                faults[Fault(_blamed(setting, objective, of_rules, str(error)), str(error))] = None
    return list(specs), list(faults)


def _blamed(setting: Setting, objective: Objective, of_rules: Path, message: str) -> Path:
    table = message.split(" ")[0].rstrip(":")
    if table in ("shifts", "saliency"):
        return (*of_rules, table)
    if table in ("data_options", "model_options"):
        entry = setting.path[: setting.path.index("recipe")]
        return (*entry, table)
    return objective.path


def _places(entry: Entry, key: str) -> list[tuple[Path, str]]:
    return [((*entry.path, key, position), name) for position, name in enumerate(entry.names)]


def _overriding(recipe: Recipe) -> Callable[[dict[str, Any]], Recipe]:
    return lambda values: overridden(recipe, values)


def _option_faults(objective: str, option: str, entry: Entry) -> list[Fault]:
    path, value = (*entry.path, option), entry.others[option]
    if option not in known_options(objective):
        return [Fault(path, unknown(f"an option of {objective}", option, known_options(objective)))]
    if value == []:
        return [Fault(path, "must hold at least one value, got an empty list; leave it out for the default")]
    faults = []
    any_recipe = next(iter(RECIPES.values()))
    for position, one in enumerate(value if isinstance(value, list) else [value]):
        try:
            objective_options(objective, {option: one}, any_recipe)
        except (TypeError, ValueError) as error:
            faults.append(Fault((*path, position), " ".join(str(error).split())))
    return faults
