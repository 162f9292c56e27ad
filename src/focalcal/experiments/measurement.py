"""What a trained network says about the splits of its data set and the sets it is evaluated on besides, in numbers."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from focalcal.data import DataSet
from focalcal.experiments.provenance import now
from focalcal.experiments.saliency import saliency_of_test_images
from focalcal.experiments.shifts import Shift, load_shifts
from focalcal.experiments.spec_builder import check_evaluations
from focalcal.metrics import auroc, multilabel_summary, summary
from focalcal.predictions import Predictions
from focalcal.results import Evaluation, Evaluations, Protocol
from focalcal.theory import ece_chain
from focalcal.training import Recipe, predict

SALIENCY = "saliency.npz"
Record = dict[str, float]  # every number that is kept of the predictions on one split
OnSplit = Callable[[str], None]  # which was predicted


@dataclass(frozen=True, eq=False)
class Trained:
    """A trained network and the data it was trained on. `about` goes into the provenance of its predictions.

    That provenance says nothing of time or place: a run that is made again has equal predictions.
    """

    model: nn.Module
    recipe: Recipe
    data: DataSet
    device: torch.device
    about: Mapping[str, Any]

    def measure_splits(self, on_split: OnSplit) -> tuple[dict[str, Predictions], dict[str, Record]]:
        """Predictions and metrics of train, val and test; an empty split has neither."""
        predictions: dict[str, Predictions] = {}
        for split, examples in self.data.splits.items():
            if len(examples):
                predictions[split] = predict(
                    self.model, examples, self.recipe, split=split, device=self.device, provenance=self.about
                )
                on_split(split)
        return predictions, {split: split_metrics(made, self.data.classes) for split, made in predictions.items()}


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
    metrics: dict[str, Record] = {}
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


def split_metrics(predictions: Predictions, classes: Sequence[str]) -> Record:
    """The numbers of `summary`; against the true posterior where it is known; of each label where there are several.

    With several labels a metric's name alone is the mean over the labels, and `ece/Hernia` that of one label.
    """
    if predictions.multilabel:
        return _multilabel(predictions, classes)
    scores: dict[str, Any] = {predictions.kind: predictions.scores}
    plain = summary(labels=predictions.labels, **scores).as_dict()
    return {**plain, **(_against_posterior(predictions) if predictions.posterior is not None else {})}


def shift_metrics(shifted: Predictions, clean: Predictions) -> Record:
    """How well the confidence tells the shifted set from the clean test set, and the mean confidence there.

    auroc: the chance that a clean image has the higher max_k p_k of a clean and a shifted one, ties counting a half.
    """
    inside, outside = _confidence(clean), _confidence(shifted)
    positives = torch.cat([torch.ones_like(inside), torch.zeros_like(outside)])
    return {
        "rows": len(shifted),
        "auroc": auroc(torch.cat([inside, outside]), positives),
        "confidence": float(outside.double().mean()),
    }


def _confidence(predictions: Predictions) -> Tensor:
    return _probs(predictions).amax(1)


def _probs(predictions: Predictions) -> Tensor:
    """Float64, each row with the sum 1: in float32 the confidences of sure predictions round to 1 and tie."""
    if predictions.kind == "logits":
        return predictions.scores.double().softmax(1)
    probs = predictions.scores.double()
    return probs / probs.sum(1, keepdim=True)


def _against_posterior(predictions: Predictions) -> Record:
    """What needs the true posterior eta, with S the confidence and yhat the predicted class.

    posterior_distance   mean total variation, |p - eta|_1 / 2
    confidence_distance  mean |S - eta_yhat|
    posterior_ece        ECE with eta_yhat in the place of the outcomes, so without the noise of labels
    """
    assert predictions.posterior is not None
    probs, eta = _probs(predictions), predictions.posterior.double()
    chain = ece_chain(probs, eta)
    return {
        "posterior_distance": float((probs - eta).abs().sum(1).mean() / 2),
        "confidence_distance": chain.confidence_distance,
        "posterior_ece": chain.ece,
    }


def _multilabel(predictions: Predictions, classes: Sequence[str]) -> Record:
    probs = predictions.probs
    of_labels = multilabel_summary(probs, predictions.labels)
    record: dict[str, Any] = {"rows": len(predictions), "n_labels": predictions.n_classes, **of_labels.mean}
    for name in of_labels.mean:
        record |= {
            f"{name}/{label}": float(value) for label, value in zip(classes, getattr(of_labels, name), strict=True)
        }
    record |= {f"positives/{label}": int(value) for label, value in zip(classes, of_labels.positives, strict=True)}
    ranked = [k for k, count in enumerate(of_labels.positives) if 0 < count < len(predictions)]
    each = {classes[k]: auroc(probs[:, k], predictions.labels[:, k]) for k in ranked}
    if each:  # the mean over the labels that occur and are absent; a small or partial set can lack some
        record["auroc"] = float(np.mean(list(each.values())))
        record["auroc_labels"] = len(each)
    return record | {f"auroc/{label}": value for label, value in each.items()}
