"""Tables by name whose answer to a wrong name is the right one."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Never, TypeVar

from focalcal.core.checks import unknown_name

Entry = TypeVar("Entry")


class UnknownName(KeyError):
    """A name that a table does not have."""

    __str__ = Exception.__str__  # a sentence, which KeyError would put into quotes


class NamedTable(dict[str, Entry]):
    """A dict that says of a name that it does not have which one is near, and all that it has.

    >>> NamedTable("an objective", {"ce": 1, "fcl": 2})["FCL"]
    Traceback (most recent call last):
    ...
    focalcal.core.named_table.UnknownName: 'FCL' is not an objective; did you mean 'fcl'? Known: ce, fcl
    """

    def __init__(self, what: str, entries: Mapping[str, Entry]) -> None:
        super().__init__(entries)
        self.what = what

    def __missing__(self, name: object) -> Never:
        """Refuse the name."""
        raise UnknownName(unknown_name(self.what, name, self))
