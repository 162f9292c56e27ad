"""Objectives, data sets and networks from anybody's code, named in a study by where Python finds them.

    objective = "package.module:Name"      imported from sys.path, PYTHONPATH or the current folder
    objective = "name"                     of an installed package's entry point in the group `focalcal.objectives`

Likewise `focalcal.data_sets`, `focalcal.models` and, for sections of a study's page, `focalcal.sections`. What the
package ships has its name first.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import cache, reduce
from importlib import import_module, invalidate_caches
from importlib.metadata import EntryPoint, entry_points
from types import FunctionType
from typing import Any, Literal

from focalcal.core.checks import unknown_name
from focalcal.core.source_code import code_hash

Kind = Literal["objectives", "data_sets", "models", "sections"]
Table = Mapping[str, Callable[..., Any]]  # what the package ships, by name
_SINGULAR = {"objectives": "objective", "data_sets": "data set", "models": "model", "sections": "section"}


@dataclass(frozen=True)
class Plugin:
    """What was imported, and SHA-256 of the code that defines it (`code_hash`), as that was when it was imported."""

    target: Callable[..., Any]
    sha256: str


def resolve(kind: Kind, name: str, shipped: Table) -> Callable[..., Any]:
    """What the name stands for; refuses names without one, and code that cannot be imported."""
    return shipped[name] if name in shipped else load_plugin(kind, name, shipped).target


def source_hash(kind: Kind, name: str, shipped: Table) -> str | None:
    """SHA-256 of the code that a plug-in is defined by; None for what the package ships."""
    return None if name in shipped else load_plugin(kind, name, shipped).sha256


def check_name(kind: Kind, name: Any, shipped: Table) -> None:
    """Refuse what is neither shipped nor an entry point nor of the form `package.module:Name`; imports nothing."""
    if name not in shipped and _entry_point(kind, name) is None:
        installed = [entry.name for entry in entry_points(group=f"focalcal.{kind}")]
        message = unknown_name(
            f"{'an' if kind == 'objectives' else 'a'} {_SINGULAR[kind]}", name, [*shipped, *installed]
        )
        raise ValueError(f"{message}; code of your own is named 'package.module:Name'")


def load_plugin(kind: Kind, name: str, shipped: Table) -> Plugin:
    """Import what a name stands for that the package does not ship."""
    check_name(kind, name, shipped)
    entry = _entry_point(kind, name)
    assert entry is not None
    try:
        return _load(entry.module, entry.attr)
    except Exception as error:  # whatever somebody's module raises
        cause = "" if isinstance(error, _UnusableError) else f"{type(error).__name__}: "
        raise ValueError(
            f"{_SINGULAR[kind]} {name!r} must be importable, got {cause}{error}; start from the folder that holds the "
            "module, or name that folder in PYTHONPATH"
        ) from error


def import_folders() -> list[str]:
    """Where processes on other machines should look as well: the current folder, and those of PYTHONPATH."""
    named = os.environ.get("PYTHONPATH", "").split(os.pathsep)
    return [os.getcwd(), *(os.path.abspath(folder) for folder in named if folder)]


def add_import_folders(folders: Iterable[str]) -> None:
    """Look there too, after everywhere else."""
    sys.path += [folder for folder in dict.fromkeys(folders) if folder not in sys.path]


class _UnusableError(ValueError):
    """A name that was imported and cannot be used."""


def _entry_point(kind: Kind, name: Any) -> EntryPoint | None:
    if not isinstance(name, str):
        return None
    module, colon, attribute = name.partition(":")
    if colon:
        is_path = all(part.isidentifier() for part in (*module.split("."), *attribute.split(".")))
        return EntryPoint(name, name, f"focalcal.{kind}") if is_path else None
    return next(iter(entry_points(group=f"focalcal.{kind}", name=name)), None)


@cache
def _load(module: str, attribute: str) -> Plugin:
    add_import_folders([os.getcwd()])
    invalidate_caches()  # the file may be younger than the last look at its folder
    home = import_module(module)
    target = reduce(getattr, attribute.split("."), home)
    if not callable(target):
        raise _UnusableError(f"{attribute} of {module}, which cannot be called")
    roots = {module: [attribute]}  # a re-exported class is defined elsewhere, one made by a function in both places
    if isinstance(target, type | FunctionType):
        roots.setdefault(target.__module__, []).append(target.__qualname__)
    names: dict[str, set[str]] = {}
    for defined_in, paths in roots.items():
        file = getattr(sys.modules.get(defined_in, home), "__file__", None)
        if file is None or not os.path.isfile(file):
            raise _UnusableError(f"{attribute} of {defined_in}, which is in no file")
        names.setdefault(file, set()).update(path.partition(".")[0] for path in paths)
    return Plugin(target, code_hash(names))
