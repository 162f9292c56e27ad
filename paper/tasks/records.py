"""The records of the tasks, one Parquet file: texts as codes, numbers to five digits."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
from pyarrow import parquet

from focalcal.core.atomic import atomic_file

_DIGITS = 5
_TEXTS = ("task", "length", "objective", "rule", "calibrator", "instructions", "torch", "focalcal", "commit")
_NUMBERS = (
    *(
        "lr",
        "lam",
        "entropy",
        "error",
        "aurc",
        "temperature",
        "test_temperature",
        "nll",
        "scaled_nll",
        "calibrated_nll",
    ),
    *(prefix + name for prefix in ("", "scaled_") for name in ("brier", "debiased_ece", "smooth_ece", "distance")),
)
_SAMPLES = ("samples", "scaled_samples", "calibrated_samples")
SCHEMA = pa.schema(
    [(name, pa.dictionary(pa.int32(), pa.string())) for name in _TEXTS]
    + [("seed", pa.int32()), ("epoch", pa.int32()), ("rows", pa.int32()), ("failed", pa.bool_())]
    + [(name, pa.float32()) for name in _NUMBERS]
    + [(name, pa.list_(pa.int16())) for name in _SAMPLES]
)
"""Of a row: `failed` where a loss was not finite, and then nothing is measured; `samples` as in `measure`."""


def read_rows(path: Path, **equal: Any) -> list[dict[str, Any]]:
    """All rows, or those with these values; none without the file."""
    filters = [(name, "=", value) for name, value in equal.items()] or None
    table = parquet.read_table(path, filters=filters, schema=SCHEMA) if path.exists() else SCHEMA.empty_table()
    rows: list[dict[str, Any]] = table.to_pylist()
    return rows


def add_rows(path: Path, rows: Sequence[dict[str, Any]]) -> None:
    """Write the file again with these rows at its end; it is whole at every time."""
    table = pa.Table.from_pylist([_rounded({"failed": False, **row}) for row in rows], SCHEMA)
    if path.exists():
        table = pa.concat_tables([parquet.read_table(path, schema=SCHEMA), table]).unify_dictionaries()
    with atomic_file(path) as handle:
        parquet.write_table(table, handle, compression="zstd", compression_level=19, use_dictionary=True)


def _rounded(row: dict[str, Any]) -> dict[str, Any]:
    return {name: float(f"{value:.{_DIGITS}g}") if isinstance(value, float) else value for name, value in row.items()}
