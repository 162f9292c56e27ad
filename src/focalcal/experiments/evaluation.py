"""What a trained network says about every split and shift of its run, and the numbers of it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import nn

from focalcal.data import DataSet
from focalcal.experiments.metrics import Record, shift_metrics, split_metrics
from focalcal.experiments.shifts import Shift
from focalcal.predictions import Predictions
from focalcal.training import Recipe, predict

OnSplit = Callable[[int, int, str], None]  # how many are done, of how many, and which was the last


@dataclass(frozen=True, eq=False)
class Evaluation:
    """By split, in the order train, val, test, shifts: predictions and metrics; of shifts where they come from."""

    predictions: dict[str, Predictions] = field(default_factory=dict)
    metrics: dict[str, Record] = field(default_factory=dict)
    sources: dict[str, Any] = field(default_factory=dict)


def evaluated(
    model: nn.Module,
    recipe: Recipe,
    data: DataSet,
    shifts: Sequence[Shift],
    *,
    device: torch.device,
    about: Mapping[str, Any],
    on_split: OnSplit,
) -> Evaluation:
    """Predict and measure; an empty split has neither. `about` goes into the predictions' provenance.

    That provenance says nothing of time or place: a run that is made again has equal predictions.
    """
    found = Evaluation()
    splits = {split: examples for split, examples in data.splits.items() if len(examples)}
    pieces = len(splits) + len(shifts)
    for split, examples in splits.items():
        made = predict(model, examples, recipe, split=split, device=device, provenance=about)
        found.predictions[split] = made
        found.metrics[split] = split_metrics(made, data.classes)
        on_split(len(found.predictions), pieces, split)
    for shift in shifts:
        examples, source = shift.load()
        made = predict(model, examples, recipe, split=shift.split, device=device, provenance={**about, "shift": source})
        found.predictions[shift.split], found.sources[shift.split] = made, source
        told_apart = shift_metrics(made, found.predictions["test"])
        on_classes = split_metrics(made, data.classes) if shift.same_classes else {}
        found.metrics[shift.split] = {**on_classes, **told_apart}
        on_split(len(found.predictions), pieces, shift.split)
    return found
