"""Frozen dataclasses that JSON can express and give back unchanged: what recipes and specs are."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import MISSING, fields
from typing import Any, Self

from focalcal.core.primitives import as_json


class Plain:
    """A frozen dataclass whose fields are in canonical form, to and from what JSON can express."""

    def as_dict(self) -> dict[str, Any]:
        """Every field, as dict, list, str, int, float, bool and None; equal objects give the same JSON text."""
        return {one.name: _expressed(getattr(self, one.name)) for one in fields(self)}  # type: ignore[arg-type]

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> Self:
        """What `as_dict` described. An unknown field is an error, as is a missing one without a default."""
        if not isinstance(values, Mapping):
            raise TypeError(f"{cls.__name__} must be described by a mapping, got {type(values).__name__}")
        known = {one.name: one for one in fields(cls)}  # type: ignore[arg-type]
        if unknown := [name for name in values if name not in known]:
            raise ValueError(f"{cls.__name__} has no field {', '.join(map(repr, unknown))}; it has {', '.join(known)}")
        missing = [name for name, one in known.items() if one.default is MISSING and name not in values]
        if missing:
            raise ValueError(f"{cls.__name__} needs {', '.join(map(repr, missing))}")
        return cls(**values)

    def _set(self, **values: Any) -> None:
        for name, value in values.items():
            object.__setattr__(self, name, value)


def _expressed(value: Any) -> Any:
    if isinstance(value, Plain):
        return value.as_dict()
    if isinstance(value, tuple) and value and all(isinstance(one, Plain) for one in value):
        return [one.as_dict() for one in value]
    return as_json(value)
