"""Saving, loading and streaming: the suffix chooses the format, writes are whole or nothing, errors name the file."""

from __future__ import annotations

import os
import warnings
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from focalcal.core.arrays import as_array
from focalcal.core.atomic import atomic_file
from focalcal.core.checks import ROUNDING, collect_miss, rounding_collected, warn_of_rounding, yes_or_no
from focalcal.predictions import arrays_file, table_file
from focalcal.predictions.class_labels import InputWarning
from focalcal.predictions.foreign_formats import refuse_foreign
from focalcal.predictions.header import KINDS, Header, Names, NoRowsError, PredictionsFileError
from focalcal.predictions.locations import Source, exists, is_folder, location, suffix_of
from focalcal.predictions.reading_notes import Missing, say_missing
from focalcal.predictions.versioned_tables import plain_source

if TYPE_CHECKING:
    from focalcal.predictions.record import Predictions

SUFFIXES = (".npz", ".parquet", ".csv")  # that are written
READABLE = (".npz", ".npy", *table_file.READERS)
UNKNOWN_SPLIT = "unknown"
Place = str | os.PathLike[str] | Source


def save(predictions: Predictions, path: str | os.PathLike[str]) -> None:
    """Write under a temporary name beside the target; rename when the bytes are on the disk."""
    path = Path(path)
    suffix = path.suffix.lower()
    with _naming(path):
        if suffix and suffix not in SUFFIXES:
            raise _wrong_suffix(path, SUFFIXES)
        if not path.parent.is_dir():
            raise PredictionsFileError(f"the folder must exist, got no folder {path.parent}; create it first")
        if path.is_dir() or (not suffix and path.exists()):
            raise PredictionsFileError("the name must be free, got a folder or file of that name; choose another name")
    if not suffix:
        arrays_file.write_folder(path, predictions)
        return
    with atomic_file(path) as handle:
        if suffix == ".npz":
            arrays_file.write_archive(handle, predictions)
        else:
            table_file.write(handle, predictions, suffix)


def load(cls: type[Predictions], path: Place, names: Names, *, mmap: bool) -> Predictions:
    """One `Predictions` from a file: the only one of a stream of all rows at once."""
    yes_or_no("mmap", mmap)
    (whole,) = stream(cls, path, names, None, mmap=mmap)
    return whole


def stored_columns(path: Place) -> list[str]:
    """The names of the columns of a table; none of another file."""
    with _naming(path):
        if not is_table(source := plain_source(path)):
            return []
        with table_file.opened_table(source) as table:
            columns: list[str] = table.columns
            return columns


def is_table(source: Source) -> bool:
    """Whether it is there and has columns."""
    return suffix_of(source) in table_file.READERS and exists(source) and not is_folder(source)


def score_columns(path: Place, **columns: Any) -> tuple[str, list[str]] | None:
    """The kind of a table's scores and their columns, found as `Predictions.load` finds them; None of another file."""
    with _naming(path), warnings.catch_warnings():
        warnings.simplefilter("ignore", InputWarning)  # the reader says it
        source = plain_source(path)
        if not is_table(source):
            return None
        layout = table_file.layout_of(source, Names(**columns))
    return next(kind for kind in KINDS if kind in layout.columns), layout.scores


def row_group_sizes(path: Place) -> list[int]:
    """The number of rows of each row group of a .parquet file."""
    with _naming(path), table_file.opened_table(location(path)) as table:
        sizes: list[int] = table.row_group_sizes
        return sizes


def stream(
    cls: type[Predictions],
    path: Place,
    names: Names,
    rows: int | None,
    row_groups: range | None = None,
    *,
    mmap: bool = False,
) -> Iterator[Predictions]:
    """A file's rows as `Predictions` of at most `rows` rows, or all; of a .parquet file those of some row groups."""
    first_row = 0
    with _naming(path):
        source = plain_source(path)
        batches = _row_batches(source, names, rows, mmap=mmap, row_groups=row_groups)
        if row_groups:
            first_row = sum(row_group_sizes(source)[: row_groups[0]])

    def each() -> Iterator[Predictions]:
        header, missing, stated, any_row = None, Missing(), names, False
        warned: set[str] = set()
        while True:
            with _naming(path):
                header, fields = next(batches, (header, None))
                if fields is None:
                    if row_groups is None:
                        _check_rows(header, missing.rows)
                        if missing.rows and not any_row:
                            raise PredictionsFileError(
                                f"some row must have every value, got none: {missing}; name other columns"
                            )
                    say_missing(missing)
                    return
                start, of_batch = first_row + missing.rows, _without_missing(fields, names)
                missing.add(of_batch)
                if of_batch.rows == of_batch.left_out:
                    continue
                any_row = True
                if callable(names.labels):
                    labels, kept = names.labels(fields, _classes(fields, header, stated))
                    if not len(kept):
                        continue
                    fields = {name: _kept(values, kept) for name, values in fields.items()} | {"labels": labels}
                with rounding_collected() as misses:
                    part = _predictions(cls, header, fields, stated, first_row=start)
            if part.classes is not None:
                stated = replace(names, classes=part.classes)  # found in the first rows, they hold for all
            for name, miss in misses.items():
                said = collect_miss(name, miss) or names.normalize  # who asks to normalize knows
                if not said and miss > ROUNDING and name not in warned:  # once for the whole stream
                    warned.add(name)
                    warn_of_rounding(name, miss)
            yield part

    return each()


def _row_batches(
    source: Source, names: Names, rows: int | None, *, mmap: bool = False, row_groups: range | None = None
) -> Iterator[Any]:
    """What the format's module reads, of a path that names something readable."""
    suffix = suffix_of(source)
    if not exists(source):
        raise PredictionsFileError("the file must exist, got nothing of that name; check the path")
    local = source if isinstance(source, Path) else source.local
    if local is not None and (local.is_dir() or suffix == ".npy"):
        return _keeping(source, arrays_file.row_batches(local, names, rows, mmap=mmap))
    if local is not None:
        refuse_foreign(local, suffix)
    if suffix not in READABLE:
        raise _wrong_suffix(source)
    if mmap:
        raise PredictionsFileError(
            f"mmap=True maps .npy files, got {suffix}; save to a folder (a path without suffix) and load that, "
            "or use stream(path)"
        )
    if suffix == ".npz" and local is not None:
        return _keeping(source, arrays_file.row_batches(local, names, rows))
    return table_file.row_batches(source, names, rows, row_groups)


def _keeping(source: Source, batches: Iterator[Any]) -> Iterator[Any]:
    """The batches, while the copy that they are read from is kept."""
    yield from batches
    del source


def _without_missing(fields: dict[str, Any], names: Names) -> Missing:
    """What the reader of a table left out; of arrays the rows with NaN are left out here, from each of `fields`."""
    if (missing := fields.pop("missing", None)) is not None:
        return missing  # type: ignore[no-any-return]
    missing = Missing(len(fields["labels"]))
    if not names.drop_missing:
        return missing
    arrays = {name: array for name, array in fields.items() if name != "multilabel"}
    lacking = {
        name: np.isnan(array).reshape(len(array), -1).any(1)
        for name, array in arrays.items()
        if array.dtype.kind in "fM"
    }
    wrong = np.logical_or.reduce(list(lacking.values()) or [np.zeros(missing.rows, bool)])
    missing.left_out = int(wrong.sum())
    missing.columns.update({name: int(each.sum()) for name, each in lacking.items() if each.any()})
    fields.setdefault("ids", np.arange(missing.rows))
    fields |= {name: fields[name][~wrong] for name in (*arrays, "ids")}
    return missing


def _predictions(
    cls: type[Predictions], header: Header | None, fields: dict[str, Any], names: Names, first_row: int = 0
) -> Predictions:
    """Predictions of what a format read, in the width that the caller or the header asks for."""
    for name in (*KINDS, "posterior"):
        width = names.dtype or names.stated_type(name, header)
        width = "float32" if width == "bfloat16" else width  # NumPy's nearest, which holds its values
        if width and name in fields and fields[name].dtype.kind == "f":
            given = as_array(name, fields[name])
            with np.errstate(over="ignore"):
                found = given.astype(width, copy=False)
            if given.dtype != found.dtype and (lost := np.isinf(found) & np.isfinite(given)).any():
                raise PredictionsFileError(f"{name} must fit in {width}, got {given[lost][0]:g}; load them as float64")
            fields[name] = found
    if header and header.group_names is not None and names.groups is None and getattr(fields["groups"], "ndim", 0) == 2:
        fields["groups"] = dict(zip(header.group_names, fields["groups"].T, strict=True))
    if several := [name for name in fields if name.startswith("groups.")]:  # arrays of an .npz, one for each name
        fields["groups"] = {name.removeprefix("groups."): fields.pop(name) for name in several}
    if (classes := _classes(fields, header, names)) is not None:
        fields["classes"] = classes
    fields |= {"positive": names.positive, "normalize": names.normalize, "scale": names.scale}
    fields["split"] = names.split or (header.split if header else UNKNOWN_SPLIT)
    if names.multilabel is not None:
        fields["multilabel"] = names.multilabel
    try:
        made = cls(provenance=header.provenance if header else None, **fields)
        own_places = (names.logits, names.probs, names.labels) == (None, None, None)
        return made._with_known(top1=True) if header and header.top1 and own_places else made
    except (TypeError, ValueError) as error:
        counted = f" (rows counted from row {first_row} of the file)" if first_row else ""
        remedy = _if_percentages(fields) or "name other columns or fix the file"
        raise PredictionsFileError(f"{error}{counted}; {remedy}") from error


def _classes(fields: dict[str, Any], header: Header | None, names: Names) -> Any:
    """What the caller says, else what the file states, else what its columns' names say."""
    stated = header.classes if header and names.classes is None else names.classes
    return fields.get("classes") if stated is None else stated


def _kept(values: Any, rows: Any) -> Any:
    if isinstance(values, dict):
        return {name: each[rows] for name, each in values.items()}
    return values[rows] if isinstance(values, np.ndarray) else values


def _if_percentages(fields: dict[str, Any]) -> str | None:
    """What to say where probabilities look like percentages: from 0 to 100, and half of the rows sum to about 100.

    A column by itself has no sum: 1.5 is rather a probability gone wrong, and above 2 it is a percentage.
    """
    scores = np.asarray(fields.get("probs", ()))
    if fields["scale"] == "percent" or scores.dtype.kind not in "iuf" or not scores.size:
        return None
    highest, one = float(scores.max()), scores[0].size == 1 or fields.get("multilabel")
    if not (2 * bool(one) < highest <= 100 + ROUNDING and scores.min() >= 0):  # false for NaN
        return None
    if not one and np.mean(np.abs(scores.sum(1, dtype=np.float64) - 100) <= 5) < 0.5:
        return None
    return f'if {highest:.9g} is a percentage, say scale="percent"'


def _check_rows(header: Header | None, count: int) -> None:
    if not count:
        raise NoRowsError("the file must hold at least one row, got none; make it again")
    if header and count != header.rows:
        raise PredictionsFileError(
            f"the file must hold {header.rows} row(s), got {count}; it may be cut off: make it again"
        )


def _wrong_suffix(path: Source, known: Iterable[str] = READABLE) -> PredictionsFileError:
    return PredictionsFileError(
        f"the suffix must be one of {', '.join(known)}, or none for a folder of .npy files, got {path.suffix!r}; "
        "rename it"
    )


@contextmanager
def _naming(path: Place) -> Iterator[None]:
    """Turn whatever goes wrong with a file into one error that names it.

    Broad on purpose: a damaged file makes zip, NumPy, Arrow and JSON readers raise nearly anything.
    """
    try:
        yield
    except (ModuleNotFoundError, Warning):  # a warning, where warnings are errors
        raise
    except PredictionsFileError as error:
        named = str(error).startswith(f"{path}: ")
        raise type(error)(str(error) if named else f"{path}: {error}") from error.__cause__
    except Exception as error:
        reason = " ".join(f"{type(error).__name__}: {error}".split())[:500]
        raise PredictionsFileError(
            f"{path}: cannot be read as predictions ({reason}); it may be cut off, damaged, not what its suffix says, "
            "or too large for memory: make it again, or use stream(path)"
        ) from error
