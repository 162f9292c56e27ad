"""A view of a study: one frame of numbers, with a title, that the page and the figure for print both draw."""

from __future__ import annotations

import math
import os
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from focalcal.core.atomic import write_atomically
from focalcal.pages.style import rendered
from focalcal.pages.tables import Table

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from focalcal.lab.evidence.evidence import Evidence
    from focalcal.pages.palette import Look

FORMS = ("pdf", "png")
Row = dict[str, Any]
_LONGEST = 120  # letters of a file's name


@dataclass(frozen=True, eq=False)
class View:
    """Numbers that are complete when it is made: drawing or listing them computes nothing.

    Args:
        kind: what is shown: "ranking", "reliability".
        choice: what tells it from others of its kind and setting: a metric, a split and metric, a state; else
            empty.
        note: what a reader must know about it, in a line or two.
        rows: one per objective, as a rule, best first; lists in it stand side by side: an entry per seed, bin or
            epoch.
        drawn: draws it for print; without it the page alone does.
        looks: of the objectives.
        facts: of all rows together.
        setting: data set and network.
        title: of the figure.

    >>> rows = [{"objective": "ce", "ece": [0.02, 0.03]}, {"objective": "fcl", "ece": [0.01, 0.02]}]
    >>> View("ranking", "digits/mlp", "ece", "ECE by seed", "", rows).rows[1]["ece"]
    [0.01, 0.02]
    """

    kind: str
    setting: str
    choice: str
    title: str
    note: str
    rows: Sequence[Row]
    drawn: Callable[[View], Figure] | None = None
    looks: Mapping[str, Look] = field(default_factory=dict)
    facts: Mapping[str, Any] = field(default_factory=dict)

    def plot(self) -> Figure:
        """The figure."""
        if self.drawn is None:
            raise ValueError(f"view must have a figure for print, got one of {self.kind}; see frame() for its numbers")
        return self.drawn(self)

    def frame(self) -> Table:
        """The numbers behind it, one row per entry of the lists; what is no number or text is left out."""
        shown = [{name: value for name, value in row.items() if not isinstance(value, Mapping)} for row in self.rows]
        names = dict.fromkeys(name for row in shown for name in row)
        lists = [{name: row.get(name, math.nan) for name in names} for row in shown]
        if lists and not any(np.ndim(value) for value in lists[0].values()):
            return Table({name: [row[name] for row in lists] for name in names}, digits=4)
        return Table.stacked(lists, digits=4)

    def data(self) -> dict[str, Any]:
        """What the page's scripts read."""
        own = {"setting": self.setting, "choice": self.choice, "title": self.title, "note": self.note}
        return {**own, **self.facts, "rows": self.rows}

    def of(self, objectives: Iterable[str]) -> View:
        """The same with the rows of these objectives alone."""
        kept = set(objectives)
        return replace(self, rows=[row for row in self.rows if row["objective"] in kept])


def ranked(evidence: Evidence, setting: str) -> list[str]:
    """The objectives of a setting as its views have them: by the mean of ECE, what has none last."""
    values = {name: list(seeds.values()) for name, seeds in evidence.values(setting, "ece").items()}
    means = {name: mean for name, each in values.items() if math.isfinite(mean := float(np.mean(each)))}
    there = [name for name in evidence.objectives if evidence.of(setting, name)]
    return sorted(there, key=lambda name: means.get(name, math.inf))


def to_digits(values: Any, digits: int = 5) -> list[float]:
    """To so many significant digits, so that a page stays small."""
    listed = np.asarray(values, float).tolist()
    return [value if math.isnan(value) else float(f"{value:.{digits}g}") for value in listed]


def save(view: View, folder: str | os.PathLike[str], name: str) -> list[Path]:
    """Write a view for print as .pdf and as .png, each whole or not at all.

    Args:
        view: of `figures`.
        folder: made if it is not there.
        name: of the files, without ending.

    Returns:
        The paths of the files.

    >>> from matplotlib.figure import Figure
    >>> from tempfile import TemporaryDirectory
    >>> view = View("ranking", "digits/mlp", "ece", "ECE by seed", "", [], drawn=lambda view: Figure())
    >>> with TemporaryDirectory() as folder:
    ...     [path.name for path in save(view, folder, "ranking-ece")]
    ['ranking-ece.pdf', 'ranking-ece.png']
    """
    if not name or name != os.path.basename(name) or name.startswith("."):
        raise ValueError(f"name must be that of a file, without folder and ending, got {name!r}; choose a plain one")
    figure, made = view.plot(), []
    Path(folder).mkdir(parents=True, exist_ok=True)
    for form in FORMS:
        made.append(Path(folder) / f"{name}.{form}")
        write_atomically(made[-1], rendered(figure, form))
    return made


def as_file_name(*parts: str) -> str:
    """Names from outside as that of a file, with letters, digits and a few signs; runs of others are a dash.

    >>> as_file_name("ece", "digits/small cnn")
    'ece-digits-small-cnn'
    """
    return "-".join(re.sub(r"[^A-Za-z0-9_.=]+", "-", part).strip("-.") or "unnamed" for part in parts)


def unused(name: str, taken: Iterable[str]) -> str:
    """The name, with a number if another has it: `a/b` and `a b` look alike in a file's name.

    >>> unused("a-b", ["A-b", "a-b-2"])
    'a-b-3'
    """
    wanted, number, others = name[:_LONGEST], 2, {other.lower() for other in taken}
    free = wanted
    while free.lower() in others:
        free, number = f"{wanted}-{number}", number + 1
    return free
