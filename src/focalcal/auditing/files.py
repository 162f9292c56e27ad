"""Audits of files, of any size: all rows in the estimates, a uniform sample of them in the rest."""

from __future__ import annotations

import math
import os
import warnings
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from focalcal.auditing.executors import Executor, collect
from focalcal.auditing.partitions import OnBadPart, Reading, class_factors, stream
from focalcal.core.checks import ROUNDING, one_of, rounding_collected
from focalcal.metrics import METRICS, CalibrationSketch, Interval
from focalcal.predictions import Predictions, PredictionsFileError
from focalcal.predictions.columns import find_scores
from focalcal.predictions.files import READABLE, score_columns, stored_columns
from focalcal.predictions.header import KINDS, NoRowsError
from focalcal.predictions.inputs import InputWarning
from focalcal.predictions.locations import Location, Source, files_below, is_folder, suffix_of
from focalcal.predictions.reading_notes import notes_collected
from focalcal.predictions.versioned_tables import plain_source

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from focalcal.auditing.auditor import Audit

SAMPLE = 100_000  # rows at most
_ELEMENTS = 40_000_000  # of a sample at most, whatever the number of classes
_ABOUT_ROWS = ("groups", "weights", "clusters", "times")  # columns that a baseline need not have
_TOP1 = {"confidence": "probs", "correct": "labels"}  # columns of top-1 rows, and what they are read as


@dataclass(frozen=True, eq=False)
class FileRows:
    """The rows of files, or a uniform sample of them with the sketch of all.

    rows    in the files
    sketch  of all rows; None for several labels per row
    top1    whether they are confidences and correctness alone
    notes   what was inferred
    first   the file whose rows were read first
    kept    what the rows are, if they are not all
    """

    predictions: Predictions
    rows: int
    sketch: CalibrationSketch | None
    top1: bool
    notes: tuple[str, ...]
    first: Source
    kept: str = ""


def audit_files(
    paths: str | os.PathLike[str] | Location | Sequence[str | os.PathLike[str] | Location],
    *,
    baseline: str | os.PathLike[str] | None = None,
    columns: Mapping[str, Any] | None = None,
    most_rows: int = SAMPLE,
    executor: Executor = "local",
    address: str | None = None,
    on_bad_part: OnBadPart = "refuse",
    **options: Any,
) -> Audit:
    """Audit one or more files, or folders of parts, as one set of rows; `options` are those of `audit`.

    `columns` are keywords of `Predictions.load` that name columns, or "confidence" and "correct" of top-1 rows, which
    are found by these names where there are no scores. Of more than `most_rows` rows the metrics are those of all,
    computed in one pass; their intervals and everything else come from a uniform sample of `most_rows`, which does not
    depend on how the rows are spread over files. Parts without rows are counted in the notes; a part that cannot be
    read is an error, or with on_bad_part="skip" left out, and named in the notes. .parquet files are read in partitions
    side by side, by threads or, with executor="ray", by the tasks of a Ray cluster (`address`, or one of this machine),
    with the same numbers.
    """
    if address is not None and executor != "ray":
        raise ValueError(f"address names a Ray cluster, got {address!r} with executor {executor!r}; use executor ray")
    files = part_files([paths] if isinstance(paths, str | os.PathLike | Location) else paths)
    how: dict[str, Any] = {"most_rows": most_rows, "executor": executor, "address": address}
    how["on_bad_part"] = on_bad_part
    read = read_rows(files, columns or {}, options=options, **how)
    scores = {name: place for name, place in (columns or {}).items() if name not in _ABOUT_ROWS}
    other = None if baseline is None else read_rows(part_files([baseline]), scores, **how)
    if other is not None and other.top1 != read.top1:
        raise ValueError("baseline must be of the same kind as the predictions, got top-1 rows in one of them alone")
    # Here, so that a wrong column is said without waiting for calibrators.
    from focalcal.auditing.auditor import audit
    from focalcal.posthoc.storage import ScoreColumns

    with rounding_collected():  # the notes say it
        result = audit(
            read.predictions, baseline=None if other is None else other.predictions, top1=read.top1, **options
        )
    if result.fixes is not None and result.fixes.calibrator is not None:
        names, _ = places(read.first, columns or {})
        place = score_columns(read.first, **names)
        result.fixes.calibrator.columns_ = None if place is None else ScoreColumns(place[0], tuple(place[1]))
    result = replace(result, notes=(*read.notes, *result.notes))
    return result if read.rows == read.predictions.n else _of_all_rows(result, read)


def part_files(paths: Iterable[str | os.PathLike[str] | Location]) -> list[Source]:
    """The files themselves; of a folder its parts in the order of their names, but for .hidden ones and _SUCCESS.

    Parts may be in folders called month=2026-01 and the like, whose names are columns.
    """
    files: list[Source] = []
    for given in paths:
        source = plain_source(given)
        arrays = isinstance(source, Path) and any((source / f"{kind}.npy").is_file() for kind in KINDS)
        if arrays or not is_folder(source):
            files.append(source)
            continue
        parts = list(files_below(source))
        for part, names in parts:
            if (
                suffix_of(part) not in READABLE
                or suffix_of(part) == ".txt"
                or not all("=" in folder for folder in names[:-1])
            ):
                raise PredictionsFileError(
                    f"{given} must hold parts of one table and nothing else, got {'/'.join(names)}; "
                    "name the files one by one"
                )
        if not parts:
            raise PredictionsFileError(f"{given} must hold at least one file of predictions, got an empty folder")
        files += [part for part, _ in parts]
    if not files:
        raise PredictionsFileError("paths must name at least one file of predictions, got none")
    return files


def read_rows(
    files: Sequence[Source],
    columns: Mapping[str, Any],
    *,
    most_rows: int = SAMPLE,
    executor: Executor = "local",
    address: str | None = None,
    options: Mapping[str, Any] | None = None,
    seed: int = 0,
    on_bad_part: OnBadPart = "refuse",
) -> FileRows:
    """All rows if there are at most `most_rows` of them, else a uniform sample, and the sketch of all.

    `options` of `audit` that do not fit the first rows are refused before the others are read.
    """
    with warnings.catch_warnings(record=True) as inferred:
        warnings.simplefilter("always", InputWarning)
        path, names, top1, first = _first_rows(files, columns, on_bad_part)
    top1 = top1 or first.top1
    notes = [_sentence(str(each.message)) for each in inferred if issubclass(each.category, InputWarning)]
    if options is not None:
        from focalcal.auditing.auditor import check_request

        check_request(first, top1=top1, **options)
    most = min(most_rows, max(1, _ELEMENTS // first.n_classes))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", InputWarning)  # the first rows have said it
        factors = class_factors(first, top1)
        reading = Reading(names, first[:1], top1, most, seed=seed, on_bad_part=on_bad_part, factors=factors)
        collected = collect(files, reading, executor, address)
    notes += [note for note in map(_sentence, collected.notes.sentences()) if note not in notes]
    used = "divided by their sums" if columns.get("normalize") else "used as they are"
    notes += [
        f"Rows of {name} miss the sum one by up to {miss:.2g}; they were {used}."
        for name, miss in collected.misses.items()
        if miss > ROUNDING
    ]
    sample = Predictions.concatenate(collected.sample, split=first.split, provenance={})
    kept = f"a uniform sample of {sample.n:,} rows"
    if factors is not None and sample.n < collected.rows and collected.sketch is not None:
        sample, kept = _restored(sample, collected.sketch.classes.correct.sum(1))
    return FileRows(sample, collected.rows, collected.sketch, top1, tuple(notes), path, kept)


def _first_rows(
    files: Sequence[Source], columns: Mapping[str, Any], on_bad_part: str
) -> tuple[Source, dict[str, Any], bool, Predictions]:
    """The first file that has rows, how its columns are read, and its first rows."""
    one_of("on_bad_part", on_bad_part, ("refuse", "skip"))
    refused: list[PredictionsFileError] = []
    for path in files:
        try:
            names, top1 = places(path, columns)
            with notes_collected() as notes:
                first = next(stream(path, names, top1), None)
            for message in notes.found:
                warnings.warn(message, InputWarning, stacklevel=1)
        except NoRowsError as error:
            refused.append(error)
        except PredictionsFileError as error:
            if on_bad_part == "refuse":
                raise
            refused.insert(0, error)
        else:
            if first is not None:
                return path, names, top1, first
    raise (
        refused[0]
        if refused
        else PredictionsFileError(f"{files[0]} must have a row with every value, got none; name other columns")
    )


def places(path: Source, columns: Mapping[str, Any]) -> tuple[dict[str, Any], bool]:
    """The columns as `Predictions.stream` takes them, and whether rows are confidences and correctness alone."""
    top1 = bool(_TOP1.keys() & columns.keys())
    if not top1 and not columns.keys() & {*KINDS, "labels"}:
        stored = stored_columns(path)
        top1 = _TOP1.keys() <= set(stored) and not any(find_scores(kind, stored) for kind in KINDS)
    if not top1:
        return dict(columns), False
    if unused := columns.keys() & {*KINDS, "labels", "positive", "classes"}:
        raise ValueError(f"confidence and correct take the place of {', '.join(sorted(unused))}; give one or the other")
    places = {kind: columns.get(name, name) for name, kind in _TOP1.items()}
    return {name: value for name, value in columns.items() if name not in _TOP1} | places, True


def _restored(sample: Predictions, rows: NDArray[np.float64]) -> tuple[Predictions, str]:
    """With weights by which the classes have the shares that they have in all rows."""
    kept = np.bincount(sample.labels, minlength=2)
    share = rows / np.maximum(kept, 1)
    rare = int(share.argmin())
    all_of = "all" if kept[rare] == rows[rare] else f"{kept[rare]:,} of"
    said = (
        f"{all_of} {rows[rare]:,.0f} rows of the rarer class and a uniform sample of {kept[1 - rare]:,} of the "
        f"{rows[1 - rare]:,.0f} others, weighted so that the rate is that of all rows"
    )
    return sample.with_weights(share[sample.labels]), said


def _sentence(message: str) -> str:
    """A warning as a note: its first part, for the rest says what to write in Python."""
    text = message.split("; say ")[0]
    return f"{text[0].upper()}{text[1:]}."


def _of_all_rows(of_sample: Audit, read: FileRows) -> Audit:
    """Estimates and verdict of all rows; the rest of the sample."""
    from focalcal.auditing.auditor import SURVEY
    from focalcal.auditing.event import of_all_rows
    from focalcal.auditing.verdict import verdict_of_means

    if read.sketch is None:
        note = f"All numbers are of {read.kept}."
        return replace(of_sample, rows=read.rows, sample=read.predictions.n, notes=(note, *of_sample.notes))
    share = read.predictions.n / read.rows
    metrics = {
        name: _moved(interval, getattr(read.sketch, name)(), share)
        if name in METRICS and read.sketch.has(METRICS[name])
        else interval
        for name, interval in of_sample.metrics.items()
    }
    _, sure, right, squares, products = (read.sketch.moments.sum(1) / read.rows).tolist()
    verdict = verdict_of_means(read.rows, sure - right, squares - 2 * products + right, sure - squares, metrics["ece"])
    events = tuple(of_all_rows(event, read.sketch) for event in of_sample.events)
    only = len(events) == 1 and of_sample.event is not None
    metrics |= {name: value for event in events for name, value in event.metrics(only=only).items()}
    stratified = read.predictions.weights is not None  # by us: rows with weights of their own have no sketch
    note = (
        f"Metrics, reliability and the verdict are of all rows; intervals of metrics and the rest are of {read.kept}."
    )
    said = tuple(said for said in of_sample.notes if not (stratified and said.startswith(SURVEY)))
    return replace(
        of_sample, verdict=verdict, metrics=metrics, events=events, reliability=read.sketch.reliability(),
        rows=read.rows, sample=read.predictions.n, notes=(note, *said),
    )  # fmt: skip


def _moved(interval: Interval, estimate: float, share: float) -> Interval:
    """The interval of a sample around the estimate of all rows, wider than these would allow.

    What chance alone gives shrinks with the root of the number of rows. An error that the sample does not show to
    exceed it keeps the low end 0.
    """
    by = estimate - interval.estimate
    shown = interval.chance is None or interval.low > 0
    return replace(
        interval,
        estimate=estimate,
        low=min(interval.low + by, estimate) if shown else 0.0,
        high=interval.high + by,
        chance=None if interval.chance is None else interval.chance * math.sqrt(share),
    )
