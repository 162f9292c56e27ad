"""What is in a store: every run, from a Parquet file beside the runs where that is not stale, else from its folder.

A run is never changed once it is there. What was read of it stays true as long as its files have the same sizes and
times. The file is written whole by whoever finds it stale, under a temporary name; deleting it is safe.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

from focalcal.core.atomic import atomic_file
from focalcal.lab.store.diagnostics import RunProblem, StoreProblem
from focalcal.lab.store.layout import INDEX, LAYOUT, RUNS
from focalcal.lab.store.run import Run, glance_of
from focalcal.lab.store.run_folder import Checksums, FileStates, read_folder, state_of, unreadable

_COLUMNS = ("name", "state", "glance", "records")
_STALE = 50  # the file is made again when more than one row of so many is missing or too many
_FEW = 100  # runs are read as quickly from their folders


def list_store(store: Path, checksums: Checksums, *, indexed: bool = True) -> tuple[dict[str, Run], list[StoreProblem]]:
    """The runs by key, in that order, and what in the store's folder is not a run that can be used.

    Each is from the index where that holds, else from its folder; then the index is made again if it is stale.
    """
    known = _read(store / INDEX) if indexed else {}
    runs: dict[str, Run] = {}
    problems: list[StoreProblem] = []
    rows: dict[str, tuple[str, str, str]] = {}
    new = 0
    for name in run_folders(store):
        folder = os.path.join(store, RUNS, name)  # not a Path: there are thousands
        try:
            state = state_of(folder)
            digest = _digest(state)
            row = known.get(name)
            if row is None or row[0] != digest:
                read = read_folder(folder, state)
                problems += read.problems
                records = json.dumps({"run": read.record, "evaluations": read.evaluations})
                row = (digest, json.dumps(glance_of(read.record)), records)
                new += 1
                if not read.problems:  # else it is read until its evaluations are whole
                    rows[name] = row
            else:
                rows[name] = row
        except (RunProblem, OSError) as error:
            if os.path.lexists(folder):  # else it was removed meanwhile
                known_as = error if isinstance(error, RunProblem) else unreadable(folder, error)
                problems.append(known_as.problem)
            continue
        runs[name] = Run(folder, row[2], checksums, glance=row[1])
    stale = new + len(known.keys() - rows.keys())
    if indexed and len(rows) > _FEW and stale * _STALE > len(rows):
        with suppress(OSError):  # a store that cannot be written to can be read all the same
            _write(store / INDEX, rows)
    return runs, problems


def run_folders(store: Path) -> list[str]:
    """The names of what lies among the runs."""
    with suppress(FileNotFoundError):
        return sorted(os.listdir(store / RUNS))
    return []


def _digest(state: FileStates) -> str:
    text = repr(sorted(state.items())).encode(errors="surrogateescape")
    return hashlib.blake2b(text, digest_size=12).hexdigest()


def _read(path: Path) -> dict[str, tuple[str, str, str]]:
    """The rows by name; none of a file that is not there, is of another version, or is not what was written."""
    if not path.is_file() or path.is_symlink():
        return {}
    import pyarrow
    from pyarrow import parquet

    try:
        table = parquet.read_table(path, columns=list(_COLUMNS), page_checksum_verification=True)
        if (table.schema.metadata or {}).get(b"layout") != str(LAYOUT).encode():
            return {}
        columns = [table[name].to_pylist() for name in _COLUMNS]
        return {name: (state, glance, records) for name, state, glance, records in zip(*columns, strict=True)}
    except (OSError, KeyError, ValueError, pyarrow.ArrowException):
        return {}


def _write(path: Path, rows: Mapping[str, tuple[str, str, str]]) -> None:
    import pyarrow
    from pyarrow import parquet

    columns = zip(*((name, *row) for name, row in rows.items()), strict=True)
    table = pyarrow.table(dict(zip(_COLUMNS, map(list, columns), strict=True)))
    table = table.replace_schema_metadata({"layout": str(LAYOUT)})
    with atomic_file(path) as handle:
        parquet.write_table(table, handle, compression="zstd", write_page_checksum=True)
