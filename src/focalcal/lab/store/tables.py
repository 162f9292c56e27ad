"""Runs as rows of plain values, as one file (a table, or an archive that is itself a store), and as SQL, with DuckDB.

runs          key, data_set, model, objective, seed, seconds, epochs, a column for each option of an objective (gamma,
              lam, ...), and as JSON: options, training, protocol, provenance
test_metrics  the columns of runs, and one for each metric of the test split: one row per run
metrics       key, split, metric, value
epochs        key, epoch, and a column for each number of an epoch's record: lr, seconds, train_loss, val_nll, ...
"""

from __future__ import annotations

import json
import math
import re
import warnings
import zipfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from focalcal.core.atomic import atomic_file, write_atomically
from focalcal.core.csv_text import csv_text
from focalcal.core.extras import required
from focalcal.lab.store.diagnostics import RunProblem
from focalcal.lab.store.layout import EVALUATIONS, LAYOUT, MARK, RECORD, RUNS, WHAT, json_bytes
from focalcal.lab.store.run import Run

if TYPE_CHECKING:
    import duckdb

_WHAT_WAS_RUN = ("key", "data_set", "model", "objective", "seed", "seconds", "epochs", "options")
_JSON_COLUMNS = ("options", "training", "protocol", "provenance")
_RUN_COLUMNS = (*_WHAT_WAS_RUN, *_JSON_COLUMNS[1:])
_METRIC_COLUMNS = ("key", "split", "metric", "value")
_EPOCH_COLUMNS = ("key", "epoch")

_WORDS = ("key", "data_set", "model", "objective", "scale", "spread", "variant", "split", "metric", *_JSON_COLUMNS)
_WHOLE = ("seed", "epoch", "epochs")

TABLES = "runs, test_metrics, metrics and epochs"
_CLOSED = {"temp_directory": "", "python_enable_replacements": "false", "autoinstall_known_extensions": "false"}


def _run_rows(runs: Iterable[Run]) -> Iterator[dict[str, Any]]:
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
            **option_columns(spec["objective_options"], _RUN_COLUMNS),
        }


def _metric_rows(runs: Iterable[Run]) -> Iterator[dict[str, Any]]:
    """One row per run, split and metric; None where a metric could not be computed."""
    for run in runs:
        for split in run.record["metrics"]:
            for name, value in run.metrics(split).items():
                yield {"key": run.key, "split": split, "metric": name, "value": None if math.isnan(value) else value}


def _epoch_rows(runs: Iterable[Run]) -> Iterator[dict[str, Any]]:
    """One row per run and epoch; what is nested has its names joined, as in `train_loss`."""
    for run in runs:
        try:
            records = run.epochs()
        except (RunProblem, OSError) as error:  # one run must not keep the others from being seen
            warnings.warn(f"without the epochs of run {run.key}: {error}", stacklevel=2)
            continue
        for record in records:
            yield {"key": run.key, **_flat(record)}


def _split_rows(runs: Iterable[Run], rows: Sequence[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    """One row per run and split, beside the run's own its metrics as columns; `metric_seed` if a name is taken."""
    taken = {"split", *(name for row in rows for name in row)}
    for run, row in zip(runs, rows, strict=True):
        for split in run.record["metrics"]:
            metrics = {name: None if math.isnan(value) else value for name, value in run.metrics(split).items()}
            yield {**row, "split": split, **option_columns(metrics, taken, prefix="metric")}


def _test_rows(runs: Iterable[Run], rows: Sequence[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    """One row per run, with its metrics of the test split if there are any."""
    tested = {row["key"]: row for row in _split_rows(runs, rows) if row.pop("split") == "test"}
    return (tested.get(row["key"], row) for row in rows)


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


def _arrow_table(arrow: Any, columns: Sequence[str], rows: list[dict[str, Any]]) -> Any:
    """The given columns first, others as they come; text where types are mixed or numbers too large."""
    names = column_names(columns, rows)
    return arrow.table({title: _column(arrow, name, [row.get(name) for row in rows]) for name, title in names.items()})


def answer(runs: Sequence[Run], query: str) -> duckdb.DuckDBPyRelation:
    """The rows of a query. Files are out of its reach, and nothing of what it does lasts."""
    engine, arrow = (required(package, purpose="A query over runs") for package in ("duckdb", "pyarrow"))
    connection = engine.connect(":memory:", config=_CLOSED)
    rows = list(_run_rows(runs))
    for name, columns, made in (
        ("runs", _RUN_COLUMNS, lambda: rows),
        ("test_metrics", _RUN_COLUMNS, lambda: _test_rows(runs, rows)),
        ("metrics", _METRIC_COLUMNS, lambda: _metric_rows(runs)),
        ("epochs", _EPOCH_COLUMNS, lambda: _epoch_rows(runs)),
    ):
        # Thousands of files and columns: read for who names them.
        table = list(made()) if re.search(rf"\b{name}", query, re.IGNORECASE) else []
        _fill(connection, arrow, name, columns, table)
    connection.execute("set enable_external_access = false")
    connection.execute("set lock_configuration = true")
    try:
        answered: duckdb.DuckDBPyRelation | None = connection.sql(query)
    except engine.Error as error:
        none_yet = "" if runs else "; the store holds no run yet, which would add columns"
        raise ValueError(f"{query_error(error)}{none_yet}") from error
    if answered is None:
        raise ValueError(f"query must give rows, got {query!r}; begin it with SELECT")
    return answered


def query_error(error: Exception) -> ValueError:
    """What DuckDB says about a query, on one line."""
    return ValueError(f"query must be SQL over {TABLES}, got an error: {' '.join(str(error).split())}")


def _fill(connection: Any, arrow: Any, name: str, columns: Sequence[str], rows: list[dict[str, Any]]) -> None:
    table = _arrow_table(arrow, columns, rows)
    chosen = ", ".join(
        f"{_quote(column)}::JSON as {_quote(column)}" if column in _JSON_COLUMNS else _quote(column)
        for column in table.column_names
    )
    connection.register("_given", table)
    connection.execute(f"create table {name} as select {chosen} from _given")
    connection.unregister("_given")


def _quote(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


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
            records = [run.path / RECORD, *(run.path / EVALUATIONS / name / RECORD for name in run.evaluations)]
            for file in dict.fromkeys([*map(run.file, run.files), *records]):
                archive.write(file, f"{RUNS}/{run.path.name}/{file.relative_to(run.path)}")


def _write_csv(runs: Sequence[Run], path: Path) -> None:
    rows = _rows_to_export(runs)
    names = column_names(_WHAT_WAS_RUN, rows)
    text = csv_text([names.values(), *([row.get(name) for name in names] for row in rows)])
    write_atomically(path, text.encode())


def _write_parquet(runs: Sequence[Run], path: Path) -> None:
    arrow, parquet = (required(module, purpose="A table of runs") for module in ("pyarrow", "pyarrow.parquet"))
    table: Any = _arrow_table(arrow, _WHAT_WAS_RUN, _rows_to_export(runs))
    with atomic_file(path) as handle:
        parquet.write_table(table, handle)


def _rows_to_export(runs: Sequence[Run]) -> list[dict[str, Any]]:
    left_out = _JSON_COLUMNS[1:]
    rows = [{name: value for name, value in row.items() if name not in left_out} for row in _run_rows(runs)]
    return list(_split_rows(runs, rows))


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
    if kinds <= {int, float} and (kinds or name not in _WORDS):
        kind = arrow.int64() if name in _WHOLE else arrow.float64()
    elif kinds == {list}:
        kind = arrow.list_(arrow.float64())
    elif kinds == {bool}:
        kind = arrow.bool_()
    try:
        return arrow.array(values, kind)
    except (arrow.ArrowException, OverflowError):  # mixed types, and numbers that do not fit
        return arrow.array([None if value is None else str(value) for value in values], arrow.string())
