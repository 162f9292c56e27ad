"""Packages whose public names are imported when they are first used, so that importing the package costs little."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from difflib import get_close_matches
from importlib import import_module
from typing import Any


def lazy_names(
    package: str, homes: Mapping[str, str], *, submodules: Sequence[str] = (), search: Sequence[str] = ()
) -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
    """`__getattr__` and `__dir__` of `package`, whose public names `homes` maps to the submodules that have them.

        __getattr__, __dir__ = lazy_names(__name__, {"global_bound": "bounds", "minimise": "minimiser"})

    `submodules` are attributes as well. A name that one of the packages `search` has is said to be there. Type checkers
    need the same names imported under TYPE_CHECKING.
    """

    def get_attribute(name: str) -> Any:
        if name in homes:
            value = getattr(import_module(f"{package}.{homes[name]}"), name)
        elif name in submodules:
            value = import_module(f"{package}.{name}")
        else:
            guess = None if name.startswith("_") else _meant(package, name, homes, search)
            rest = "it has" if guess is None else f"did you mean {guess}? It has"
            raise AttributeError(f"{package} has no attribute {name!r}; {rest} {', '.join(homes)}")
        setattr(sys.modules[package], name, value)
        return value

    def list_names() -> list[str]:
        special = (name for name in vars(sys.modules[package]) if name.startswith("__"))
        return sorted({*homes, *submodules, *special})

    return get_attribute, list_names


def _meant(package: str, name: str, homes: Mapping[str, str], search: Sequence[str]) -> str | None:
    """What else is called so: in another package, by its capitals (FCL), or nearly."""
    for other in search:
        if name in getattr(import_module(f"{package}.{other}"), "__all__", ()):
            return f"{package}.{other}.{name}"
    capitals = {"".join(filter(str.isupper, home)): home for home in homes if not home.isupper()}
    near = get_close_matches(name.lower(), lowered := {home.lower(): home for home in homes}, n=1, cutoff=0.75)
    return capitals.get(name.upper()) or (lowered[near[0]] if near else None)
