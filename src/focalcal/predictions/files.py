"""Saving, loading and streaming: the suffix chooses the format, writes are whole or nothing, errors name the file."""

from __future__ import annotations

import os
import re
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from focalcal.core.arrays import as_array
from focalcal.core.atomic import atomic_file
from focalcal.core.checks import ROUNDING, rounding_collected, warn_of_rounding, yes_or_no
from focalcal.predictions import arrays_file, table_file
from focalcal.predictions.class_labels import InputWarning
from focalcal.predictions.header import KINDS, Header, Names, PredictionsFileError

if TYPE_CHECKING:
    from focalcal.predictions.record import Predictions

SUFFIXES = (".npz", *table_file.SUFFIXES)
UNKNOWN_SPLIT = "unknown"
_ICEBERG = re.compile(r"v?(\d+)(?:-.*)?(?:\.gz)?\.metadata\.json")  # a version of a table


def save(predictions: Predictions, path: str | os.PathLike[str]) -> None:
    """Write under a temporary name beside the target; rename when the bytes are on the disk."""
    path = Path(path)
    suffix = path.suffix.lower()
    with _naming(path):
        if suffix and suffix not in SUFFIXES:
            raise _wrong_suffix(path)
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


def load(cls: type[Predictions], path: str | os.PathLike[str], names: Names, *, mmap: bool) -> Predictions:
    """One `Predictions` from a file."""
    yes_or_no("mmap", mmap)
    path = Path(path)
    with _naming(path):
        header, fields = next(_row_batches(path, names, None, mmap=mmap), (None, None))
        if fields is None:
            raise PredictionsFileError("the file must hold at least one row, got none; make it again")
        whole = _predictions(cls, header, fields, names)
        _check_rows(header, whole.n)
        return whole


def stored_columns(path: str | os.PathLike[str]) -> list[str]:
    """The names of the columns of a table; none of another file."""
    path = Path(path)
    with _naming(path):
        refuse_versions(path)
        return table_file.stored_columns(path) if path.suffix.lower() in table_file.SUFFIXES and path.exists() else []


def score_columns(path: str | os.PathLike[str], **columns: Any) -> tuple[str, list[str]] | None:
    """The kind of a table's scores and their columns, found as `Predictions.load` finds them; None of another file."""
    path = Path(path)
    if path.suffix.lower() not in table_file.SUFFIXES:
        return None
    with _naming(path), warnings.catch_warnings():
        warnings.simplefilter("ignore", InputWarning)  # the reader says it
        places = table_file.layout_of(path, Names(**columns)).columns
    kind = next(kind for kind in KINDS if kind in places)
    return kind, places[kind]


def row_group_sizes(path: str | os.PathLike[str]) -> list[int]:
    """The number of rows of each row group of a .parquet file."""
    with _naming(Path(path)):
        return table_file.row_group_sizes(Path(path))


def stream(
    cls: type[Predictions],
    path: str | os.PathLike[str],
    names: Names,
    rows: int,
    row_groups: range | None = None,
) -> Iterator[Predictions]:
    """A file's rows as `Predictions` of at most `rows` rows; of a .parquet file those of some row groups."""
    path = Path(path)
    first_row = 0
    with _naming(path):
        batches = _row_batches(path, names, rows, row_groups=row_groups)
        if row_groups:
            first_row = sum(table_file.row_group_sizes(path)[: row_groups[0]])

    def each() -> Iterator[Predictions]:
        header, count, stated = None, 0, names
        warned: set[str] = set()
        while True:
            with _naming(path):
                header, fields = next(batches, (header, None))
                if fields is None:
                    if row_groups is None:
                        _check_rows(header, count)
                    return
                with rounding_collected() as misses:
                    part = _predictions(cls, header, fields, stated, first_row=first_row + count)
            if part.classes is not None:
                stated = replace(names, classes=part.classes)  # found in the first rows, they hold for all
            count += part.n
            for name, miss in misses.items():
                if miss > ROUNDING and name not in warned:  # once for the whole stream
                    warned.add(name)
                    warn_of_rounding(name, miss)
            yield part

    return each()


def refuse_versions(path: Path) -> None:
    """Refuse a Delta or Iceberg table, and a file of one: some of them hold rows that were overwritten or deleted."""
    folders = (path.resolve(), *path.resolve().parents) if path.is_dir() or path.suffix.lower() == ".parquet" else ()
    for folder in folders:
        versions = {file: _ICEBERG.fullmatch(file.name) for file in (folder / "metadata").glob("*.metadata.json")}
        numbers = {str(file): int(match[1]) for file, match in versions.items() if match}
        if (folder / "_delta_log").is_dir():
            kind, table = "a Delta", f"import deltalake; deltalake.DeltaTable({str(folder)!r})"
        elif numbers:
            newest = max(numbers, key=lambda file: numbers[file])
            kind = "an Iceberg"
            table = f"from pyiceberg.table import StaticTable; StaticTable.from_metadata({newest!r}).scan()"
        else:
            continue
        export = f"{table}.to_pandas().to_parquet('plain.parquet')"
        raise PredictionsFileError(
            f"predictions must be in plain files, got {kind} table in {folder}, whose files can hold rows that were "
            f'overwritten; export those that count: python -c "{export}"'
        )


def _row_batches(
    path: Path, names: Names, rows: int | None, *, mmap: bool = False, row_groups: range | None = None
) -> Iterator[Any]:
    """What the format's module reads, of a path that names something readable."""
    suffix = path.suffix.lower()
    refuse_versions(path)
    if not path.exists():
        raise PredictionsFileError("the file must exist, got nothing of that name; check the path")
    if path.is_dir() or suffix == ".npy":
        return arrays_file.row_batches(path, names, rows, mmap=mmap)
    if suffix not in SUFFIXES:
        raise _wrong_suffix(path)
    if mmap:
        raise PredictionsFileError(
            f"mmap=True maps .npy files, got {suffix}; save to a folder (a path without suffix) and load that, "
            "or use stream(path)"
        )
    if suffix == ".npz":
        return arrays_file.row_batches(path, names, rows)
    return table_file.row_batches(path, names, rows, row_groups)


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
    if names.classes is not None or (header and header.classes is not None):
        fields["classes"] = header.classes if header and names.classes is None else names.classes
    fields |= {"positive": names.positive, "normalize": names.normalize}
    fields["split"] = names.split or (header.split if header else UNKNOWN_SPLIT)
    if names.multilabel is not None:
        fields["multilabel"] = names.multilabel
    try:
        made = cls(provenance=header.provenance if header else None, **fields)
        return made._with_known(top1=True) if header and header.top1 and names == Names() else made
    except (TypeError, ValueError) as error:
        counted = f" (rows counted from row {first_row} of the file)" if first_row else ""
        raise PredictionsFileError(f"{error}{counted}; name other columns or fix the file") from error


def _check_rows(header: Header | None, count: int) -> None:
    expected = header.rows if header else max(1, count)
    if count != expected:
        raise PredictionsFileError(
            f"the file must hold {expected} row(s), got {count}; it may be cut off: make it again"
        )


def _wrong_suffix(path: Path) -> PredictionsFileError:
    return PredictionsFileError(
        f"the suffix must be one of {', '.join(SUFFIXES)}, or none for a folder of .npy files, got {path.suffix!r}; "
        "rename it"
    )


@contextmanager
def _naming(path: Path) -> Iterator[None]:
    """Turn whatever goes wrong with a file into one error that names it.

    Broad on purpose: a damaged file makes zip, NumPy, Arrow and JSON readers raise nearly anything.
    """
    try:
        yield
    except (ModuleNotFoundError, Warning):  # a warning, where warnings are errors
        raise
    except PredictionsFileError as error:
        raise PredictionsFileError(f"{path}: {error}") from error.__cause__
    except Exception as error:
        reason = " ".join(f"{type(error).__name__}: {error}".split())[:500]
        raise PredictionsFileError(
            f"{path}: cannot be read as predictions ({reason}); it may be cut off, damaged, not what its suffix says, "
            "or too large for memory: make it again, or use stream(path)"
        ) from error
