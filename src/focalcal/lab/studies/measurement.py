"""What a trained network says about the splits of its data set and the sets it is evaluated on besides, in numbers."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch
from torch import nn

from focalcal.lab.data import DataSet, Examples
from focalcal.lab.store import Evaluation, Evaluations, Protocol
from focalcal.lab.store.layout import now
from focalcal.lab.store.split_metrics import MetricRecord, shift_metrics, split_metrics
from focalcal.lab.studies.saliency import saliency_of_test_images
from focalcal.lab.studies.shifts import Shift, load_shifts
from focalcal.lab.studies.spec_builder import check_evaluations
from focalcal.lab.training import Recipe, predict
from focalcal.lab.training.outputs import Outputs, predictions_of
from focalcal.predictions import Predictions

SALIENCY = "saliency.npz"
OnSplit = Callable[[str], None]  # which was predicted


@dataclass(frozen=True, eq=False)
class Trained:
    """A trained network and the data it was trained on. `about` goes into the provenance of its predictions.

    That provenance says nothing of time or place: a run that is made again has equal predictions. `known` are the
    outputs for splits that need not be predicted again.
    """

    model: nn.Module
    recipe: Recipe
    data: DataSet
    device: torch.device
    about: Mapping[str, Any]
    known: Mapping[str, Outputs] = field(default_factory=dict)

    def measure_splits(self, on_split: OnSplit) -> tuple[dict[str, Predictions], dict[str, MetricRecord]]:
        """Predictions and metrics of train, val and test; an empty split has neither."""
        predictions: dict[str, Predictions] = {}
        for split, examples in self.data.splits.items():
            if len(examples):
                predictions[split] = self._predictions(split, examples)
                on_split(split)
        return predictions, {split: split_metrics(made, self.data.classes) for split, made in predictions.items()}

    def _predictions(self, split: str, examples: Examples) -> Predictions:
        if split in self.known:
            return predictions_of(self.known[split], examples, split=split, provenance=self.about)
        return predict(self.model, examples, self.recipe, split=split, device=self.device, provenance=self.about)


@dataclass(frozen=True)
class EvaluationTask:
    """An evaluation that is to be made: predictions of these sets, or maps of so many test images."""

    name: str
    shifts: Sequence[Shift] = ()
    saliency: int = 0

    @property
    def pieces(self) -> int:
        """How often `on_split` is called while it is made."""
        return len(self.shifts) + bool(self.saliency)


def evaluation_tasks(
    evaluations: Evaluations,
    names: Collection[str],
    recipe: Recipe,
    data: DataSet,
    protocol: Protocol,
    data_dir: Path | None,
) -> list[EvaluationTask]:
    """Those of the evaluations that are named; refuses those that could not be made later."""
    check_evaluations(recipe.model, evaluations)
    wanted = {name: alone for name, alone in evaluations.apart().items() if name in names}
    return [
        EvaluationTask(name, load_shifts(data, alone, protocol, data_dir), alone.saliency)
        for name, alone in wanted.items()
    ]


def make_evaluation(
    task: EvaluationTask, trained: Trained, clean: Predictions, provenance: Mapping[str, Any], on_split: OnSplit
) -> Evaluation:
    """The evaluation, to be stored; `clean` are the predictions of the test split, which shifted ones are told from."""
    started, began = now(), time.perf_counter()
    predictions: list[Predictions] = []
    metrics: dict[str, MetricRecord] = {}
    sources: dict[str, Any] = {}
    for shift in task.shifts:
        examples, source = shift.load()
        about = {**trained.about, "shift": source}
        made = predict(
            trained.model, examples, trained.recipe, split=shift.split, device=trained.device, provenance=about
        )
        on_classes = split_metrics(made, trained.data.classes) if shift.same_classes else {}
        detection = {} if made.multilabel else shift_metrics(made, clean)  # which has one confidence per label
        metrics[shift.split] = {**on_classes, **detection}
        sources[shift.split] = source
        predictions.append(made)
        on_split(shift.split)
    files = {}
    if task.saliency:
        files[SALIENCY] = saliency_of_test_images(
            trained.model, trained.recipe, trained.data, count=task.saliency, device=trained.device
        )
        on_split(task.name)
    record = {
        "metrics": metrics,
        "provenance": {**provenance, "sources": sources, "started": started, "finished": now()},
        "seconds": time.perf_counter() - began,
    }
    return Evaluation(task.name, record, predictions, files)
