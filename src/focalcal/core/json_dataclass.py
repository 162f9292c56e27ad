"""Frozen dataclasses that JSON can express and give back unchanged: what recipes and specs are."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import MISSING, fields
from typing import Any, ClassVar, Self

from focalcal.core.primitives import as_json


class JsonDataclass:
    """A frozen dataclass whose fields are in canonical form, to and from what JSON can express.

    `OPTIONS` names the fields that hold pairs of option and value, which JSON writes as an object. `LATER` names fields
    that are left out where they are None, so that what was described before there were any is described alike.
    """

    OPTIONS: ClassVar[tuple[str, ...]] = ()
    LATER: ClassVar[tuple[str, ...]] = ()

    def as_dict(self) -> dict[str, Any]:
        """Every field, as dict, list, str, int, float, bool and None; equal objects give the same JSON text."""
        named = {field.name: getattr(self, field.name) for field in fields(self)}  # type: ignore[arg-type]
        values = {name: value for name, value in named.items() if name not in self.LATER or value is not None}
        return {name: _express(dict(value) if name in self.OPTIONS else value) for name, value in values.items()}

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> Self:
        """What `as_dict` described. An unknown field is an error, as is a missing one without a default."""
        if not isinstance(values, Mapping):
            raise TypeError(f"{cls.__name__} must be described by a mapping, got {type(values).__name__}")
        known = {field.name: field for field in fields(cls)}  # type: ignore[arg-type]
        if unknown := [name for name in values if name not in known]:
            raise ValueError(f"{cls.__name__} has no field {', '.join(map(repr, unknown))}; it has {', '.join(known)}")
        missing = [name for name, field in known.items() if field.default is MISSING and name not in values]
        if missing:
            raise ValueError(f"{cls.__name__} needs {', '.join(map(repr, missing))}")
        return cls(**values)

    def _set(self, **values: Any) -> None:
        for name, value in values.items():
            object.__setattr__(self, name, value)


def _express(value: Any) -> Any:
    if isinstance(value, JsonDataclass):
        return value.as_dict()
    if isinstance(value, dict):
        return {name: as_json(option) for name, option in value.items()}
    if isinstance(value, tuple) and value and all(isinstance(part, JsonDataclass) for part in value):
        return [part.as_dict() for part in value]
    return as_json(value)
