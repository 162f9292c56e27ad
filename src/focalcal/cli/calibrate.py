"""`focalcal calibrate`: a stored calibrator, applied to files of any size."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import typer

from focalcal.cli.options import FILE_FLAGS, ScoreOptions, takes
from focalcal.cli.output import plain_failures


@dataclass(frozen=True, kw_only=True)
class CalibratedColumns(ScoreOptions):
    """By default those of the table that was audited."""

    labels: Annotated[str | None, typer.Option(help="The column of labels; only .npz and .npy files need it.")] = None


@plain_failures(flags=FILE_FLAGS)
@takes(table=CalibratedColumns)
def calibrate(
    calibrator: Annotated[Path, typer.Argument(help="A calibrator.json that `focalcal audit --out` wrote.")],
    file: Annotated[
        str,
        typer.Argument(
            help="A table (.parquet, .csv, .tsv, .jsonl), a folder of them, an address, or - for standard input."
        ),
    ],
    out: Annotated[Path, typer.Argument(help="The file to write, or the new folder, or - for CSV to stdout.")],
    table: CalibratedColumns,
) -> None:
    """Apply a stored calibrator to predictions: calibrated scores in their place, all other columns as they are.

    Rows need no labels. Files of any size are read and written part by part.

    Scores are in the columns that the audited table had them in, unless others are named.

    Example: focalcal calibrate audit/calibrator.json new.parquet calibrated.parquet
    """
    from focalcal.posthoc import load_calibrator
    from focalcal.posthoc.calibrated_tables import SUFFIXES, calibrate_tables
    from focalcal.predictions.versioned_tables import plain_source

    options = table.reading()
    labels = {name: options.pop(name) for name in ("labels",) if name in options}
    fitted = load_calibrator(calibrator)
    source = sys.stdin.buffer if file == "-" else plain_source(file)
    folder = isinstance(source, Path) and source.is_dir() and not any(source.glob("*.npy"))
    arrays = out.suffix.lower() not in (*SUFFIXES, "") or (
        isinstance(source, Path) and source.suffix in (".npz", ".npy")
    )
    if isinstance(source, Path) and not folder and (arrays or source.is_dir()):
        _calibrate_arrays(fitted, source, out, options | labels)
    else:
        calibrate_tables(fitted, source, sys.stdout.buffer if str(out) == "-" else out, **options)
    if str(out) != "-":
        typer.echo(out)


def _calibrate_arrays(fitted: Any, file: Path, out: Path, columns: dict[str, Any]) -> None:
    """Files of arrays, which hold predictions with labels and nothing else."""
    from focalcal.core.checks import rounding_collected, warn_of_rounding
    from focalcal.predictions import Predictions

    with rounding_collected() as misses:
        loaded = Predictions.load(file, **columns)
    for name, miss in misses.items():
        warn_of_rounding(name, miss, used="divided by their sums" if columns.get("normalize") else "used as they are")
    result = Predictions(
        probs=fitted.predict_proba(loaded),
        labels=loaded.labels,
        split=loaded.split,
        multilabel=loaded.multilabel,
        ids=loaded.ids,
        groups=loaded.groups,
        provenance={"calibrator": type(fitted).__name__, **loaded.provenance},
    )
    result.save(out)
