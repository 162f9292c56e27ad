"""What a reader has to say of the rows it gives: warned of at once, or collected by who reads many parts."""

from __future__ import annotations

import warnings
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field

from focalcal.core.checks import user_level
from focalcal.predictions.class_labels import InputWarning


@dataclass
class Missing:
    """How many rows were looked at, how many left out, and how many of them lack which column."""

    rows: int = 0
    left_out: int = 0
    columns: Counter[str] = field(default_factory=Counter)

    def add(self, other: Missing) -> None:
        """Those of more rows."""
        self.rows += other.rows
        self.left_out += other.left_out
        self.columns.update(other.columns)

    def __str__(self) -> str:
        """One sentence without its full stop."""
        each = ", ".join(f"{count:,} in {name!r}" for name, count in self.columns.most_common(12))
        return f"{self.left_out:,} of {self.rows:,} rows were left out, for a value is missing: {each}"


@dataclass
class ReadingNotes:
    """Of all parts: the rows that lack a value, and what was found in files that did not say it."""

    missing: Missing = field(default_factory=Missing)
    found: dict[str, None] = field(default_factory=dict)


_collected: ContextVar[ReadingNotes | None] = ContextVar("reading_notes", default=None)


def say_missing(missing: Missing) -> None:
    """One warning of the rows that were left out, unless it is collected."""
    if (collected := _collected.get()) is not None:
        collected.missing.add(missing)
    elif missing.left_out:
        warnings.warn(str(missing), InputWarning, stacklevel=user_level())


def say_found(message: str) -> None:
    """One warning of what was found, with the remedy, unless it is collected."""
    if (collected := _collected.get()) is not None:
        collected.found[message] = None
    else:
        warnings.warn(message, InputWarning, stacklevel=user_level())


@contextmanager
def notes_collected() -> Iterator[ReadingNotes]:
    """Within it nothing is warned of."""
    notes = ReadingNotes()
    token = _collected.set(notes)
    try:
        yield notes
    finally:
        _collected.reset(token)
