"""A stored calibrator on the tables of production: no labels, all other columns kept, memory that does not grow."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import IO, TYPE_CHECKING, Any

import numpy as np

from focalcal.core.atomic import atomic_file
from focalcal.core.checks import ROUNDING, rounding_collected, warn_of_rounding
from focalcal.core.extras import required
from focalcal.posthoc.groupwise import GroupwiseCalibration
from focalcal.posthoc.multilabel import MultilabelCalibration
from focalcal.predictions.columns import PREFIXES, Columns, find_scores, missing_column, named_columns
from focalcal.predictions.header import KEY, KINDS, Header, Names, PredictionsFileError
from focalcal.predictions.inputs import class_scores
from focalcal.predictions.locations import Location, Source
from focalcal.predictions.table_rows import numbers_of, open_rows, table_parts, table_writer, whole_batches
from focalcal.predictions.versioned_tables import plain_source

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from focalcal.posthoc.calibrator import Calibrator

SUFFIXES = (".parquet", ".csv")


@dataclass(frozen=True)
class _Place:
    """The scores' kind and columns in the order of the classes, and what the calibrated probabilities are called."""

    kind: str
    columns: list[str]
    named: list[str]


def calibrate_tables(
    calibrator: Calibrator | GroupwiseCalibration | MultilabelCalibration,
    source: str | os.PathLike[str] | Location | IO[bytes],
    out: str | os.PathLike[str] | IO[bytes],
    *,
    logits: str | Sequence[str] | None = None,
    probs: str | Sequence[str] | None = None,
    **reading: Any,
) -> int:
    """Calibrate the scores of a table and keep all of its other columns, in their order; the number of rows.

    source  a .parquet or .csv file, a binary stream of CSV, or a folder of such files, however deep
    out     a file or a stream likewise; of a folder a new folder, whose files are called as those of `source`
    reading  `scale`, `delimiter`, `decimal` and `encoding` of `Predictions.load`; percentages stay percentages;
            `normalize` divides each row of probabilities by its sum, and a warning says by how much it was off
    logits, probs  the columns of the scores: their names in the order of the classes, or what stands before their
            numbers; by default those that the audited table had, else those with the usual names

    Calibrated probabilities stand where their probabilities stood; in the place of logits stand columns prob_0, ... Of
    two classes one column is that of the positive class and gives one. Text in a .csv is written as it was read. The
    groups of a `GroupwiseCalibration` are in columns that are called as at its fit.
    """
    given, names = {"logits": logits, "probs": probs}, Names(**reading)
    if isinstance(source, str | os.PathLike | Location):
        origin: Source | IO[bytes] = plain_source(source)
    else:
        origin = source
    if not isinstance(origin, Path) or not origin.is_dir():
        return _calibrate_table(calibrator, origin, out, given, names)
    if not isinstance(out, str | os.PathLike) or Path(out).suffix.lower() in SUFFIXES or Path(out).exists():
        raise PredictionsFileError(
            f"out must be the name of a new folder where the rows are in a folder, got {str(out)!r}; name another"
        )
    parts, target, rows = table_parts(origin), Path(out), 0
    with TemporaryDirectory(dir=target.parent, prefix=".", suffix=".tmp") as temporary:
        inside = Path(temporary, target.name)
        for part in parts:
            place = inside / part.relative_to(origin)
            place.parent.mkdir(parents=True, exist_ok=True)
            rows += _calibrate_table(calibrator, part, place, given, names)
        inside.rename(target)
    return rows


def _calibrate_table(calibrator: Any, source: Any, out: Any, given: dict[str, Any], names: Names) -> int:
    """One file or stream."""
    out = Path(out) if isinstance(out, str | os.PathLike) else out
    suffix = out.suffix.lower() if isinstance(out, Path) else ".csv"
    if suffix not in SUFFIXES:
        raise PredictionsFileError(f"{out} must be a .parquet or a .csv file, got {suffix!r}; rename it")
    if isinstance(source, Path) and not source.exists():
        raise PredictionsFileError(f"{source} must exist, got nothing of that name; check the path")
    name = str(source) if isinstance(source, Path | Location) else "standard input"
    with ExitStack() as stack:
        try:
            rows = open_rows(source, names, stack)
            place = _place(calibrator, rows, given)
        except PredictionsFileError as error:
            raise PredictionsFileError(f"{name}: {error}") from error
        handle = stack.enter_context(atomic_file(out)) if isinstance(out, Path) else out
        return _write(calibrator, rows, place, handle, suffix, name, names)


def _write(calibrator: Any, rows: Any, place: _Place, handle: IO[bytes], suffix: str, name: str, reading: Names) -> int:
    """Batch by batch; the schema is that of the first one."""
    count, write = 0, None
    with ExitStack() as stack, rounding_collected() as misses:
        percent = reading.scale == "percent"
        batches = whole_batches(rows, place.columns, keep_text=suffix == ".csv", percent=percent)
        for batch in _named_errors(batches, name):
            try:
                table = _calibrated(calibrator, rows, batch, place, count, reading)
            except ValueError as error:
                counted = f" (rows counted from row {count} of the file)" if count else ""
                raise PredictionsFileError(f"{name}: {error}{counted}") from error
            if write is None:
                stated = _header(rows.header, calibrator, place, table)
                metadata = {**(table.schema.metadata or {}), **stated}
                schema = table.schema.with_metadata(metadata or None)
                write = stack.enter_context(table_writer(handle, schema, suffix))
            write(table.replace_schema_metadata(schema.metadata))
            count += batch.num_rows
    for argument, miss in misses.items():
        if miss > ROUNDING:
            warn_of_rounding(argument, miss, used="divided by their sums" if reading.normalize else "used as they are")
    return count


def _named_errors(batches: Iterator[Any], name: str) -> Iterator[Any]:
    try:
        yield from batches
    except PredictionsFileError as error:
        raise PredictionsFileError(f"{name}: {error}") from error


def _calibrated(calibrator: Any, rows: Any, table: Any, place: _Place, first_row: int, reading: Names) -> Any:
    """The table with calibrated probabilities, in percent if the scores are."""
    arrow = required("pyarrow", purpose="Calibrating a table")
    percent, normalize = reading.scale == "percent", reading.normalize
    scores = numbers_of(rows, table, place.columns, first_row, percent=percent)
    nested = scores.shape[1] > 1 and len(place.columns) == 1
    if len(scores):
        if normalize and isinstance(calibrator, MultilabelCalibration):
            raise ValueError("normalize=True is for one label per row, got a calibrator of several; leave it out")
        if normalize and scores.shape[1] > 1:
            scores = class_scores(place.kind, scores, normalize=True)[0]
        groups = {"groups": _groups(calibrator, table)} if isinstance(calibrator, GroupwiseCalibration) else {}
        scores = _probabilities(calibrator, scores, place.kind, groups) * (100 if percent else 1)
    columns: list[Any] = [scores] if nested else list(scores.T)
    for old, new, column in zip(place.columns, place.named, columns, strict=True):
        at = table.schema.get_field_index(old)
        flat = arrow.array(np.ascontiguousarray(column).ravel())
        if nested:
            offsets = np.arange(0, column.size + 1, column.shape[1], dtype=np.int32)
            flat = arrow.ListArray.from_arrays(offsets, flat)
        table = table.set_column(at, new, flat)
    return table


def _groups(calibrator: GroupwiseCalibration, table: Any) -> dict[str, NDArray[Any]]:
    """The columns of groups, called as at the fit; a .csv may have numbers as text."""
    found = {}
    for name, levels in calibrator.levels_.items():
        if name not in table.column_names:
            raise missing_column(name, table.column_names)
        column = table.column(name).to_numpy()
        if column.dtype.kind == "O" and isinstance(levels[0], int):
            column = column.astype(np.int64)
        found[name] = column
    return found


def _probabilities(
    calibrator: Any, scores: NDArray[np.floating], kind: str, groups: dict[str, Any]
) -> NDArray[np.floating]:
    """As many columns of them as there are of scores."""
    if isinstance(calibrator, MultilabelCalibration) or scores.shape[1] > 1:
        return calibrator.predict_proba(**{kind: scores}, **groups)
    both: NDArray[np.floating] = calibrator.predict_proba(**{kind: class_scores(kind, scores)[0]}, **groups)
    return both[:, 1:]


def _place(calibrator: Any, rows: Any, given: dict[str, Any]) -> _Place:
    """Where the scores are: where the caller says, else where the audited table had them, else under usual names."""
    kind, found = _found(calibrator, rows, given)
    names, classes = found.names, getattr(calibrator, "n_features_in_", None)
    known = None if isinstance(calibrator, MultilabelCalibration) else getattr(calibrator, "_names", None)
    if found.classes is not None and known is not None and set(found.classes) == {*map(str, known)}:
        names = [names[found.classes.index(str(name))] for name in known]  # columns stand in another order
    one = len(names) == 1
    if classes is not None and len(names) != classes and not one:
        raise PredictionsFileError(
            f"the scores must be in {classes} columns, one for each class of the calibrator, got {len(names)}: "
            f"{', '.join(names[:9])}; name them by --{kind}"
        )
    if kind == "probs":
        return _Place(kind, names, names)
    prefix = PREFIXES["probs"][0]
    new = [prefix] if one else [f"{prefix}_{k if known is None else known[k]}" for k in range(len(names))]
    if taken := [name for name in new if name in rows.columns and name not in names]:
        raise PredictionsFileError(
            f"the table must have no column {taken[0]!r}, where the calibrated probability goes; rename it"
        )
    return _Place(kind, names, new)


def _found(calibrator: Any, rows: Any, given: dict[str, Any]) -> tuple[str, Columns]:
    for kind in KINDS:
        if given[kind] is not None:
            return kind, named_columns(given[kind], rows.columns)
    audited = calibrator.columns_
    if audited is not None and set(audited.names) <= set(rows.columns):
        return audited.kind, Columns(list(audited.names))
    usual = {kind: columns for kind in KINDS if (columns := find_scores(kind, rows.columns))}
    if len(usual) == 2 and audited is not None:
        usual = {audited.kind: usual[audited.kind]}
    if len(usual) != 1:
        wanted = "logits or probabilities" if audited is None else ", ".join(map(repr, audited.names[:9]))
        raise PredictionsFileError(
            f"the table must have columns of scores ({wanted}), got {', '.join(map(repr, rows.columns[:24]))}; name "
            "them by --probs, --logits or --score"
        )
    return next(iter(usual.items()))


def _header(header: Header | None, calibrator: Any, place: _Place, table: Any) -> dict[bytes, bytes]:
    """What a file of ours states of itself, for probabilities; nothing of another file."""
    if header is None:
        return {}
    stated = {name: getattr(header, name) for name in Header.__dataclass_fields__}
    if stated["classes"] is None:
        del stated["classes"]
    width = table.schema.field(place.named[0]).type
    stated |= {"kind": "probs", "dtype": "float32" if str(width) == "float" else "float64"}
    stated["provenance"] = {"calibrator": type(calibrator).__name__, **header.provenance}
    return {KEY.encode(): json.dumps(stated).encode()}
