"""Audits of files, of any size: all rows in the estimates, a uniform sample of them in the rest."""

from __future__ import annotations

import math
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from focalcal.auditing.auditor import Audit, audit, check_request
from focalcal.metrics import METRICS, CalibrationSketch, Interval
from focalcal.predictions import Predictions, PredictionsFileError

SUFFIXES = (".npz", ".npy", ".parquet", ".csv")
SAMPLE = 100_000  # rows at most
_ELEMENTS = 40_000_000  # of a sample at most, whatever the number of classes
_BATCH = 1 << 22  # elements read at once, about


@dataclass(frozen=True, eq=False)
class FileRows:
    """The rows of files, or a uniform sample of them with the sketch of all.

    rows    in the files
    sketch  of all rows where there are more than the sample has; None for several labels per row
    """

    predictions: Predictions
    rows: int
    sketch: CalibrationSketch | None


def audit_files(
    paths: str | os.PathLike[str] | Sequence[str | os.PathLike[str]],
    *,
    baseline: str | os.PathLike[str] | None = None,
    columns: Mapping[str, Any] | None = None,
    most_rows: int = SAMPLE,
    **options: Any,
) -> Audit:
    """Audit one or more files, or folders of parts, as one set of rows; `options` are those of `audit`.

    `columns` are keywords of `Predictions.load` that name columns. Files are read in batches. Of more than `most_rows`
    rows the metrics are those of all, computed in one pass; their intervals and everything else come from a uniform
    sample of `most_rows`, which does not depend on how the rows are spread over files.
    """
    files = part_files([paths] if isinstance(paths, str | os.PathLike) else paths)
    check_request(next(_batches(files[:1], columns or {})), **options)
    read = read_rows(files, columns or {}, most_rows)
    other = None
    if baseline is not None:
        other = read_rows(part_files([baseline]), columns or {}, most_rows).predictions
    found = audit(read.predictions, baseline=other, **options)
    return found if read.rows == read.predictions.n else _of_all_rows(found, read)


def part_files(paths: Iterable[str | os.PathLike[str]]) -> list[Path]:
    """The files themselves; of a folder its parts in the order of their names, but for .hidden ones and _SUCCESS."""
    files: list[Path] = []
    for given in map(Path, paths):
        if not given.is_dir() or (given / "logits.npy").is_file() or (given / "probs.npy").is_file():
            files.append(given)
            continue
        parts = sorted(part for part in given.iterdir() if not part.name.startswith((".", "_")))
        foreign = [part for part in parts if part.suffix.lower() not in SUFFIXES or part.is_dir()]
        if foreign:
            raise PredictionsFileError(
                f"{given} must hold parts of one table and nothing else, got {foreign[0].name}; "
                "name the files one by one"
            )
        if not parts:
            raise PredictionsFileError(f"{given} must hold at least one file of predictions, got an empty folder")
        files += parts
    if not files:
        raise PredictionsFileError("paths must name at least one file of predictions, got none")
    return files


def read_rows(files: Sequence[Path], columns: Mapping[str, Any], most_rows: int = SAMPLE, seed: int = 0) -> FileRows:
    """All rows if there are at most `most_rows` of them, else a uniform sample and the sketch of all."""
    draws = np.random.default_rng(seed)
    kept: list[tuple[np.ndarray[Any, Any], Predictions]] = []
    sketch: CalibrationSketch | None = None
    total, held, most = 0, 0, most_rows
    for part in _batches(files, columns):
        most = min(most_rows, max(1, _ELEMENTS // part.n_classes))
        keys = draws.random(part.n)  # one number per row in order, however the rows come
        total, held = total + part.n, held + part.n
        if not part.multilabel:
            batch = CalibrationSketch.of(part)
            sketch = batch if sketch is None else sketch + batch
        kept.append((keys, part))
        if held > 2 * most:
            kept = [_smallest(kept, most)]
            held = most
    if held > most:
        kept = [_smallest(kept, most)]
    rows = Predictions.concatenate([part for _, part in kept], split=kept[0][1].split, provenance={})
    return FileRows(rows, total, sketch)


def _batches(files: Sequence[Path], columns: Mapping[str, Any]) -> Iterator[Predictions]:
    classes = None
    for path in files:
        for part in Predictions.stream(path, rows=_BATCH // (classes or 64), **columns):
            if classes is not None and part.n_classes != classes:
                raise PredictionsFileError(
                    f"{path} must have {classes} classes like the files before it, got {part.n_classes}; "
                    "audit it by itself"
                )
            classes = part.n_classes
            yield part


def _smallest(
    kept: Sequence[tuple[np.ndarray[Any, Any], Predictions]], most: int
) -> tuple[np.ndarray[Any, Any], Predictions]:
    """The rows with the smallest keys, in their order."""
    keys = np.concatenate([part_keys for part_keys, _ in kept])
    limit = np.partition(keys, most - 1)[most - 1]
    parts = [part[np.flatnonzero(part_keys <= limit)] for part_keys, part in kept if (part_keys <= limit).any()]
    return keys[keys <= limit], Predictions.concatenate(parts, split=parts[0].split, provenance={})


def _of_all_rows(found: Audit, read: FileRows) -> Audit:
    """Estimates of all rows; intervals of the sample, moved to them, which is wider than all rows would allow."""
    metrics = dict(found.metrics)
    share = read.predictions.n / read.rows
    note = f"Intervals, classes, groups and calibrators are of a uniform sample of {read.predictions.n:,} rows."
    if read.sketch is None:
        return replace(
            found,
            rows=read.rows,
            notes=(f"All numbers are of a uniform sample of {read.predictions.n:,} rows.", *found.notes),
        )
    for name, interval in found.metrics.items():
        if METRICS[name].source.holds:
            estimate = getattr(read.sketch, name)()
            moved = estimate - interval.estimate
            metrics[name] = Interval(
                estimate, interval.low + moved, interval.high + moved, interval.level, interval.chance
            )
    half = math.sqrt(share) * (found.verdict.high - found.verdict.low) / 2
    gap = metrics["confidence_gap"].estimate
    verdict = replace(found.verdict, rows=read.rows, gap=gap, low=gap - half, high=gap + half, ece=metrics["ece"])
    return replace(
        found, verdict=verdict, metrics=metrics, reliability=read.sketch.reliability(), rows=read.rows,
        notes=(note, *found.notes),
    )  # fmt: skip
