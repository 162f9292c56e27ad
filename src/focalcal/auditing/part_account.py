"""What was read of many parts and what was not: rows without a value, parts without rows, parts that were left out."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

from focalcal.predictions.reading_notes import ReadingNotes

OnBadPart = Literal["refuse", "skip"]  # a part that cannot be read ends the audit, or is left out and named
_SHOWN = 12


@dataclass
class PartAccount:
    """`reading` are the notes of the parts, `empty` those without rows, `skipped` those left out with the reason."""

    reading: ReadingNotes = field(default_factory=ReadingNotes)
    empty: list[str] = field(default_factory=list)
    skipped: dict[str, str] = field(default_factory=dict)

    def __add__(self, other: PartAccount) -> PartAccount:
        """Of the parts of both."""
        reading = ReadingNotes()
        for each in (self.reading, other.reading):
            reading.missing.add(each.missing)
            reading.found |= each.found
        return PartAccount(reading, self.empty + other.empty, self.skipped | other.skipped)

    def notes(self) -> list[str]:
        """A sentence for each, without its full stop."""
        notes = list(self.reading.found)
        if self.reading.missing.left_out:
            notes.append(str(self.reading.missing))
        if self.empty:
            notes.append(f"{_parts(len(self.empty))} no rows: {_listed(self.empty)}")
        if self.skipped:
            shown = [f"{path} ({reason[:200]})" for path, reason in self.skipped.items()]
            notes.append(f"{_parts(len(self.skipped))} been left out as unreadable: {_listed(shown)}")
        return notes


def _parts(count: int) -> str:
    return "1 part has" if count == 1 else f"{count:,} parts have"


def _listed(names: list[str]) -> str:
    more = f" and {len(names) - _SHOWN:,} more" if len(names) > _SHOWN else ""
    return f"{', '.join(names[:_SHOWN])}{more}"
