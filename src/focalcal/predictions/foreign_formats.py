"""Files that people have and that hold no table to read: one line that makes a table of each."""

from __future__ import annotations

import shlex
from contextlib import suppress
from pathlib import Path

from focalcal.predictions.header import PredictionsFileError

_PANDAS = "python -c \"import pandas; pandas.read_{reader}({name!r}).to_parquet('rows.parquet')\""
_EXCEL = ("an Excel file", _PANDAS.replace("{reader}", "excel"))
_SQLITE = ("an SQLite database", "sqlite3 -header -csv {path} 'select * from {table}' > rows.csv")
_DUCKDB = ("a DuckDB database", "duckdb {path} \"copy {table} to 'rows.parquet'\"")
_DUMP = ("a dump of a database", "psql DATABASE -c \"\\copy {table} to 'rows.csv' csv header\" (after restoring it)")
_EXPORTS = {
    **dict.fromkeys((".xlsx", ".xls", ".xlsm", ".xlsb", ".ods"), _EXCEL),
    **dict.fromkeys((".sqlite", ".sqlite3", ".db", ".db3"), _SQLITE),
    ".duckdb": _DUCKDB,
    **dict.fromkeys((".sql", ".dump", ".pgdump"), _DUMP),
    **dict.fromkeys((".feather", ".arrow"), ("an Arrow file", _PANDAS.replace("{reader}", "feather"))),
    ".orc": ("an ORC file", _PANDAS.replace("{reader}", "orc")),
    ".sas7bdat": ("a SAS file", _PANDAS.replace("{reader}", "sas")),
    ".dta": ("a Stata file", _PANDAS.replace("{reader}", "stata")),
    ".zsav": ("an SPSS file", _PANDAS.replace("{reader}", "spss")),
    **dict.fromkeys((".h5", ".hdf5"), ("an HDF5 file", _PANDAS.replace("{reader}", "hdf"))),
    ".json": ("JSON that is not in lines", "jq -c '.[]' {path} > rows.jsonl"),
    ".rds": ("an R file", 'Rscript -e \'arrow::write_parquet(readRDS("{path}"), "rows.parquet")\''),
}
_CONTENTS = {  # how many bytes stand before
    (0, b"PAR1"): ".parquet",
    (0, b"SQLite format 3\0"): ".sqlite",
    (8, b"DUCK"): ".duckdb",
    (0, b"PGDMP"): ".dump",
    (0, b"ARROW1"): ".arrow",
    (0, b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1"): ".xls",
    (0, b"PK\x03\x04"): ".xlsx",  # which is a .npz too, where the name says so
    (0, b"\x89HDF"): ".h5",
    (0, b"ORC"): ".orc",
}


def suffix_of_content(start: bytes) -> str | None:
    """The suffix that a file with such first bytes should have, if they say it."""
    kinds = (suffix for (at, mark), suffix in _CONTENTS.items() if start[at:].startswith(mark))
    return next(kinds, None)


def refuse_foreign(path: Path, suffix: str) -> None:
    """Refuse a file of another program, as its name or its first bytes say, with the line that exports a table."""
    with path.open("rb") as handle:
        found = suffix_of_content(handle.read(16)) or suffix
    if found == ".parquet" != suffix:
        raise PredictionsFileError(f"a Parquet file must be called .parquet, got {suffix!r}; rename it")
    if found not in _EXPORTS or suffix in (".npz", ".npy"):
        return
    what, line = _EXPORTS[found]
    tables = _sqlite_tables(path) if found == ".sqlite" else []
    line = line.replace("{path}", shlex.quote(str(path))).replace("{name!r}", repr(str(path)))
    several = f" (its tables: {', '.join(tables[:12])})" if len(tables) > 1 else ""
    raise PredictionsFileError(
        f"predictions must be in a table such as .parquet or .csv, got {what}{several}; export one and name that: "
        f"{line.replace('{table}', tables[0] if len(tables) == 1 else 'TABLE')}"
    )


def _sqlite_tables(path: Path) -> list[str]:
    import sqlite3

    names: list[str] = []
    with suppress(sqlite3.Error):
        connection = sqlite3.connect(f"{path.resolve().as_uri()}?mode=ro", uri=True)
        try:
            names = [row[0] for row in connection.execute("select name from sqlite_master where type = 'table'")]
        finally:
            connection.close()
    return names
