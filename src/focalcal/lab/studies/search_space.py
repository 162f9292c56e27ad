"""Where options are searched, and a sequence of points that is the same for everybody."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import count, product
from types import MappingProxyType
from typing import Any

import numpy as np

_DIGITS = 3  # of a number that was searched, so that a trial and the line to paste are the same run
_PRIMES = (2, 3, 5, 7, 11, 13, 17, 19, 23, 29)
_DRAWN_AT_MOST = 50  # times the points wanted: a coarse space has fewer different ones than that


@dataclass(frozen=True)
class Range:
    """Where a number is searched, and the points of a grid over it."""

    low: float
    high: float
    grid: tuple[float, ...] = ()
    log: bool = False

    @property
    def ends(self) -> tuple[float, float]:
        """What a loss that takes the whole range takes."""
        return self.low, self.high

    def clip(self, value: float) -> float:
        """The nearest number of the range."""
        return rounded(min(max(value, self.low), self.high))

    def at(self, share: float) -> float:
        """The number at a share in [0, 1) of the range, or of its logarithm."""
        low, high = (math.log(self.low), math.log(self.high)) if self.log else (self.low, self.high)
        value = low + share * (high - low)
        return self.clip(math.exp(value) if self.log else value)

    def around(self, value: float) -> Range:
        """Half as wide, with the value in the middle, as far as that lies in the range."""
        if self.log:
            reach = (self.high / self.low) ** 0.25
            return replace(self, low=max(self.low, value / reach), high=min(self.high, value * reach))
        reach = (self.high - self.low) / 4
        return replace(self, low=max(self.low, value - reach), high=min(self.high, value + reach))

    def start(self, default: Any) -> Any:
        """The default if it lies in the range, else the middle."""
        number = isinstance(default, int | float) and not isinstance(default, bool)
        return default if number and self.low <= default <= self.high else self.at(0.5)


@dataclass(frozen=True)
class Choices:
    """A few values to choose from."""

    values: tuple[Any, ...]

    @property
    def ends(self) -> tuple[Any, ...]:
        """All of them, since they have no order."""
        return self.values

    def at(self, share: float) -> Any:
        """The value at a share in [0, 1) of the list."""
        return self.values[int(share * len(self.values))]

    def around(self, value: Any) -> Choices:
        """The same: values have no order."""
        return self

    def start(self, default: Any) -> Any:
        """The default if it is one of them, else the first."""
        return default if default in self.values else self.values[0]


Dimension = Range | Choices


_GAMMA = Range(0.5, 6.0, (0.5, 1.0, 2.0, 3.0, 4.0, 5.0, 6.0))
_LAM = Range(0.03, 30.0, (0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 4.0, 8.0, 16.0, 30.0), log=True)
# What is searched of each objective. One that is not here, somebody's own for one, is tried with its defaults.
SPACE: Mapping[str, Mapping[str, Range]] = MappingProxyType(
    {
        "fcl": {"gamma": _GAMMA, "lam": _LAM},
        "focal": {"gamma": _GAMMA},
        "dual_focal": {"gamma": _GAMMA},
        "ls": {"epsilon": Range(0.01, 0.3, (0.01, 0.03, 0.05, 0.1, 0.2, 0.3), log=True)},
        "mmce": {"lam": Range(0.25, 8.0, (0.25, 0.5, 1.0, 2.0, 4.0, 8.0), log=True)},
    }
)


def dimension(given: Any) -> Dimension:
    """Of a file: a list of values, or a table with `low`, `high` and perhaps `log = true`."""
    if isinstance(given, list | tuple) and given:
        return Choices(tuple(given))
    if isinstance(given, Mapping) and {"low", "high"} <= set(given) <= {"low", "high", "log"}:
        low, high, log = given["low"], given["high"], given.get("log", False)
        numbers = all(isinstance(end, int | float) and math.isfinite(end) for end in (low, high))
        if numbers and isinstance(log, bool) and low < high and (low > 0 or not log):
            return Range(float(low), float(high), log=log)
    raise ValueError(
        "must be a list of values or { low = ..., high = ..., log = true }, low below high and above 0 for log, got "
        f"{given!r}"
    )


def points(space: Sequence[Dimension], number: int, *, seed: int) -> Iterator[tuple[Any, ...]]:
    """At most `number` different points: all that there are if these are not more, else of a shifted Halton sequence.

    The first dimensions have the same values whatever follows them, so that methods with options of their own see the
    learning rates that methods without see. More points begin with the same ones.
    """
    if all(isinstance(each, Choices) for each in space):
        grid = list(dict.fromkeys(product(*(each.values for each in space if isinstance(each, Choices)))))
        if len(grid) <= number:
            yield from grid
            return
    shifts = np.random.default_rng(seed).random(len(_PRIMES)).tolist()
    seen: set[tuple[Any, ...]] = set()
    for index in count(1):
        if len(seen) >= number or index > _DRAWN_AT_MOST * number:
            return
        shares = [(_radical_inverse(index, base) + shift) % 1 for base, shift in zip(_PRIMES, shifts, strict=True)]
        shared = iter(shares)  # what cannot vary needs none
        point = tuple(each.at(0.0 if _is_fixed(each) else next(shared)) for each in space)
        if point not in seen:
            seen.add(point)
            yield point


def _is_fixed(space: Dimension) -> bool:
    return isinstance(space, Choices) and len(space.values) == 1


def _radical_inverse(index: int, base: int) -> float:
    """The digits of the index behind the point, the last one first."""
    value, share = 0.0, 1.0
    while index:
        index, digit = divmod(index, base)
        share /= base
        value += digit * share
    return value


def rounded(value: float) -> float:
    """To three digits."""
    return float(f"{value:.{_DIGITS}g}") if math.isfinite(value) else value
