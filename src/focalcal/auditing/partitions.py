"""Rows of files in partitions that can be read side by side.

What is kept of a partition is small: the sketch of its rows, and those of them that are in the uniform sample. A row is
in the sample if its key is among the smallest; keys are random numbers in the order of all rows, so that neither the
files nor the partitions decide.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from focalcal.core.checks import rounding_collected
from focalcal.metrics import CalibrationSketch
from focalcal.predictions import Predictions, PredictionsFileError
from focalcal.predictions.files import row_group_sizes

if TYPE_CHECKING:
    from numpy.typing import NDArray

_ELEMENTS = 1 << 22  # scores of a partition, about
_BATCH = 1 << 20  # scores of a partition that are in memory, about
_ALIKE = ("kind", "multilabel", "n_classes", "classes")


@dataclass(frozen=True)
class Partition:
    """Files one after the other, or some row groups of a .parquet file; `first_row` rows stand before them in all."""

    files: tuple[Path, ...]
    first_row: int = 0
    row_groups: range | None = None


@dataclass(frozen=True, eq=False)
class Reading:
    """How every partition is read.

    columns   keywords of `Predictions.stream`
    like      what every file must be like: the first rows of the first one
    top1      whether the second of two columns is the confidence of a prediction, and the label whether it is right
    most      rows of the sample
    below     only rows with smaller keys can be in the sample
    """

    columns: Mapping[str, Any]
    like: Predictions
    top1: bool
    most: int
    below: float = 1.0
    seed: int = 0


@dataclass(frozen=True, eq=False)
class Collected:
    """What is kept of rows: how many there are, their sketch, sample and rounding.

    sketch  None of rows with several labels, with weights or in clusters
    keys    of the rows of the sample
    misses  how far rows of probabilities are from the sum one at most
    """

    rows: int
    sketch: CalibrationSketch | None
    keys: NDArray[np.float64]
    sample: tuple[Predictions, ...]
    misses: dict[str, float]

    def smallest(self, most: int) -> Collected:
        """With at most so many rows in the sample, those of the smallest keys."""
        if len(self.keys) <= most:
            return self
        limit = np.partition(self.keys, most - 1)[most - 1]
        sizes = np.cumsum([part.n for part in self.sample])[:-1]
        chosen = [np.flatnonzero(keys <= limit) for keys in np.split(self.keys, sizes)]
        sample = tuple(part[rows] for part, rows in zip(self.sample, chosen, strict=True) if len(rows))
        return Collected(self.rows, self.sketch, self.keys[self.keys <= limit], sample, self.misses)


def merge(parts: Iterable[Collected], most: int) -> Collected:
    """Of all parts in their order."""
    whole = Collected(0, None, np.empty(0), (), {})
    for part in parts:
        sketch = part.sketch if whole.sketch is None or part.sketch is None else whole.sketch + part.sketch
        misses = {name: max(miss, whole.misses.get(name, 0.0)) for name, miss in part.misses.items()}
        whole = Collected(
            whole.rows + part.rows,
            sketch,
            np.concatenate([whole.keys, part.keys]),
            whole.sample + part.sample,
            whole.misses | misses,
        )
        if len(whole.keys) > 2 * most:
            whole = whole.smallest(most)
    return whole.smallest(most)


def partitions_of(files: Sequence[Path], like: Predictions) -> tuple[list[Partition], int | None]:
    """Partitions in the order of the rows, and how many rows there are if all files are .parquet; else one partition.

    Files whose labels name the classes are not divided: the names are found in the first rows.
    """
    if not all(path.suffix.lower() == ".parquet" for path in files):
        return [Partition(tuple(files))], None
    partitions, first_row = [], 0
    for path in files:
        sizes = row_group_sizes(path)
        if not sum(sizes):
            raise PredictionsFileError(f"{path} must hold at least one row, got none; leave it out")
        if like.classes is None:
            bounds = np.concatenate([[0], np.cumsum(sizes)]).tolist()
            for groups in _row_groups(bounds, max(1, _ELEMENTS // like.n_classes)):
                partitions.append(Partition((path,), first_row + bounds[groups[0]], groups))
        else:
            partitions.append(Partition((path,), first_row))
        first_row += sum(sizes)
    return partitions, first_row


def _row_groups(bounds: list[int], most: int) -> Iterator[range]:
    """Consecutive row groups of at most so many rows, or one."""
    start = 0
    for at in range(1, len(bounds)):
        if at + 1 == len(bounds) or bounds[at + 1] - bounds[start] > most:
            yield range(start, at)
            start = at


def read_partition(reading: Reading, partition: Partition) -> Collected:
    """The rows of a partition, batch by batch."""
    kept = Collected(0, None, np.empty(0), (), {})
    generator = np.random.Generator(np.random.PCG64(reading.seed).advance(partition.first_row))
    below = reading.below
    with rounding_collected() as misses:
        for part in _batches(partition, reading):
            keys = generator.random(part.n)
            chosen = np.flatnonzero(keys < below)
            sample = (_named(part, chosen, partition.first_row + kept.rows),) if len(chosen) else ()
            batch = Collected(part.n, _sketch(part, reading.top1), keys[chosen], sample, {})
            kept = merge([kept, batch], reading.most)
            if len(kept.keys) == reading.most:
                below = min(below, float(kept.keys.max()))
    return Collected(kept.rows, kept.sketch, kept.keys, kept.sample, dict(misses))


def _batches(partition: Partition, reading: Reading) -> Iterator[Predictions]:
    rows = max(1, _BATCH // reading.like.n_classes)
    for path in partition.files:
        for part in stream(path, reading.columns, reading.top1, rows=rows, row_groups=partition.row_groups):
            _check_alike(path, part, reading.like)
            yield part


def stream(path: Path, columns: Mapping[str, Any], top1: bool, **more: Any) -> Iterator[Predictions]:
    """`Predictions.stream`, with errors that name the columns of top-1 rows."""
    try:
        for part in Predictions.stream(path, **columns, **more):
            _check_groups(path, part)
            yield part
    except PredictionsFileError as error:
        if not top1:
            raise
        rule = f"{columns['probs']!r} must be confidences from 0 to 1 and {columns['labels']!r} be 0 or 1"
        raise PredictionsFileError(f"{error}; {rule}") from error


def _check_groups(path: Path, part: Predictions) -> None:
    if part.groups is not None and part.groups.dtype.kind != "i" and bool((part.groups == "").any()):
        raise PredictionsFileError(f"{path} must name the group of every row, got an empty name; fill it in")


def _check_alike(path: Path, part: Predictions, like: Predictions) -> None:
    for name in _ALIKE:
        wanted, got = getattr(like, name), getattr(part, name)
        if wanted != got:
            what = "classes" if name == "n_classes" else name
            raise PredictionsFileError(
                f"{path} must have {what} {wanted} like the file before it, got {got}; audit it by itself"
            )
    for name in ("scores", "ids", "groups"):
        wanted, got = (_type_of(getattr(each, name)) for each in (like, part))
        if wanted != got:
            raise PredictionsFileError(
                f"{path} must have {name} of type {wanted} like the file before it, got {got}; write all parts alike"
            )


def _type_of(values: Any) -> str | None:
    if values is None or values.dtype.kind == "f":
        return None if values is None else str(values.dtype)
    return "integer" if values.dtype.kind == "i" else "text"


def _named(part: Predictions, chosen: NDArray[np.int64], first_row: int) -> Predictions:
    """Some rows, called by their place in all files unless they have ids."""
    rows = part[chosen]
    return rows if rows.ids is not None else rows.with_ids(first_row + chosen)


def _sketch(part: Predictions, top1: bool) -> CalibrationSketch | None:
    if part.multilabel or part.weights is not None or part.clusters is not None:
        return None
    if top1:
        return CalibrationSketch.of(confidence=part.scores[:, 1], correct=part.labels)
    return CalibrationSketch.of(part)
