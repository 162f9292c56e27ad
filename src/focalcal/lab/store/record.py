"""Runs that were trained elsewhere, in a loop of somebody's own, stored from their predictions."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any

from focalcal.lab.store.layout import now
from focalcal.lab.store.run_folder import check_epoch, stored_number
from focalcal.lab.store.spec import Spec
from focalcal.lab.store.split_metrics import split_metrics
from focalcal.predictions import Predictions

if TYPE_CHECKING:
    from focalcal.lab.store.run import Run
    from focalcal.lab.store.store import Store


def record_run(
    store: Store,
    spec: Spec,
    predictions: Predictions | Mapping[str, Predictions],
    *,
    epochs: Iterable[Mapping[str, Any]],
    weights: str | PathLike[str] | None,
    seconds: float,
    classes: Sequence[str] | None,
    provenance: Mapping[str, Any],
) -> Run:
    """Measure the predictions as those of a trained run are, and store the run; see `Store.record`."""
    parts = _by_split(predictions)
    lines = [_epoch_line(number, epoch) for number, epoch in enumerate(epochs, 1)]
    record = {
        "metrics": {split: split_metrics(part, _class_names(part, classes)) for split, part in parts.items()},
        "provenance": {"recorded": {"time": now(), **provenance}},
        "seconds": seconds,
        "epochs": len(lines),
    }
    with store.scratch() as folder:
        log = folder / "epochs.jsonl"
        log.write_text("".join(lines))
        run = store.add(
            spec,
            record=record,
            epochs=log if lines else None,
            predictions=parts.values(),
            files={} if weights is None else {Path(weights).name: Path(weights)},
        )
    for split, part in parts.items():
        if split not in run.splits or not run.predictions(split).equals(part):
            raise ValueError(
                f"predictions must be those that run {run.key[:12]} ({spec.name}) was stored with, got others of "
                f"{split!r}; give another name, seed or options, or remove it first: store.remove([{run.key[:12]!r}])"
            )
    return run


def _by_split(predictions: Predictions | Mapping[str, Predictions]) -> dict[str, Predictions]:
    parts = {predictions.split: predictions} if isinstance(predictions, Predictions) else predictions
    if not isinstance(parts, Mapping) or not parts:
        raise TypeError(f"predictions must be Predictions, or a mapping from splits to them, got {predictions!r:.80}")
    for split, part in parts.items():
        if not isinstance(part, Predictions):
            raise TypeError(f"predictions[{split!r}] must be Predictions, got {type(part).__name__}")
        if part.split != split:
            raise ValueError(f"predictions[{split!r}] must be of the split {split!r}, got {part.split!r}; rename one")
    return dict(parts)


def _class_names(part: Predictions, classes: Sequence[str] | None) -> Sequence[str]:
    names = [str(k) for k in range(part.n_classes)] if classes is None else list(classes)
    if len(names) != part.n_classes:
        raise ValueError(
            f"classes must name the {part.n_classes} classes of the predictions of {part.split!r}, got {len(names)}"
        )
    return names


def _epoch_line(number: int, epoch: Mapping[str, Any]) -> str:
    if not isinstance(epoch, Mapping):
        raise TypeError(f"epochs must be mappings, one per epoch, got {epoch!r:.60}; use {{'train': {{'loss': 0.5}}}}")
    record = {"epoch": number, **_as_json(epoch)}
    check_epoch(record, f"epochs[{number - 1}]")
    return json.dumps(record, allow_nan=False) + "\n"


def _as_json(value: Any) -> Any:
    """Numbers of NumPy and torch as Python's; what is not finite as the store writes it."""
    if isinstance(value, Mapping):
        return {str(name): _as_json(inner) for name, inner in value.items()}
    if isinstance(value, list | tuple):
        return [_as_json(inner) for inner in value]
    if value is None or isinstance(value, bool | int | str):
        return value
    if not hasattr(value, "__float__"):
        raise TypeError(f"epochs must hold numbers and text, got {value!r:.60} of type {type(value).__name__}")
    return stored_number(float(value))
