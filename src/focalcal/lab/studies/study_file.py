"""Studies: TOML files with lists to cross, checked as a whole before anything runs."""

from __future__ import annotations

import os
import re
import tomllib
from collections.abc import Collection, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, Literal

from focalcal.core.checks import unknown_name, whole_number
from focalcal.lab.store.spec import Evaluations, Spec
from focalcal.lab.studies.shipped import shipped_file, shipped_names
from focalcal.lab.studies.study_grid import Fault, KeyPath, StudyGrid, build_grid
from focalcal.lab.studies.study_schema import BY_KEY, REQUIRED, StudyTable, Table

_DEEP_KEY = re.compile(r"(?<![\w'\"-])(?:[\w'\"-]++[ \t]*+\.[ \t]*+){100}")  # a.a.a...


class StudyError(ValueError):
    """A study that cannot be run. Its text has one line per fault: `file.toml: settings[0].optimizer.lr: what`."""

    def __init__(self, faults: Iterable[Fault], file: str, written: Mapping[str, Any]) -> None:
        self.faults = tuple(faults)
        self.file = file
        order = {path: place for place, path in enumerate(_paths(written))}
        lines: dict[str, None] = {}
        for fault in sorted(self.faults, key=lambda fault: _position(fault.path, order)):
            key = _key_text(fault.path)
            lines[f"{file}: {f'{key}: ' if key else ''}{fault.message}"] = None
        super().__init__("\n".join(lines))


class Study:
    """What a study's file says, without fault. `specs()` are its cells, which are crossed once per size.

    Data that are not shipped are then loaded from `data_dir`, or where FOCALCAL_DATA points, for their fingerprints.
    """

    def __init__(
        self, table: StudyTable, file: str, grids: Mapping[bool, StudyGrid], data_dir: Path | None = None
    ) -> None:
        self.table, self.file, self._grids, self._data_dir = table, file, grids, data_dir
        self._specs: dict[bool, tuple[Spec, ...]] = {}

    @property
    def name(self) -> str:
        """The file's name without `.toml`."""
        return Path(self.file).stem

    @property
    def title(self) -> str:
        """For the page and the terminal."""
        return self.table.title

    @property
    def temperature(self) -> Literal["halves", "validation"]:
        """Where reports fit temperatures."""
        return self.table.temperature

    @property
    def section(self) -> str:
        """What makes another section of the report, `package.module:function`; "" for none."""
        return self.table.section

    def specs(self, smoke: bool = False) -> list[Spec]:
        """What every cell trains, each once: setting by setting, seed by seed, in the order of the objectives."""
        if smoke not in self._specs:
            self._specs[smoke] = self._grids[smoke].specs(self._data_dir)
        return list(self._specs[smoke])

    def evaluations(self, smoke: bool = False) -> Evaluations:
        """Those of every trained network; a cell is complete when it has them."""
        return self._grids[smoke].evaluations


def load_study(
    name_or_path: str | os.PathLike[str], *, seeds: int | None = None, data_dir: Path | None = None
) -> Study:
    """The shipped study of that name, or the file of that path (with a folder or ending in .toml).

    seeds     train with 0, ..., seeds - 1 in place of the seeds that it names
    data_dir  the folder of the data sets, by default what FOCALCAL_DATA names
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
    """The study of a TOML text; `file` stands in the messages. Every fault of it is reported at once."""
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
    table, faults, removed = _check_tables(written)
    own = bool(table.settings) and all(setting.objectives for setting in table.settings)
    required = [key for key in REQUIRED if key != "objectives" or not own]
    faults += [Fault((key,), "must be given") for key in required if key not in written]
    of_form, paths = {fault.path for fault in faults}, set(_paths(written))
    grids = {smoke: build_grid(table, smoke=smoke) for smoke in (False, True)}
    for grid in grids.values():
        beyond = [Fault(_as_written(_before(fault.path, removed), paths), fault.message) for fault in grid.faults]
        faults += [fault for fault in beyond if fault.path not in of_form]
    if faults:
        raise StudyError(faults, file, written)
    return Study(table, file, grids, data_dir)


def _check_tables(written: Mapping[str, Any]) -> tuple[StudyTable, list[Fault], set[KeyPath]]:
    """The tables, every fault of form, and the keys that were left out because of one, so that the rest can be checked.

    A table that lacks a key is left out as a whole.
    """
    from pydantic import ValidationError

    faults: list[Fault] = []
    removed, existing = set[KeyPath](), set(_paths(written))
    while True:
        try:
            return StudyTable.model_validate(_without(written, removed)), faults, removed
        except ValidationError as error:
            errors: list[Any] = list(error.errors())
        if not faults:  # later ones follow from what was left out
            faults = [Fault(_as_written(tuple(details["loc"]), existing), _message(details)) for details in errors]
        paths = [details["loc"][:-1] if details["type"] == "missing" else details["loc"] for details in errors]
        faulty = {_as_written(_before(path, removed), existing) for path in paths}
        removed |= faulty - removed or {path[:1] for path in paths}  # whatever happens, something goes


def _without(written: Any, removed: Collection[KeyPath], path: KeyPath = ()) -> Any:
    """A copy without what lies at these paths."""
    if isinstance(written, dict):
        return {
            key: _without(value, removed, (*path, key)) for key, value in written.items() if (*path, key) not in removed
        }
    if isinstance(written, list):
        return [
            _without(value, removed, (*path, place))
            for place, value in enumerate(written)
            if (*path, place) not in removed
        ]
    return written


def _before(path: KeyPath, removed: Collection[KeyPath]) -> KeyPath:
    """The path in the file of what has this one in a copy without `removed`."""
    original: KeyPath = ()
    for part in path:
        if isinstance(part, int):
            gone = [other[-1] for other in removed if other[:-1] == original]
            for place in sorted(place for place in gone if isinstance(place, int)):
                part += place <= part
        original = (*original, part)
    return original


def _as_written(path: KeyPath, existing: Collection[KeyPath]) -> KeyPath:
    """The path without the place in a list where the file has a single value instead."""
    depths = (depth for depth, part in enumerate(path) if isinstance(part, int) and path[: depth + 1] not in existing)
    return path[: next(depths, len(path))]


def _message(details: Mapping[str, Any]) -> str:
    """One of pydantic's errors in our words."""
    path, kind, got = details["loc"], details["type"], details["input"]
    if kind == "missing":
        return "must be given"
    if kind == "extra_forbidden":
        parents = [part for part in path[:-1] if isinstance(part, str)]
        table: type[Table] = BY_KEY[parents[-1]] if parents else StudyTable
        return unknown_name("a key here", path[-1], table.model_fields)
    if kind == "value_error":  # of our own checks
        return str(details["ctx"]["error"])
    if path[-1] in ("recipe", "name") and kind == "list_type":
        return f"must be a name or a list of names, got {got!r}"
    rule = re.sub(r"^\w+ should ", "must ", details["msg"])
    return f"{rule}, got {got!r}"


def _key_text(path: KeyPath) -> str:
    return "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in path).removeprefix(".")


def _paths(written: Any, path: KeyPath = ()) -> Iterator[KeyPath]:
    """Of every key and item, in the order of the file."""
    yield path
    items = written.items() if isinstance(written, dict) else enumerate(written) if isinstance(written, list) else ()
    for part, value in items:
        yield from _paths(value, (*path, part))


def _position(path: KeyPath, order: Mapping[KeyPath, int]) -> list[int]:
    """Where the key stands in the file, for sorting; what is not there comes last in its table."""
    return [order.get(path[:depth], len(order)) for depth in range(1, len(path) + 1)]
