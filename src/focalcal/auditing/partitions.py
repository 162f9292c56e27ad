"""Rows of files in partitions that can be read side by side.

What is kept of a partition is small: the sketch of its rows, and those of them that are in the uniform sample. A row is
in the sample if its key is among the smallest; keys are random numbers in the order of all rows, so that neither the
files nor the partitions decide.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from focalcal.core.checks import rounding_collected
from focalcal.metrics import CalibrationSketch
from focalcal.predictions import Predictions, PredictionsFileError
from focalcal.predictions.files import row_group_sizes
from focalcal.predictions.header import NoRowsError
from focalcal.predictions.locations import Source, suffix_of
from focalcal.predictions.reading_notes import ReadingNotes, notes_collected

if TYPE_CHECKING:
    from numpy.typing import NDArray

OnBadPart = Literal["refuse", "skip"]  # a part that cannot be read ends the audit, or is left out and named
_ELEMENTS = 1 << 22  # scores of a partition, about
_BATCH = 1 << 20  # scores of a partition that are in memory, about
_RARE = 0.1  # a class below this share of the first rows is sampled more densely
_TELLING = 1000  # first rows that say which class is rare
_UNSEEN = 0.05  # the factor of a class that the first rows do not have: they may be in the order of the labels
_ALIKE = ("kind", "multilabel", "n_classes", "classes")


@dataclass(frozen=True)
class Partition:
    """Files one after the other, or some row groups of a .parquet file; `first_row` rows stand before them in all."""

    files: tuple[Source, ...]
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
    factors   of the keys of each class: a class with a small one is more likely to be in the sample
    """

    columns: Mapping[str, Any]
    like: Predictions
    top1: bool
    most: int
    below: float = 1.0
    seed: int = 0
    on_bad_part: OnBadPart = "refuse"
    factors: tuple[float, ...] | None = None


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
    notes: ReadingNotes = field(default_factory=ReadingNotes)

    def smallest(self, most: int) -> Collected:
        """With at most so many rows in the sample, those of the smallest keys."""
        if len(self.keys) <= most:
            return self
        limit = np.partition(self.keys, most - 1)[most - 1]
        sizes = np.cumsum([part.n for part in self.sample])[:-1]
        chosen = [np.flatnonzero(keys <= limit) for keys in np.split(self.keys, sizes)]
        sample = tuple(part[rows] for part, rows in zip(self.sample, chosen, strict=True) if len(rows))
        return Collected(self.rows, self.sketch, self.keys[self.keys <= limit], sample, self.misses, self.notes)


def class_factors(first: Predictions, top1: bool) -> tuple[float, ...] | None:
    """Of two classes such that a sample has as many rows of either, or all of the rarer one, as the first rows go."""
    plain = first.weights is None and first.clusters is None and not first.multilabel and not top1
    if not plain or first.n_classes != 2:
        return None
    counts = np.bincount(first.labels, minlength=2)
    rare, others = int(counts.min()), int(counts.max())
    if rare > _RARE * first.n or first.n < _TELLING:
        return None
    factor = rare / others if rare else _UNSEEN
    return (factor, 1.0) if counts.argmin() == 0 else (1.0, factor)


def merge(parts: Iterable[Collected], most: int) -> Collected:
    """Of all parts in their order."""
    whole, notes = Collected(0, None, np.empty(0), (), {}), ReadingNotes()
    for part in parts:
        notes.add(part.notes)
        sketch = part.sketch if whole.sketch is None or part.sketch is None else whole.sketch + part.sketch
        misses = {name: max(miss, whole.misses.get(name, 0.0)) for name, miss in part.misses.items()}
        whole = Collected(
            whole.rows + part.rows,
            sketch,
            np.concatenate([whole.keys, part.keys]),
            whole.sample + part.sample,
            whole.misses | misses,
            notes,
        )
        if len(whole.keys) > 2 * most:
            whole = whole.smallest(most)
    return whole.smallest(most)


def partitions_of(
    files: Sequence[Source], like: Predictions, on_bad_part: OnBadPart = "refuse"
) -> tuple[list[Partition], int | None]:
    """Partitions in the order of the rows, and how many rows there are if all files are .parquet; else one partition.

    Files whose labels name the classes are not divided: the names are found in the first rows. Nor are those that may
    turn out to be bad, and are left out as a whole then.
    """
    if not all(suffix_of(path) == ".parquet" for path in files):
        return [Partition(tuple(files))], None
    partitions, first_row = [], 0
    for path in files:
        sizes: list[int] = []
        try:
            sizes = row_group_sizes(path)
        except PredictionsFileError:
            if on_bad_part == "refuse":
                raise
        if like.classes is None and on_bad_part == "refuse" and sum(sizes) > 0:
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
    whole = Collected(0, None, np.empty(0), (), {})
    generator = np.random.Generator(np.random.PCG64(reading.seed).advance(partition.first_row))
    below = reading.below
    for path in partition.files:
        try:
            first_row = partition.first_row + whole.rows
            own, below_then = _read_file(path, reading, partition.row_groups, generator, first_row, below)
        except NoRowsError:
            whole.notes.empty.append(str(path))
        except PredictionsFileError as error:
            if reading.on_bad_part == "refuse":
                raise
            whole.notes.skipped[str(path)] = str(error).removeprefix(f"{path}: ")
        else:
            below, whole = below_then, merge([whole, own], reading.most)
    return whole


def _read_file(
    path: Source,
    reading: Reading,
    row_groups: range | None,
    generator: np.random.Generator,
    first_row: int,
    below: float,
) -> tuple[Collected, float]:
    """The rows of a file, and below which key others can still be in the sample."""
    kept = Collected(0, None, np.empty(0), (), {})
    rows = max(1, _BATCH // reading.like.n_classes)
    with rounding_collected() as misses, notes_collected() as notes:
        for part in stream(path, reading.columns, reading.top1, rows=rows, row_groups=row_groups):
            _check_alike(path, part, reading.like)
            factor = 1.0 if reading.factors is None else np.take(reading.factors, part.labels)
            keys = generator.random(part.n) * factor
            chosen = np.flatnonzero(keys < below)
            sample = (_named(part, chosen, first_row + kept.rows),) if len(chosen) else ()
            batch = Collected(part.n, _sketch(part, reading.top1), keys[chosen], sample, {})
            kept = merge([kept, batch], reading.most)
            if len(kept.keys) == reading.most:
                below = min(below, float(kept.keys.max()))
    return replace(kept, misses=dict(misses), notes=notes), below


def stream(path: Source, columns: Mapping[str, Any], top1: bool, **more: Any) -> Iterator[Predictions]:
    """`Predictions.stream`, with errors that name the columns of top-1 rows."""
    try:
        for part in Predictions.stream(path, **columns, **more):
            _check_groups(path, part)
            yield part
    except PredictionsFileError as error:
        if not top1 or isinstance(error, NoRowsError):
            raise
        rule = f"{columns['probs']!r} must be confidences from 0 to 1 and {columns['labels']!r} be 0 or 1"
        raise PredictionsFileError(f"{error}; {rule}") from error


def _check_groups(path: Source, part: Predictions) -> None:
    if part.groups is not None and part.groups.dtype.kind != "i" and bool((part.groups == "").any()):
        raise PredictionsFileError(f"{path} must name the group of every row, got an empty name; fill it in")


def _check_alike(path: Source, part: Predictions, like: Predictions) -> None:
    for name in _ALIKE:
        wanted, got = getattr(like, name), getattr(part, name)
        if wanted != got:
            what = "classes" if name == "n_classes" else name
            raise PredictionsFileError(
                f"{path} must have {what} {wanted} like the file before it, got {got}; audit it by itself"
            )
    for name in ("ids", "groups"):
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
