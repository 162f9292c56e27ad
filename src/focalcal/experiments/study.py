"""Studies: TOML files with lists to cross, checked as a whole before anything runs."""

from __future__ import annotations

import os
import re
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from difflib import get_close_matches
from pathlib import Path
from typing import Annotated, Any, Literal, TypeVar

from focalcal.experiments.expand import Entry, Objective, Setting, crossed, objectives_of, rules_of, settings_of
from focalcal.experiments.overrides import shrunk
from focalcal.experiments.shipped import shipped_file, shipped_names
from focalcal.experiments.spec_builder import has_validation, unknown
from focalcal.experiments.study_errors import Fault, StudyError
from focalcal.experiments.toml_lines import Path as KeyPath
from focalcal.experiments.toml_lines import line_numbers
from focalcal.results.evaluations import Evaluations
from focalcal.results.spec import Spec

try:
    from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, PrivateAttr, ValidationError
except ModuleNotFoundError as error:
    raise ModuleNotFoundError(
        "Studies need the package pydantic: pip install 'focalcal[study]'", name="pydantic"
    ) from error

_Named = Annotated[
    list[str], BeforeValidator(lambda value: [value] if isinstance(value, str) else value), Field(min_length=1)
]
_Seed = Annotated[int, Field(ge=0, lt=2**53)]
_Seeds = Annotated[list[_Seed], Field(min_length=1)]
_Count = Annotated[int, Field(ge=1)]
_STRICT = ConfigDict(strict=True, extra="forbid", frozen=True)
_OPEN = ConfigDict(strict=True, extra="allow", frozen=True)


class SettingsTable(BaseModel):
    """`[[settings]]`: one recipe or several, and fields of theirs to override."""

    model_config = _OPEN
    recipe: _Named


class ObjectivesTable(BaseModel):
    """`[[objectives]]`: one objective or several, and options of theirs, each a value or a list to cross."""

    model_config = _OPEN
    name: _Named


class Smoke(BaseModel):
    """`[smoke]`: the size at which everything is tried in seconds.

    Every setting and every objective occurs, not every pair of them, and one point of each grid of options. `settings`
    and `objectives` replace the study's. Incomplete data sets will do.
    """

    model_config = _STRICT
    epochs: _Count = 1
    batch_size: _Count = 8
    train_examples: _Count = 16
    test_examples: _Count = 16
    seeds: _Seeds = [0]
    settings: list[SettingsTable] = []
    objectives: list[ObjectivesTable] = []
    protocol: dict[str, Any] = {}


class Study(BaseModel):
    """What a study's file says. `specs()` are its cells."""

    model_config = _STRICT
    title: Annotated[str, Field(min_length=1)]
    description: str = ""
    seeds: _Seeds
    settings: Annotated[list[SettingsTable], Field(min_length=1)]
    objectives: Annotated[list[ObjectivesTable], Field(min_length=1)]
    protocol: dict[str, Any] = {}
    temperature: Literal["halves", "validation"] = "halves"
    smoke: Smoke = Smoke()
    _file: str = PrivateAttr("study")
    _lines: dict[KeyPath, int] = PrivateAttr(default_factory=dict)
    _built: dict[bool, tuple[list[Spec], Evaluations]] = PrivateAttr(default_factory=dict)

    @property
    def name(self) -> str:
        """Its file's name without `.toml`."""
        return Path(self._file).stem

    def specs(self, smoke: bool = False) -> list[Spec]:
        """What every cell trains, each once: setting by setting, seed by seed, in the order of the objectives."""
        return list(self._cells(smoke)[0])

    def evaluations(self, smoke: bool = False) -> Evaluations:
        """Those of every trained network; a cell is complete when it has them."""
        return self._cells(smoke)[1]

    def _cells(self, smoke: bool) -> tuple[list[Spec], Evaluations]:
        if smoke not in self._built:
            specs, evaluations, faults = _cells(self.model_dump(), smoke)
            if faults:
                raise StudyError(faults, self._file, self._lines)
            self._built[smoke] = specs, evaluations
        return self._built[smoke]


def load_study(name_or_path: str | os.PathLike[str]) -> Study:
    """The shipped study of that name, or the file of that path (with a folder or ending in .toml)."""
    file = Path(name_or_path)
    if file.suffix != ".toml" and file.parent == Path():
        if str(name_or_path) not in shipped_names():
            known = unknown("a study", str(name_or_path), shipped_names())
            raise ValueError(f"{known}. For a file of your own give its path, which ends in .toml")
        file = shipped_file(str(name_or_path))
    try:
        content = file.read_bytes()
    except OSError as error:
        raise OSError(
            error.errno, f"a study must be a file that can be read, got {error.strerror} ({file}); check the path"
        ) from None
    try:
        text = content.decode()
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        raise StudyError([Fault((), "must be text in UTF-8; save it as such")], str(file), {(): line}) from None
    return study_of(text, str(file))


def study_of(text: str, file: str = "study.toml") -> Study:
    """The study of a TOML text; `file` stands in the messages. Every fault of it is reported at once."""
    try:
        written = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise _syntax_error(error, text, file) from None
    lines = line_numbers(text)
    try:
        study = Study.model_validate(written)
        faults: list[Fault] = []
    except ValidationError as error:
        study, faults = None, [_fault(one) for one in error.errors()]
    for smoke in (False, True):
        faults += _cells(written, smoke)[2]
    faults += _temperature_faults(written)
    if faults or study is None:
        raise StudyError(faults, file, lines)
    study._file, study._lines = file, lines
    return study


def _cells(written: Mapping[str, Any], smoke: bool) -> tuple[list[Spec], Evaluations, list[Fault]]:
    """What to train and to evaluate, of what is well formed, and what is wrong with the rest beyond its form."""
    small = Smoke()
    if smoke and "smoke" in written:
        try:
            small = Smoke.model_validate(written["smoke"])
        except ValidationError:
            return [], Evaluations(), []  # said already
    settings_at = ("smoke", "settings") if smoke and small.settings else ("settings",)
    objectives_at = ("smoke", "objectives") if smoke and small.objectives else ("objectives",)
    settings, faults = settings_of(_entries(written, settings_at, SettingsTable, "recipe"))
    objectives, wrong = objectives_of(_entries(written, objectives_at, ObjectivesTable, "name"))
    rules, unfit = rules_of(_table(written, "protocol"), ("protocol",))
    faults = faults + wrong + unfit
    seeds: Sequence[int] = _seeds(written)
    if smoke:
        size = {"train_examples": small.train_examples, "test_examples": small.test_examples, "allow_partial": True}
        rules, unfit = rules_of({**size, **small.protocol}, ("smoke", "protocol"), rules)
        faults, seeds = faults + unfit, small.seeds
        settings = [
            Setting(one.path, shrunk(one.recipe, epochs=small.epochs, batch_size=small.batch_size)) for one in settings
        ]
        pairs = _covering(settings, objectives)
    else:
        pairs = [(setting, objective) for setting in settings for objective in objectives]
    specs, wrong = crossed(pairs, seeds, rules, ("smoke", "protocol") if smoke and small.protocol else ("protocol",))
    return specs, rules.evaluations, faults + wrong


def _covering(settings: Sequence[Setting], objectives: Sequence[Objective]) -> list[tuple[Setting, Objective]]:
    """Pairs with every setting and every objective in at least one; of a grid of options the last point."""
    last = list({(one.path, one.name): one for one in objectives}.values())
    if not settings or not last:
        return []
    return [(settings[k % len(settings)], last[k % len(last)]) for k in range(max(len(settings), len(last)))]


M = TypeVar("M", bound=BaseModel)


def _entries(written: Mapping[str, Any], at: KeyPath, form: type[M], names: str) -> Iterator[Entry]:
    """The tables at this path that have the right form; the form of the others is complained about elsewhere."""
    tables: Any = written
    for key in at:
        tables = tables.get(key, {}) if isinstance(tables, Mapping) else {}
    for position, table in enumerate(tables if isinstance(tables, list) else []):
        try:
            checked = form.model_validate(table).model_dump()
        except ValidationError:
            continue
        yield Entry((*at, position), checked.pop(names), checked)


def _table(written: Mapping[str, Any], key: str) -> Mapping[str, Any]:
    table = written.get(key, {})
    return table if isinstance(table, Mapping) else {}


def _seeds(written: Mapping[str, Any]) -> Sequence[int]:
    seeds = written.get("seeds")
    return [one for one in seeds if type(one) is int and one >= 0] if isinstance(seeds, list) else []


def _temperature_faults(written: Mapping[str, Any]) -> list[Fault]:
    if written.get("temperature") != "validation":
        return []
    settings, _ = settings_of(_entries(written, ("settings",), SettingsTable, "recipe"))
    message = "'validation' needs validation examples, and {} holds none out; set data_options.validation, e.g. 5000"
    return [
        Fault(("temperature",), message.format(one.recipe.data_set))
        for one in settings
        if not has_validation(one.recipe)
    ]


def _fault(error: Any) -> Fault:
    """One of pydantic's errors in our words."""
    path, kind, got = tuple(error["loc"]), error["type"], error["input"]
    if kind == "missing":
        near = get_close_matches(str(path[-1]), [str(key) for key in got], n=1)
        return Fault(path, f"must be given{f'; did you write it as {near[0]!r}?' if near else ''}")
    if kind == "extra_forbidden":
        form = Smoke if path[0] == "smoke" else Study
        return Fault(path, unknown("a key here", path[-1], form.model_fields))
    message = re.sub(r"^\w+ should ", "must ", error["msg"])
    if path[-1] in ("recipe", "name") and kind == "list_type":
        message = "must be a name or a list of names"
    return Fault(path, f"{message}, got {got!r}")


def _syntax_error(error: tomllib.TOMLDecodeError, text: str, file: str) -> StudyError:
    place = re.search(r" \(at line (\d+), column (\d+)\)$", str(error))
    line = int(place[1]) if place else text.count("\n") + 1
    what = str(error)[: place.start()] if place else str(error)
    column = f", column {place[2]}" if place else ""
    return StudyError([Fault((), f"not TOML{column}: {what}")], file, {(): line})
