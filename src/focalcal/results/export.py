"""Runs as one file: a table for other programs, or an archive that is itself a store."""

from __future__ import annotations

import zipfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from focalcal.core.atomic import atomic_file, write_atomically
from focalcal.core.csv_text import csv_text
from focalcal.core.extras import required
from focalcal.results.arrow import arrow_table, column_names
from focalcal.results.layout import EVALUATIONS, FILES, LAYOUT, MARK, RUNS, WHAT, json_bytes
from focalcal.results.run import Run
from focalcal.results.tables import split_rows

_FIRST = ("key", "data_set", "model", "objective", "seed", "seconds", "epochs", "options")


def export(runs: Sequence[Run], path: Path) -> Path:
    """Write the file whole or not at all; one of that name is replaced."""
    writers = {".zip": _zip, ".csv": _csv, ".parquet": _parquet}
    if path.suffix.lower() not in writers:
        raise ValueError(f"path must end in {', '.join(writers)}, got {path.name!r}; choose one of them")
    if not path.parent.is_dir():
        raise FileNotFoundError(f"path must lie in a folder that exists, got {path}; create {path.parent} first")
    writers[path.suffix.lower()](runs, path)
    return path


def _zip(runs: Sequence[Run], path: Path) -> None:
    """Every file is compared with its checksum: what is exported is what was stored."""
    with atomic_file(path) as handle, zipfile.ZipFile(handle, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr(MARK, json_bytes({"what": WHAT, "schema": LAYOUT}))
        for run in runs:
            lists = [run.path / FILES, *(run.path / EVALUATIONS / name / FILES for name in run.evaluations)]
            for path in dict.fromkeys([*map(run.file, run.files), *filter(Path.exists, lists)]):
                archive.write(path, f"{RUNS}/{run.path.name}/{path.relative_to(run.path)}")


def _csv(runs: Sequence[Run], path: Path) -> None:
    rows = list(split_rows(runs))
    names = column_names(_FIRST, rows)
    text = csv_text([names.values(), *([row.get(name) for name in names] for row in rows)])
    write_atomically(path, text.encode())


def _parquet(runs: Sequence[Run], path: Path) -> None:
    arrow, parquet = (required(module, purpose="A table of runs") for module in ("pyarrow", "pyarrow.parquet"))
    table: Any = arrow_table(arrow, _FIRST, list(split_rows(runs)))
    with atomic_file(path) as handle:
        parquet.write_table(table, handle)
