"""Studies: TOML files with lists to cross, checked as a whole before anything runs."""

from __future__ import annotations

import os
import re
import tomllib
from collections.abc import Iterable, Iterator, Mapping
from functools import cached_property
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal

from pydantic import AfterValidator, Field

from focalcal.core.checks import unknown_name, whole_number
from focalcal.core.schema import UNSET, Count, Described, Fault, KeyPath, Name, Seed, frozen, validated
from focalcal.lab.store.spec import Evaluations, Spec
from focalcal.lab.studies.search_space import dimension
from focalcal.lab.studies.shipped import shipped_file, shipped_names
from focalcal.lab.studies.study_grid import CellLabel, StudyGrid, build_grid

_DEEP_KEY = re.compile(r"(?<![\w'\"-])(?:[\w'\"-]++[ \t]*+\.[ \t]*+){100}")  # a.a.a...
_STAND_IN = {"title": "?", "seeds": [0], "settings": [{}]}  # of what is missing or faulty, to check the rest

Seeds = Annotated[tuple[Seed, ...], Field(min_length=1)]
Tables = tuple[dict[str, Any], ...]


class StudyError(ValueError):
    """A study that cannot be run. Its text has one line per fault: `file.toml: settings[0].optimizer.lr: what`."""

    def __init__(self, faults: Iterable[Fault], file: str, written: Mapping[str, Any]) -> None:
        places = {path: place for place, path in enumerate(_paths(written))}
        found = dict.fromkeys(Fault(_as_written(fault.path, places), fault.message) for fault in faults)
        # In the order of the file; what is not there comes last in its table.
        self.faults = tuple(sorted(found, key=lambda fault: _position(fault.path, places)))
        super().__init__("\n".join(f"{file}: {fault}" for fault in self.faults))


@frozen
class Smoke(Described):
    """`[smoke]`: the size at which everything is tried in seconds.

    Every setting and every objective occurs, not every pair of them, and one point of each grid of options. `settings`
    and `objectives` replace the study's. Incomplete data sets will do.
    """

    epochs: Count = 1
    batch_size: Count = 8
    train_examples: Count = 16
    test_examples: Count = 16
    seeds: Seeds = (0,)
    settings: Tables = ()
    objectives: Tables = ()
    protocol: dict[str, Any] = Field(default_factory=dict)


_AROUND = {"low": 0.125, "high": 8.0, "log": True}


def _space(value: Any) -> Any:
    dimension(value)
    return value


@frozen
class Tuning(Described):
    """`[tune]`: how the options of every objective are chosen, with the same number of trials for each.

    trials         of each objective in each setting; the first has the recipe's values and the objective's defaults
    learning_rate  where it is searched, in multiples of the recipe's: a list, or { low = ..., high = ..., log = true }
    weight_decay   likewise; of a recipe without any in multiples of 1e-4
    select         "scaled_nll", validation NLL after a temperature, cross-fitted, or "nll", as it is
    seed           of the sequence of points
    """

    trials: Count = 16
    learning_rate: Annotated[Any, AfterValidator(_space)] = Field(default_factory=lambda: dict(_AROUND))
    weight_decay: Annotated[Any, AfterValidator(_space)] = Field(default_factory=lambda: dict(_AROUND))
    select: Literal["scaled_nll", "nll"] = "scaled_nll"
    seed: Seed = 0


@frozen
class Study(Described):
    """What a study's file says. `specs()` are its cells, which are crossed once per size.

    settings, objectives  as tables: each names one recipe or several with fields to change, or objectives with lists of
                          options; `study_grid` crosses them
    protocol              fields of `Protocol`, which are part of a run, and of `Evaluations`
    temperature           where reports fit temperatures
    section               what makes another section of the report, `package.module:function`; "" for none
    candidate             the objective that reports are about, by its label or its loss; None: fcl, else the first that
                          is not ce
    tune                  how options are chosen before the seeds are trained: `focalcal tune` then, not `study`

    Data that are not shipped are loaded from `data_dir`, or where FOCALCAL_DATA points, for their fingerprints.
    """

    title: Name
    seeds: Seeds
    settings: Annotated[Tables, Field(min_length=1)]
    description: str = ""
    objectives: Tables = ()
    protocol: dict[str, Any] = Field(default_factory=dict)
    temperature: Literal["halves", "validation"] = "halves"
    section: str = ""
    candidate: Annotated[Name | None, UNSET] = None
    tune: Tuning | None = None
    smoke: Smoke = Smoke()

    file: ClassVar[str] = "study.toml"
    data_dir: ClassVar[Path | None] = None

    @property
    def name(self) -> str:
        """The file's name without `.toml`."""
        return Path(self.file).stem

    def specs(self, smoke: bool = False) -> list[Spec]:
        """What every cell trains, each once: setting by setting, seed by seed, in the order of the objectives."""
        return list(self._cells_of(smoke))

    def labels(self, smoke: bool = False) -> dict[str, CellLabel]:
        """By key what the study calls the setting and the objective of a cell, where it does."""
        return {spec.key: label for spec, label in self._cells_of(smoke).items() if any(label)}

    def evaluations(self, smoke: bool = False) -> Evaluations:
        """Those of every trained network; a cell is complete when it has them."""
        return self.grids[smoke].evaluations

    def _cells_of(self, smoke: bool) -> dict[Spec, CellLabel]:
        if smoke not in self._cells:
            self._cells[smoke] = self.grids[smoke].cells(self.data_dir)
        return self._cells[smoke]

    @cached_property
    def _cells(self) -> dict[bool, dict[Spec, CellLabel]]:
        return {}

    @cached_property
    def grids(self) -> dict[bool, StudyGrid]:
        """Its cells and their faults, by whether they are those of the smallest size."""
        return {small: build_grid(self, self.smoke if small else None) for small in (False, True)}


def load_study(
    name_or_path: str | os.PathLike[str], *, seeds: int | None = None, data_dir: Path | None = None
) -> Study:
    """A study, shipped or your own.

    Args:
        name_or_path: the name of a shipped one, or the path of a file: with a folder, or ending in .toml.
        seeds: train with 0, ..., seeds - 1 in place of the seeds that it names.
        data_dir: the folder of the data sets; None: where FOCALCAL_DATA points.

    Returns:
        The study; a faulty file raises `StudyError`.

    >>> len(load_study("digits", seeds=1).specs())
    19
    """
    file = Path(name_or_path)
    if file.suffix != ".toml" and file.parent == Path():
        if str(name_or_path) not in shipped_names():
            known = unknown_name("a study", str(name_or_path), shipped_names())
            raise ValueError(f"{known}. For a file of your own give its path, which ends in .toml")
        file = shipped_file(str(name_or_path))
    try:
        text = file.read_bytes().decode()
    except OSError as error:
        raise OSError(
            error.errno, f"a study must be a file that can be read, got {error.strerror} ({file}); check the path"
        ) from None
    except UnicodeDecodeError as error:
        message = f"must be text in UTF-8, got {error.reason} at byte {error.start}; save it as such"
        raise StudyError([Fault((), message)], str(file), {}) from None
    return parse_study(text, str(file), seeds=seeds, data_dir=data_dir)


def parse_study(
    text: str, file: str = "study.toml", *, seeds: int | None = None, data_dir: Path | None = None
) -> Study:
    """The study of a TOML text. Every fault of it is reported at once, by `StudyError`.

    Args:
        text: the text.
        file: stands in the messages.
        seeds: train with 0, ..., seeds - 1 in place of the seeds that it names.
        data_dir: the folder of the data sets; None: where FOCALCAL_DATA points.

    Returns:
        The study.

    >>> text = '''
    ... title = "Two losses"
    ... seeds = [0, 1]
    ... [[settings]]
    ... recipe = "digits_mlp_lite"
    ... [[objectives]]
    ... name = ["ce", "brier"]
    ... '''
    >>> [spec.name for spec in parse_study(text).specs()][:2]
    ['digits/mlp ce seed 0', 'digits/mlp brier seed 0']
    """
    try:
        if _DEEP_KEY.search(text):  # for which tomllib takes memory quadratic in the depth
            raise RecursionError
        written = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:  # which says line and column
        raise StudyError([Fault((), f"not TOML: {error}")], file, {}) from None
    except RecursionError:
        message = "must be tables and lists of a few levels, got brackets or keys nested too deeply; remove some"
        raise StudyError([Fault((), message)], file, {}) from None
    if seeds is not None:
        written["seeds"] = list(range(whole_number("seeds", seeds, least=1, most=10_000, remedy="10 is usual")))
    study, faults = check_study(written)
    if faults:
        raise StudyError(faults, file, written)
    study._set(file=file, data_dir=data_dir)
    return study


def check_untuned(study: Study) -> None:
    """Refuse a study whose options are still to be searched."""
    if study.tune is not None:
        raise ValueError(
            f"{study.file} must have no [tune] to be run or reported as it is; `focalcal tune {study.file}` searches "
            f"it and writes {study.name}-tuned.toml, which can be"
        )


def check_study(written: Mapping[str, Any]) -> tuple[Study, list[Fault]]:
    """The study of these tables and every fault of it; what is faulty at the top is left out, to check the rest."""
    study, faults = validated(Study, written)
    faulty = {fault.path[0] for fault in faults}
    if study is None:
        kept = {key: value for key, value in written.items() if key not in faulty}
        study, _ = validated(Study, {**_STAND_IN, **kept})
        assert study is not None
    if "objectives" not in written and not all(table.get("objectives") for table in study.settings):
        faults.append(Fault(("objectives",), "must be given"))
    crossed = [fault for grid in study.grids.values() for fault in grid.faults]
    pairs = [objective for grid in study.grids.values() for _, objective in grid.pairs]
    known = dict.fromkeys(name for objective in pairs for name in (objective.label, objective.name) if name)
    if study.candidate is not None and study.candidate not in known and not crossed:
        faults.append(Fault(("candidate",), unknown_name("an objective of this study", study.candidate, known)))
    return study, [*faults, *(fault for fault in crossed if fault.path[0] not in faulty)]


def _paths(written: Any, path: KeyPath = ()) -> Iterator[KeyPath]:
    """Of every key and item, in the order of the file."""
    yield path
    items = written.items() if isinstance(written, dict) else enumerate(written) if isinstance(written, list) else ()
    for part, value in items:
        yield from _paths(value, (*path, part))


def _as_written(path: KeyPath, places: Mapping[KeyPath, int]) -> KeyPath:
    """The path without the place in a list where the file has a single value instead."""
    depths = (depth for depth, part in enumerate(path) if isinstance(part, int) and path[: depth + 1] not in places)
    return path[: next(depths, len(path))]


def _position(path: KeyPath, places: Mapping[KeyPath, int]) -> list[int]:
    return [places.get(path[:depth], len(places)) for depth in range(1, len(path) + 1)]
