"""Runs as rows of plain values."""

from __future__ import annotations

import json
import math
import warnings
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from focalcal.results.diagnostics import RunProblem
from focalcal.results.run import Run

RUN_COLUMNS = (
    *("key", "data_set", "model", "objective", "seed", "seconds", "epochs"),
    *("options", "training", "protocol", "provenance"),
)
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
    """A row a run, split and metric; None where a metric could not be computed."""
    for run in runs:
        for split in run.record["metrics"]:
            for name, value in run.metrics(split).items():
                yield {"key": run.key, "split": split, "metric": name, "value": None if math.isnan(value) else value}


def epoch_rows(runs: Iterable[Run]) -> Iterator[dict[str, Any]]:
    """A row a run and epoch; what is nested has its names joined, as in `train_loss`."""
    for run in runs:
        try:
            records = run.epochs()
        except (RunProblem, OSError) as error:  # one run must not keep the others from being seen
            warnings.warn(f"without the epochs of run {run.key}: {error}", stacklevel=2)
            continue
        for record in records:
            yield {"key": run.key, **_flat(record)}


def split_rows(runs: Iterable[Run]) -> Iterator[dict[str, Any]]:
    """A row a run and split, its metrics as columns."""
    for run, row in zip(runs := list(runs), run_rows(runs), strict=True):
        row = {name: value for name, value in row.items() if name not in ("training", "protocol", "provenance")}
        for split in run.record["metrics"]:
            found = option_columns(run.metrics(split), (*row, "split"), prefix="metric")
            yield {**row, "split": split, **{name: None if math.isnan(one) else one for name, one in found.items()}}


def option_columns(options: Mapping[str, Any], taken: Iterable[str], *, prefix: str = "option") -> dict[str, Any]:
    """Values by name; sequences as JSON, and names that a column has already with the prefix before them.

    >>> option_columns({"gamma": 3, "seed": 1, "steps": [1, 2]}, ["seed"])
    {'gamma': 3, 'option_seed': 1, 'steps': '[1, 2]'}
    """
    known = {one.lower() for one in taken}
    return {
        f"{prefix}_{name}" if name.lower() in known else name: json.dumps(value) if isinstance(value, list) else value
        for name, value in options.items()
    }


def _flat(record: Mapping[str, Any], prefix: str = "") -> dict[str, Any]:
    found: dict[str, Any] = {}
    for name, value in record.items():
        if isinstance(value, Mapping):
            found.update(_flat(value, f"{prefix}{name}_"))
        elif isinstance(value, list) and not all(isinstance(one, int | float) for one in value):
            found[prefix + name] = json.dumps(value)
        else:
            found[prefix + name] = value
    return found
