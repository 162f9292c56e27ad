"""Runs as rows of plain values, as Arrow tables, and as one file: a table, or an archive that is itself a store."""

from __future__ import annotations

import json
import math
import warnings
import zipfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from focalcal.core.atomic import atomic_file, write_atomically
from focalcal.core.csv_text import csv_text
from focalcal.core.extras import required
from focalcal.results.diagnostics import RunProblem
from focalcal.results.layout import EVALUATIONS, FILES, LAYOUT, MARK, RUNS, WHAT, json_bytes
from focalcal.results.run import Run

_WHAT_WAS_RUN = ("key", "data_set", "model", "objective", "seed", "seconds", "epochs", "options")
JSON_COLUMNS = ("options", "training", "protocol", "provenance")
RUN_COLUMNS = (*_WHAT_WAS_RUN, *JSON_COLUMNS[1:])
METRIC_COLUMNS = ("key", "split", "metric", "value")
EPOCH_COLUMNS = ("key", "epoch")


def run_rows(runs: Iterable[Run]) -> Iterator[dict[str, Any]]:
    """What was run; an option of the objective is a column, `option_seed` if its name is taken."""
    for run in runs:
        spec, record = run.settings, run.record
        yield {
            "key": run.key,
            **{name: spec[name] for name in ("data_set", "model", "objective", "seed")},
            **{name: record[name] for name in ("seconds", "epochs")},
            "options": json.dumps(spec["objective_options"]),
            "training": json.dumps(spec["training"]),
            "protocol": json.dumps(spec["protocol"]),
            "provenance": json.dumps(record["provenance"]),
            **option_columns(spec["objective_options"], RUN_COLUMNS),
        }


def metric_rows(runs: Iterable[Run]) -> Iterator[dict[str, Any]]:
    """One row per run, split and metric; None where a metric could not be computed."""
    for run in runs:
        for split in run.record["metrics"]:
            for name, value in run.metrics(split).items():
                yield {"key": run.key, "split": split, "metric": name, "value": None if math.isnan(value) else value}


def epoch_rows(runs: Iterable[Run]) -> Iterator[dict[str, Any]]:
    """One row per run and epoch; what is nested has its names joined, as in `train_loss`."""
    for run in runs:
        try:
            records = run.epochs()
        except (RunProblem, OSError) as error:  # one run must not keep the others from being seen
            warnings.warn(f"without the epochs of run {run.key}: {error}", stacklevel=2)
            continue
        for record in records:
            yield {"key": run.key, **_flat(record)}


def split_rows(runs: Iterable[Run]) -> Iterator[dict[str, Any]]:
    """One row per run and split, its metrics as columns."""
    for run, row in zip(runs := list(runs), run_rows(runs), strict=True):
        row = {name: value for name, value in row.items() if name not in JSON_COLUMNS[1:]}
        for split in run.record["metrics"]:
            metrics = option_columns(run.metrics(split), (*row, "split"), prefix="metric")
            finite = {name: None if math.isnan(value) else value for name, value in metrics.items()}
            yield {**row, "split": split, **finite}


def option_columns(options: Mapping[str, Any], taken: Iterable[str], *, prefix: str = "option") -> dict[str, Any]:
    """Values by name; sequences as JSON, and names that a column has already with the prefix before them.

    >>> option_columns({"gamma": 3, "seed": 1, "steps": [1, 2]}, ["seed"])
    {'gamma': 3, 'option_seed': 1, 'steps': '[1, 2]'}
    """
    known = {name.lower() for name in taken}
    return {
        f"{prefix}_{name}" if name.lower() in known else name: json.dumps(value) if isinstance(value, list) else value
        for name, value in options.items()
    }


def column_names(columns: Sequence[str], rows: Iterable[Mapping[str, Any]]) -> dict[str, str]:
    """The names in the rows and what to call their columns: SQL does not tell `Gamma` from `gamma`.

    >>> column_names(["key"], [{"key": "a", "gamma": 1}, {"Gamma": 2}])
    {'key': 'key', 'gamma': 'gamma', 'Gamma': 'Gamma_2'}
    """
    titles: dict[str, str] = {}
    taken: set[str] = set()
    for name in (*columns, *(name for row in rows for name in row)):
        if name not in titles:
            title, number = name, 2
            while title.lower() in taken:
                title, number = f"{name}_{number}", number + 1
            taken.add(title.lower())
            titles[name] = title
    return titles


def arrow_table(arrow: Any, columns: Sequence[str], rows: list[dict[str, Any]]) -> Any:
    """The given columns first, others as they come; text where types are mixed or numbers too large."""
    names = column_names(columns, rows)
    return arrow.table({title: _column(arrow, name, [row.get(name) for row in rows]) for name, title in names.items()})


def export(runs: Sequence[Run], path: Path) -> Path:
    """Write the file whole or not at all; one of that name is replaced."""
    writers = {".zip": _write_zip, ".csv": _write_csv, ".parquet": _write_parquet}
    if path.suffix.lower() not in writers:
        raise ValueError(f"path must end in {', '.join(writers)}, got {path.name!r}; choose one of them")
    if not path.parent.is_dir():
        raise FileNotFoundError(f"path must lie in a folder that exists, got {path}; create {path.parent} first")
    writers[path.suffix.lower()](runs, path)
    return path


def _write_zip(runs: Sequence[Run], path: Path) -> None:
    """Every file is compared with its checksum: what is exported is what was stored."""
    with atomic_file(path) as handle, zipfile.ZipFile(handle, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr(MARK, json_bytes({"what": WHAT, "schema": LAYOUT}))
        for run in runs:
            lists = [run.path / FILES, *(run.path / EVALUATIONS / name / FILES for name in run.evaluations)]
            for file in dict.fromkeys([*map(run.file, run.files), *filter(Path.exists, lists)]):
                archive.write(file, f"{RUNS}/{run.path.name}/{file.relative_to(run.path)}")


def _write_csv(runs: Sequence[Run], path: Path) -> None:
    rows = list(split_rows(runs))
    names = column_names(_WHAT_WAS_RUN, rows)
    text = csv_text([names.values(), *([row.get(name) for name in names] for row in rows)])
    write_atomically(path, text.encode())


def _write_parquet(runs: Sequence[Run], path: Path) -> None:
    arrow, parquet = (required(module, purpose="A table of runs") for module in ("pyarrow", "pyarrow.parquet"))
    table: Any = arrow_table(arrow, _WHAT_WAS_RUN, list(split_rows(runs)))
    with atomic_file(path) as handle:
        parquet.write_table(table, handle)


def _flat(record: dict[str, Any], prefix: str = "") -> dict[str, Any]:
    flat: dict[str, Any] = {}
    for name, value in record.items():
        if isinstance(value, dict):
            flat.update(_flat(value, f"{prefix}{name}_"))
        elif isinstance(value, list) and not all(isinstance(item, int | float) for item in value):
            flat[prefix + name] = json.dumps(value)
        else:
            flat[prefix + name] = value
    return flat


def _column(arrow: Any, name: str, values: list[Any]) -> Any:
    kinds = {type(value) for value in values if value is not None}
    kind = arrow.string()
    if kinds and kinds <= {int, float}:
        kind = arrow.int64() if name in ("seed", "epoch", "epochs") else arrow.float64()
    elif kinds == {list}:
        kind = arrow.list_(arrow.float64())
    elif kinds == {bool}:
        kind = arrow.bool_()
    elif not kinds and name in ("value", "seconds", "seed", "epoch"):
        kind = arrow.float64()
    try:
        return arrow.array(values, kind)
    except (arrow.ArrowException, OverflowError):  # mixed types, and numbers that do not fit
        return arrow.array([None if value is None else str(value) for value in values], arrow.string())
