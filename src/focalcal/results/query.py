"""SQL over runs, with DuckDB.

runs          key, data_set, model, objective, seed, seconds, epochs, a column for each option of an objective (gamma,
              lam, ...), and as JSON: options, training, protocol, provenance
test_metrics  the columns of runs, and one for each metric of the test split: one row per run
metrics       key, split, metric, value
epochs        key, epoch, and a column for each number of an epoch's record: lr, seconds, train_loss, val_nll, ...
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

from focalcal.core.extras import required
from focalcal.results.run import Run
from focalcal.results.tables import (
    EPOCH_COLUMNS,
    JSON_COLUMNS,
    METRIC_COLUMNS,
    RUN_COLUMNS,
    arrow_table,
    column_names,
    epoch_rows,
    metric_rows,
    option_columns,
    run_rows,
)

if TYPE_CHECKING:
    import duckdb

TABLES = "runs, test_metrics, metrics and epochs"
_CLOSED = {"temp_directory": "", "python_enable_replacements": "false", "autoinstall_known_extensions": "false"}


def answer(runs: Sequence[Run], query: str) -> duckdb.DuckDBPyRelation:
    """The rows of a query. Files are out of its reach, and nothing of what it does lasts."""
    engine, arrow = (required(package, purpose="A query over runs") for package in ("duckdb", "pyarrow"))
    connection = engine.connect(":memory:", config=_CLOSED)
    _fill(connection, arrow, "runs", RUN_COLUMNS, run_rows(runs))
    _fill(connection, arrow, "metrics", METRIC_COLUMNS, metric_rows(runs))
    _view_test_metrics(connection)
    named = re.search(r"epochs", query, re.IGNORECASE)  # thousands of files: read for who names them
    _fill(connection, arrow, "epochs", EPOCH_COLUMNS, epoch_rows(runs) if named else [])
    connection.execute("set enable_external_access = false")
    connection.execute("set lock_configuration = true")
    try:
        rows: duckdb.DuckDBPyRelation | None = connection.sql(query)
    except engine.Error as error:
        raise query_error(error) from error
    if rows is None:
        raise ValueError(f"query must give rows, got {query!r}; begin it with SELECT")
    return rows


def query_error(error: Exception) -> ValueError:
    """What DuckDB says about a query, on one line."""
    return ValueError(f"query must be SQL over {TABLES}, got an error: {' '.join(str(error).split())}")


def _fill(connection: Any, arrow: Any, name: str, columns: Sequence[str], rows: Iterable[dict[str, Any]]) -> None:
    table = arrow_table(arrow, columns, list(rows))
    chosen = ", ".join(
        f"{_quote(column)}::JSON as {_quote(column)}" if name == "runs" and column in JSON_COLUMNS else _quote(column)
        for column in table.column_names
    )
    connection.register("_given", table)
    connection.execute(f"create table {name} as select {chosen} from _given")
    connection.unregister("_given")


def _view_test_metrics(connection: Any) -> None:
    """A view and no table: queries that do not name it pay nothing for its columns, of which several labels have many.

    A run without metrics of the test split has a row of NULLs; a metric named like a column of runs is `metric_name`.
    """
    taken = [row[0] for row in connection.execute("select column_name from (describe runs)").fetchall()]
    known = connection.execute("select distinct metric from metrics where split = 'test' order by metric").fetchall()
    titled = option_columns({name: name for (name,) in known}, taken, prefix="metric")
    titles = list(column_names(taken, [titled]).values())[len(taken) :]
    columns = [
        f", max(value) filter (metric = {_text(metric)}) as {_quote(title)}"
        for metric, title in zip(titled.values(), titles, strict=True)
    ]
    measured = f"select key{''.join(columns)} from metrics where split = 'test' group by key"
    connection.execute(f"create view test_metrics as from runs left join ({measured}) using (key)")


def _text(value: str) -> str:
    return "'" + value.replace("'", "''") + "'"


def _quote(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'
