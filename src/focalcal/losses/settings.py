"""The settings of a loss, and what they must be: a check takes a setting's name and value and returns what is kept."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import wraps
from inspect import Parameter, signature
from typing import Any, Generic, TypeVar

from focalcal.core.checks import is_whole, one_of, shown, unknown_name
from focalcal.losses.checks import finite_at_least

T = TypeVar("T")
Check = Callable[[str, Any], T]


class Setting(Generic[T]):
    """Declares a setting: `ClassificationLoss` checks it whenever it is assigned, and to read it is as quick as any
    attribute, the value being the instance's own. One with a default need not be assigned, and is not shown at it."""

    def __init__(self, check: Check[T], *, default: T | None = None) -> None:
        self.check, self.default = check, default

    def __set_name__(self, owner: type, name: str) -> None:
        """What it is called."""
        self.name = name

    def __get__(self, loss: object, owner: type) -> T:
        """What an instance has that was given none."""
        if self.default is None:
            raise AttributeError(f"{owner.__name__} has no {self.name} yet")
        return self.default


def settings_of(loss: type) -> dict[str, Setting[Any]]:
    """The settings that a class and those above it declare, the topmost class's first."""
    return {
        name: value
        for ancestor in reversed(loss.__mro__)
        for name, value in vars(ancestor).items()
        if isinstance(value, Setting)
    }


def naming_options(make: Callable[..., None], common: Sequence[Parameter] = ()) -> Callable[..., None]:
    """An `__init__` that says of an option that it does not have, such as `lambda_`, which one is near.

    Its signature shows the `common` keywords, which it takes as `**common`.
    """
    own = signature(make)
    if "settings" in own.parameters:  # of a class in between, which takes its subclasses' options
        return make
    shown = [each for each in own.parameters.values() if each.kind is not Parameter.VAR_KEYWORD]
    shown += common if len(shown) < len(own.parameters) else ()
    known = [each.name for each in shown[1:]]

    @wraps(make)
    def checked(self: Any, *args: Any, **options: Any) -> None:
        for name in options:
            if name not in known:
                raise TypeError(unknown_name(f"an option of {type(self).__name__}", name, known))
        make(self, *args, **options)

    checked.__signature__ = own.replace(parameters=shown)  # type: ignore[attr-defined]
    return checked


def not_negative(name: str, value: float) -> float:
    """A finite number >= 0: a focusing parameter, the weight of a term, a rate."""
    return finite_at_least(name, value, 0.0)


def probability(name: str, value: float) -> float:
    """A number from 0 to 1."""
    if not_negative(name, value) > 1.0:
        raise ValueError(f"{name} must be a probability, from 0 to 1, got {value!r}")
    return float(value)


def choice(*allowed: T) -> Check[T]:
    """One of these words."""

    def check(name: str, value: T) -> T:
        one_of(name, value, allowed)
        return value

    return check


def label(name: str, value: int) -> int:
    """A label to leave out: a whole number of 64 bits."""
    if not is_whole(value) or not -(2**63) <= value < 2**63:
        raise TypeError(f"{name} must be a whole number of 64 bits, got {shown(value)}; -100, the default, is no class")
    return int(value)
