"""How often prediction sets hold the label, and how large they are: in all, by size, by class and by group."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from focalcal.core.display import Displayed, text_table
from focalcal.metrics.reliability import wilson

if TYPE_CHECKING:
    from jaxtyping import Bool, Int


class PartCoverage(NamedTuple):
    """Coverage of some rows with Wilson's 95 % interval, and the mean size of their sets."""

    rows: int
    coverage: float
    low: float
    high: float
    mean_size: float


@dataclass(frozen=True, repr=False)
class SetCoverage(Displayed):
    """How often the sets of held-out rows hold the label, with Wilson's 95 % interval, and how large they are.

    Attributes:
        coverage: the share of rows whose set holds the label.
        low: the lower end of its interval.
        high: the upper one.
        mean_size: of the sets, in classes.
        by_size: (rows, coverage) of each size: sets that adapt cover alike at every one.
        by_class: the `PartCoverage` of the rows with each label.
        by_group: likewise of each group, if groups were given.

    >>> from focalcal.posthoc import ConformalSets
    >>> probs, labels = [[0.7, 0.2, 0.1], [0.5, 0.3, 0.2], [0.6, 0.3, 0.1], [0.4, 0.4, 0.2]], [0, 1, 0, 0]
    >>> sets = ConformalSets(alpha=0.2, randomized=False).fit(probs=probs, labels=labels)
    >>> found = sets.evaluate(probs=probs, labels=labels)
    >>> found.coverage, found.mean_size
    (1.0, 1.25)
    """

    coverage: float
    low: float
    high: float
    mean_size: float
    by_size: dict[int, tuple[int, float]]
    by_class: dict[Any, PartCoverage] = field(default_factory=dict)
    by_group: dict[Any, PartCoverage] = field(default_factory=dict)

    def frame(self) -> dict[str, list[Any]]:
        """One row per size of a set."""
        rows, coverage = zip(*self.by_size.values(), strict=True)
        return {"size": list(self.by_size), "rows": list(rows), "coverage": list(coverage)}

    def parts(self) -> dict[str, list[Any]]:
        """One row per class and per group."""
        each = [("class", *item) for item in self.by_class.items()] + [
            ("group", *item) for item in self.by_group.items()
        ]
        columns: dict[str, list[Any]] = {"part": [part for part, _, _ in each], "name": [name for _, name, _ in each]}
        return columns | {name: [getattr(found, name) for _, _, found in each] for name in PartCoverage._fields}

    def __str__(self) -> str:
        """Coverage and mean size, the worst class and group, and one line per size."""
        found = [
            f"coverage {self.coverage:.4f} [{self.low:.4f}, {self.high:.4f}], {self.mean_size:.2f} classes per set"
        ]
        for kind, parts in (("class", self.by_class), ("group", self.by_group)):
            if parts:
                name, part = min(parts.items(), key=lambda item: item[1].coverage)
                found.append(
                    f"least in {kind} {name}: {part.coverage:.4f} [{part.low:.4f}, {part.high:.4f}], "
                    f"{part.mean_size:.2f} classes per set"
                )
        return "\n".join([*found, text_table(self.frame())])


def set_coverage(
    sets: Bool[np.ndarray, "n k"], labels: Int[np.ndarray, " n"], groups: Any, names: tuple[Any, ...] | None
) -> SetCoverage:
    """Of sets and labels, with the names of the classes and one group per row if there are any."""
    hit, size = sets[np.arange(len(labels)), labels], sets.sum(1)
    whole = _part(hit, size)
    by_size = {int(k): (int((size == k).sum()), float(hit[size == k].mean())) for k in np.unique(size)}
    by_class = {
        int(k) if names is None else names[k]: _part(hit[labels == k], size[labels == k]) for k in np.unique(labels)
    }
    by_group = {}
    if groups is not None:
        each, member = np.unique(groups, return_inverse=True)
        by_group = {name: _part(hit[member == at], size[member == at]) for at, name in enumerate(each.tolist())}
    return SetCoverage(whole.coverage, whole.low, whole.high, whole.mean_size, by_size, by_class, by_group)


def _part(hit: Bool[np.ndarray, " n"], size: Int[np.ndarray, " n"]) -> PartCoverage:
    low, high = wilson(hit.sum(), np.array(len(hit)))
    return PartCoverage(len(hit), float(hit.mean()), float(low), float(high), float(size.mean()))
