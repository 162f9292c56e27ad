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

_SHOWN = 12  # parts in a sentence


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
    """Of all parts: the rows that lack a value, what was found in files that did not say it, and what was not read.

    `empty` are the parts without rows, `skipped` those that were left out with the reason.
    """

    missing: Missing = field(default_factory=Missing)
    found: dict[str, None] = field(default_factory=dict)
    empty: list[str] = field(default_factory=list)
    skipped: dict[str, str] = field(default_factory=dict)

    def add(self, other: ReadingNotes) -> None:
        """Those of more parts."""
        self.missing.add(other.missing)
        self.found |= other.found
        self.empty += other.empty
        self.skipped |= other.skipped

    def sentences(self) -> list[str]:
        """One for each, without its full stop."""
        said = [*self.found, *([str(self.missing)] if self.missing.left_out else [])]
        left_out = [f"{path} ({reason[:200]})" for path, reason in self.skipped.items()]
        for parts, what in ((self.empty, "no rows"), (left_out, "been left out as unreadable")):
            if parts:
                count = "1 part has" if len(parts) == 1 else f"{len(parts):,} parts have"
                more = f" and {len(parts) - _SHOWN:,} more" if len(parts) > _SHOWN else ""
                said.append(f"{count} {what}: {', '.join(parts[:_SHOWN])}{more}")
        return said


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
