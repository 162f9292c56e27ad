"""Partitions of a monitor in files of any size: with outcomes, without, or with outcomes that came later, by ids."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from focalcal.auditing.files import part_files, places, read_rows
from focalcal.auditing.monitor_forecast import Sample
from focalcal.auditing.monitor_state import MonitorError
from focalcal.auditing.monitoring import Monitor, Update
from focalcal.auditing.partitions import stream
from focalcal.core.atomic import atomic_file
from focalcal.core.checks import shown
from focalcal.core.extras import required
from focalcal.predictions import Predictions, PredictionsFileError
from focalcal.predictions.columns import missing_column
from focalcal.predictions.files import is_table
from focalcal.predictions.header import KINDS, Names
from focalcal.predictions.locations import Source
from focalcal.predictions.table_file import NOTHING_SAID, layout_of
from focalcal.predictions.table_rows import open_rows, table_writer, whole_batches

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from focalcal.auditing.monitor_verdict import MonitorVerdict

_ROWS = 1 << 18  # of a batch of two columns


def monitor(
    state: str | os.PathLike[str],
    *partitions: Predictions | str | os.PathLike[str],
    columns: Mapping[str, Any] | None = None,
    baseline: Predictions | str | os.PathLike[str] | None = None,
    at: str | None = None,
    **settings: Any,
) -> MonitorVerdict:
    """Count partitions in a state file, look, and write the state: one call for a scheduled job.

    Args:
        state: the file; made if there is none.
        partitions: `Predictions`, or paths of files or folders, read with `columns` as an audit reads them.
        columns: of files, as an audit reads them.
        baseline: of the first call, or the same again.
        at: the period of rows that have no times.
        settings: those of `Monitor`; of a state that has begun they must be what it began with.

    Returns:
        Whether it still holds.

    >>> from tempfile import TemporaryDirectory
    >>> rows = Predictions(confidence=[0.9, 0.7, 0.8], correct=[True, True, False], split="live")
    >>> with TemporaryDirectory() as folder:
    ...     monitor(Path(folder, "state.json"), rows).alarm
    False
    """
    if columns is not None and not isinstance(columns, Mapping):
        raise TypeError(f"columns must be names by field, got {shown(columns)}; e.g. {{'labels': 'outcome'}}")
    begun = Path(state).exists()
    own = Monitor.load(state) if begun else Monitor(**settings)
    own.check(**settings)
    if isinstance(baseline, Predictions) and not begun:
        own.set_baseline([baseline])
    elif baseline is not None and not isinstance(baseline, Predictions):
        baseline_from_files(own, baseline, columns or {})
    for each in partitions:
        if isinstance(each, Predictions):
            own.update(each, at=at)
        else:
            update_from_files(own, each, columns or {}, at=at)
    verdict = own.look()
    own.save(state)
    return verdict


def update_from_files(
    monitor: Monitor,
    path: str | os.PathLike[str],
    columns: Mapping[str, Any],
    *,
    unlabelled: bool = False,
    outcomes: str | os.PathLike[str] | None = None,
    source: str | os.PathLike[str] | None = None,
    corrected: str | os.PathLike[str] | None = None,
    **options: Any,
) -> Update:
    """Count a file, or a folder of parts, as one partition; `columns` and `options` are those of an audit and `update`.

    unlabelled  whether there are no outcomes yet
    outcomes    a table with the columns of ids and labels, for rows that are in the file by their ids
    source      of rows without outcomes: labelled predictions of before, to estimate the label shift from
    corrected   the table to write with the probabilities that are corrected for it
    """
    if unlabelled or outcomes is not None:
        top1 = "confidence" in columns
        rows: Any = _scored(part_files([path]), dict(columns), outcomes)
    else:
        files = part_files([path])
        names, top1 = places(files[0], columns)
        rows = chain.from_iterable(_batches(file, names, top1) for file in files)
    if source is not None:
        files = part_files([source])
        options["source"] = read_rows(files, _of_baseline(files[0], columns), most_rows=Sample.most).predictions
    done = monitor.update(rows, top1=top1, labelled=not unlabelled, **options)
    if corrected is not None:
        if done.label_shift is None:
            raise ValueError(
                "corrected probabilities need new rows without outcomes, and a baseline to compare them with; give "
                "--unlabelled and --baseline"
            )
        _write_corrected(done.label_shift, Path(corrected), _scored(part_files([path]), dict(columns), None))
    return done


def _write_corrected(shift: Any, path: Path, batches: Iterator[Predictions]) -> None:
    arrow = required("pyarrow", purpose="Writing corrected probabilities")
    if path.suffix.lower() not in (".parquet", ".csv"):
        raise PredictionsFileError(f"{path} must be a .parquet or .csv file for corrected probabilities; rename it")
    with ExitStack() as stack:
        handle, write = stack.enter_context(atomic_file(path)), None
        for batch in batches:
            columns = {} if batch.ids is None else {"id": batch.ids}
            columns |= {f"prob_{k}": each for k, each in enumerate(np.asarray(shift.correct(batch.probs)).T)}
            table = arrow.table({name: np.ascontiguousarray(each) for name, each in columns.items()})
            write = write or stack.enter_context(table_writer(handle, table.schema, path.suffix.lower()))
            write(table)


def baseline_from_files(monitor: Monitor, path: str | os.PathLike[str], columns: Mapping[str, Any]) -> None:
    """`Monitor.set_baseline` of a file or a folder of parts; of a monitor that has one, check that it is the same."""
    files = part_files([path])
    names, top1 = places(files[0], _of_baseline(files[0], columns))
    begun = monitor.baseline is not None or monitor.pieces or monitor.scored
    other = Monitor(event=monitor.settings.event) if begun else monitor
    other.set_baseline(chain.from_iterable(_batches(file, names, top1) for file in files), top1=top1)
    assert other.baseline is not None
    if begun and (monitor.baseline is None or monitor.baseline.digest != other.baseline.digest):
        raise MonitorError(
            f"baseline must be the one that the state began with, got {os.fspath(path)}, whose rows are others; begin "
            "another state for another baseline"
        )


def _of_baseline(file: Source, columns: Mapping[str, Any]) -> dict[str, Any]:
    """The columns without times and ids where the table has none: a validation set needs neither."""
    from focalcal.predictions.files import stored_columns

    stored = stored_columns(file)
    missing = {name for name in ("times", "ids") if stored and columns.get(name) not in (None, *stored)}
    return {name: place for name, place in columns.items() if name not in missing}


def _batches(file: Source, names: dict[str, Any], top1: bool) -> Iterator[Predictions]:
    """Of a file; all at once where rows have clusters, whose sizes count."""
    unnamed = names.get("drop_missing") and names.get("ids") is None and is_table(file)
    if unnamed and "ids" not in layout_of(file, Names(**names)).columns:
        names = names | {"ids": False}  # else their rows in the file, which would be those of other files too
    for batch in stream(file, names, top1, rows=_ROWS):
        if batch.clusters is not None:
            yield Predictions.load(file, **names)
            return
        yield batch


def _scored(files: list[Source], columns: dict[str, Any], outcomes: Any) -> Iterator[Predictions]:
    """The rows of files without labels; with `outcomes` those that have one there, under their labels."""
    known = None if outcomes is None else _Outcomes(Path(outcomes), columns)
    unused = ("confidence", "correct", *(["positive"] if known is None else []))  # which would name but one class
    names = {name: place for name, place in columns.items() if name not in unused}
    names |= {"probs": columns["confidence"]} if "confidence" in columns else {}
    for file in files:
        if not is_table(file):
            raise PredictionsFileError(f"{file} must be a .parquet or .csv file to be read without labels")
        yield from _batches(file, names | {"labels": _unknown if known is None else known.labels}, False)
    if known is not None:
        known.check_all_found()


def _unknown(fields: Mapping[str, Any], classes: Sequence[Any] | None) -> tuple[Any, Any]:
    """Any label of every row: none is looked at."""
    rows = len(next(fields[kind] for kind in KINDS if kind in fields))
    return np.full(rows, 0 if classes is None else classes[0]), np.arange(rows)


class _Outcomes:
    """A table of ids and labels, sorted by the ids."""

    def __init__(self, path: Path, columns: Mapping[str, Any]) -> None:
        ids, labels = columns.get("ids") or "id", columns.get("labels") or columns.get("correct") or "label"
        self._path, found = path, []
        with ExitStack() as stack:
            rows = open_rows(path, NOTHING_SAID, stack)
            for column in (ids, labels):
                if column not in rows.columns:
                    raise PredictionsFileError(f"{path}: {missing_column(column, rows.columns)}")
            tables = whole_batches(rows, [], keep_text=False)
            found = [[table.column(name).to_numpy() for name in (ids, labels)] for table in tables]
        self._ids = np.concatenate([each.astype(np.str_) for each, _ in found])
        self._labels = np.concatenate([each for _, each in found])
        order = np.argsort(self._ids)
        self._ids, self._labels = self._ids[order], self._labels[order]
        self._used = np.zeros(len(self._ids), bool)
        if len(double := self._ids[1:][self._ids[1:] == self._ids[:-1]]):
            raise PredictionsFileError(f"{path} must have one row per id, got several of {double[0]!r}; keep the last")

    def labels(self, fields: Mapping[str, Any], _: Any) -> tuple[NDArray[Any], NDArray[np.int64]]:
        """The labels of those rows whose ids are here, and their places."""
        if "ids" not in fields:
            raise PredictionsFileError("rows must have ids for outcomes to be found by, got none; name their column")
        text = np.asarray(fields["ids"]).astype(np.str_)
        at = np.minimum(np.searchsorted(self._ids, text), max(len(self._ids) - 1, 0))
        kept = np.flatnonzero(self._ids[at] == text) if len(self._ids) else np.empty(0, np.int64)
        self._used[at[kept]] = True
        return self._labels[at[kept]], kept

    def check_all_found(self) -> None:
        """Refuse labels of rows that nobody has scored."""
        if not self._used.all():
            unknown = self._ids[~self._used]
            raise MonitorError(
                f"{self._path} must have labels of rows that were scored, got {len(unknown):,} unknown id(s), "
                f"the first {str(unknown[0])!r}; name the file that has their scores"
            )
