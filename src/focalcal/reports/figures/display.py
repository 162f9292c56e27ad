"""What every figure offers, and how one is written to a folder."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from focalcal.core.atomic import write_atomically
from focalcal.reports.figures.style import rendered
from focalcal.reports.tables import Table

if TYPE_CHECKING:
    from matplotlib.figure import Figure

FORMS = ("pdf", "png")


class Display(Protocol):
    """Numbers that are complete when it is made: drawing them, or listing them, computes nothing."""

    @property
    def title(self) -> str:
        """What is shown, in a line."""

    @property
    def note(self) -> str:
        """What a reader must know about it, in a line or two."""

    def plot(self) -> Figure:
        """The figure."""

    def frame(self) -> Table:
        """The numbers behind it."""


def save(display: Display, folder: str | os.PathLike[str], name: str) -> list[Path]:
    """Write folder/name.pdf and folder/name.png, each whole or not at all; the folder is made if it is not there."""
    if not name or name != os.path.basename(name) or name.startswith("."):
        raise ValueError(f"name must be that of a file, without folder and ending, got {name!r}; choose a plain one")
    figure, made = display.plot(), []
    Path(folder).mkdir(parents=True, exist_ok=True)
    for form in FORMS:
        made.append(Path(folder) / f"{name}.{form}")
        write_atomically(made[-1], rendered(figure, form))
    return made
