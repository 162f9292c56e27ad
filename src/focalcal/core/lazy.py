"""Packages whose public names are imported when they are first used, so that importing the package costs little."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from importlib import import_module
from typing import Any


def lazy_names(
    package: str, homes: Mapping[str, str], *, submodules: Sequence[str] = ()
) -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
    """`__getattr__` and `__dir__` of `package`, whose public names `homes` maps to the submodules that have them.

        __getattr__, __dir__ = lazy_names(__name__, {"global_bound": "bounds", "minimise": "minimiser"})

    `submodules` are attributes as well. Type checkers need the same names imported under TYPE_CHECKING.
    """

    def get_attribute(name: str) -> Any:
        if name in homes:
            value = getattr(import_module(f"{package}.{homes[name]}"), name)
        elif name in submodules:
            value = import_module(f"{package}.{name}")
        else:
            raise AttributeError(f"{package} has no attribute {name!r}; it has {', '.join(homes)}")
        setattr(sys.modules[package], name, value)
        return value

    def list_names() -> list[str]:
        special = (name for name in vars(sys.modules[package]) if name.startswith("__"))
        return sorted({*homes, *submodules, *special})

    return get_attribute, list_names
