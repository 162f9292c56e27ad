"""Frozen models of what a person writes: checked by pydantic, refused in one sentence per fault, canonical as JSON.

    @frozen
    class Optimizer(Described):
        lr: Positive

A model is a dataclass: `dataclasses.replace`, `fields` and pickling work. The same values written otherwise (2 and 2.0,
lists and tuples, options in any order) are equal models with the same JSON.
"""

from __future__ import annotations

import math
import operator
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, is_dataclass
from typing import Annotated, Any, Self, TypeVar, dataclass_transform, get_args, get_type_hints

from focalcal.core.checks import shown, unknown_name
from focalcal.core.extras import required

required("pydantic", purpose="A description of a run")

from pydantic import (  # noqa: E402  # noqa: E402
    AfterValidator,
    BeforeValidator,
    ConfigDict,
    Field,
    PlainSerializer,
    Strict,
    TypeAdapter,
    ValidationError,
)
from pydantic.dataclasses import dataclass as pydantic_dataclass  # noqa: E402

KeyPath = tuple[str | int, ...]
Model = TypeVar("Model")
_ADAPTERS: dict[Any, TypeAdapter[Any]] = {}  # one per model: it takes a millisecond to make
_WORDS = (("valid integer", "whole number"), ("valid tuple", "list"), ("a valid boolean", "True or False"))


class Canonical(dict[str, Any]):
    """What `plain` made, so that it need not look again."""


def plain(value: Any) -> Any:
    """What JSON can express, lists as tuples and at every depth a whole number as an int: 2 and 2.0 are one value."""
    kind = type(value)  # of what is usual, which is quicker to ask than what it is an instance of
    if kind is str:
        return _without_nul(value)
    if kind in (bool, type(None), Canonical):
        return value
    if kind is dict or isinstance(value, Mapping):
        if strange := [key for key in value if not isinstance(key, str)]:
            raise ValueError(f"must have names as keys, got {strange[0]!r}; make it a string")
        return {_without_nul(key): plain(inner) for key, inner in value.items()}
    if kind in (tuple, list) or (isinstance(value, Sequence) and not isinstance(value, str)):
        return tuple([plain(item) for item in value])
    if kind is int or hasattr(value, "__index__"):
        whole = operator.index(value)
        if abs(whole) > 2**53:  # where keys, tables and JavaScript, which have floats, would not tell it from the next
            raise ValueError(f"must be finite and a float without loss, got {whole}; choose another value")
        return whole
    if not hasattr(value, "__float__"):
        raise ValueError(f"must be what JSON can say, got {shown(value)} of type {kind.__name__}")
    number = float(value)
    if not math.isfinite(number):
        raise ValueError(f"must be finite, got {number}; choose another value")
    return int(number) if number.is_integer() else number


def _without_nul(value: str) -> str:
    """Files, pages and SQL cut a text off there, or refuse it."""
    if "\0" in value:
        raise ValueError(f"must have no NUL character, got {value!r}; leave it out")
    return value


def _pairs(value: Any) -> tuple[tuple[str, Any], ...]:
    if not isinstance(value, Mapping) and not (isinstance(value, tuple) and all(len(pair) == 2 for pair in value)):
        raise ValueError(f"must be a mapping from options to plain values, got {shown(value)}")
    pairs: dict[str, Any] = {}
    for name, inner in dict(value).items():
        if not isinstance(name, str) or not name:
            raise ValueError(f"must have names as keys, got {name!r}; make it a string")
        try:
            pairs[_without_nul(name)] = plain(inner)
        except ValueError as error:
            raise ValueError(f"{name} {error}") from None
    return tuple(sorted(pairs.items()))


def among(what: str, names: Iterable[str]) -> AfterValidator:
    """A name of this list."""
    choices = tuple(names)

    def check(name: str) -> str:
        if name not in choices:
            raise ValueError(unknown_name(what, name, choices))
        return name

    return AfterValidator(check)


def accepted(check: Callable[[str], object]) -> AfterValidator:
    """A name that `check` does not refuse."""

    def accept(name: str) -> str:
        check(name)
        return name

    return AfterValidator(accept)


def _whole(value: Any) -> Any:
    return int(value) if isinstance(value, float) and value.is_integer() else plain(value)


Whole = Annotated[int, Strict(), BeforeValidator(_whole)]
Count = Annotated[Whole, Field(ge=1)]
NoneOrMore = Annotated[Whole, Field(ge=0)]
Seed = Annotated[Whole, Field(ge=0, lt=2**53)]  # a larger one is not the same in JavaScript
Number = Annotated[float, Strict(), Field(allow_inf_nan=False)]
Positive = Annotated[Number, Field(gt=0)]
Share = Annotated[Number, Field(ge=0, lt=1)]
YesNo = Annotated[bool, Strict()]
Name = Annotated[str, Strict(), Field(min_length=1), AfterValidator(_without_nul)]
Options = Annotated[tuple[tuple[str, Any], ...], BeforeValidator(_pairs), PlainSerializer(dict)]
Plain = Annotated[dict[str, Any], BeforeValidator(plain)]
UNSET = BeforeValidator(lambda value: None if value == "" else value)  # TOML cannot write None


class Described:
    """What every model can do besides what dataclasses can."""

    def as_dict(self) -> dict[str, Any]:
        """Every field, as dict, list, str, int, float, bool and None; equal models give the same JSON text."""
        return _adapter(type(self)).dump_python(self, mode="json")

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> Self:
        """What `as_dict` described; a ValueError names every fault."""
        try:
            made: Self = _adapter(cls).validate_python(values)
        except ValidationError as error:
            raise _refusal(cls, error) from None
        return made

    def _set(self, **values: Any) -> None:
        for name, value in values.items():
            object.__setattr__(self, name, value)


@dataclass_transform(frozen_default=True, kw_only_default=True, eq_default=True)
def frozen(cls: type[Model]) -> type[Model]:
    """A frozen pydantic dataclass without other fields, whose faults are a ValueError in our words."""
    made: Any = pydantic_dataclass(frozen=True, kw_only=True, config=ConfigDict(extra="forbid"))(cls)
    check = made.__init__

    def __init__(self: Any, **values: Any) -> None:
        try:
            check(self, **values)
        except ValidationError as error:
            raise _refusal(made, error) from None

    made.__init__ = __init__  # of what Python code makes; a nested model's faults keep their paths
    return made


@dataclass(frozen=True)
class Fault:
    """What is wrong, and the path of the key, such as ("settings", 0, "optimizer", "lr")."""

    path: KeyPath
    message: str

    def __str__(self) -> str:
        """As in a file: `settings[0].optimizer.lr: must be greater than 0, got 0`."""
        key = "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in self.path).removeprefix(".")
        return f"{key}: {self.message}" if key else self.message


def validated(kind: type[Model], values: Any, path: KeyPath = ()) -> tuple[Model | None, list[Fault]]:
    """The model of these values, or every fault of them, with the path of what they are the value of."""
    try:
        made: Model = _adapter(kind).validate_python(values)
    except ValidationError as error:
        return None, [Fault((*path, *fault.path), fault.message) for fault in _faults(kind, error)]
    return made, []


def _adapter(kind: Any) -> TypeAdapter[Any]:
    if kind not in _ADAPTERS:
        _ADAPTERS[kind] = TypeAdapter(kind)
    return _ADAPTERS[kind]


def _refusal(kind: type[Any], error: ValidationError) -> ValueError:
    lines = []
    for fault in _faults(kind, error):
        about = Fault(fault.path, "")
        starts = str(about).removesuffix(": ")
        lines.append(f"{starts} {fault.message}" if starts and fault.message.startswith("must") else str(fault))
    return ValueError("; ".join(lines))


def _faults(kind: type[Any], error: ValidationError) -> Iterator[Fault]:
    """Pydantic's errors in our words."""
    errors = error.errors(include_url=False)
    deeper = {details["loc"][:depth] for details in errors for depth in range(len(details["loc"]))}
    for details in errors:
        path, what = details["loc"], details["type"]
        if what == "too_short":
            if path in deeper:  # it has items, and their faults are told
                continue
            message = f"must have at least {details['ctx']['min_length']} item, got none"
        elif what == "missing":
            message = "must be given"
        elif what in ("extra_forbidden", "unexpected_keyword_argument"):
            message = unknown_name("a key here", path[-1], _keys_at(kind, path[:-1]))
        elif what == "value_error":  # of our own checks
            message = str(details["ctx"]["error"])
        else:
            rule = re.sub(r"^\w+ should ", "must ", details["msg"])
            for pydantics, ours in _WORDS:
                rule = rule.replace(pydantics, ours)
            message = f"{rule}, got {shown(details['input'])}"
        yield Fault(path, message)


def _keys_at(kind: Any, path: KeyPath) -> list[str]:
    """The fields of the model that lies at this path of a model."""
    for part in (part for part in path if isinstance(part, str)):
        inner = [get_type_hints(kind)[part]]
        while not is_dataclass(inner[0]):
            inner = [*inner[1:], *get_args(inner[0])]
        kind = inner[0]
    return [field.name for field in fields(kind)]
