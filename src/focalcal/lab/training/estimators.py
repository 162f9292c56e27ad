"""Estimators as runs: fitted at once, in one epoch; what they predict is stored and judged as a network's."""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch
from torch import nn

from focalcal.lab.data import DataSet
from focalcal.lab.models import EstimatorNetwork
from focalcal.lab.training.distributed import Processes
from focalcal.lab.training.epoch_log import EpochLog
from focalcal.lab.training.inputs import TrainingInputs
from focalcal.lab.training.kept_epochs import KeptEpochs
from focalcal.lab.training.network import build_network
from focalcal.lab.training.outputs import Outputs, finite_or_none, outputs
from focalcal.lab.training.recipe import Recipe

if TYPE_CHECKING:
    from focalcal.lab.training.fit import Fitted


def fit_estimator(recipe: Recipe, data: DataSet, loss: nn.Module, *, seed: int, folder: Path | None) -> Fitted:
    """What `fit` returns, of a recipe whose model is an estimator: its optimiser and epochs have no effect."""
    from focalcal.lab.training.fit import Fitted

    began, device = time.perf_counter(), torch.device("cpu")
    estimator = build_network(recipe, data, seed=seed)
    assert isinstance(estimator, EstimatorNetwork)
    inputs = {split: TrainingInputs(rows, recipe, device) for split, rows in data.splits.items() if len(rows)}
    estimator.fit(inputs["train"].evaluation_batch(slice(None)), data.train.labels)
    made: dict[str, Outputs] = {split: outputs(estimator, rows, Processes(device)) for split, rows in inputs.items()}
    record: dict[str, Any] = {"epoch": 1, "lr": 0.0, "seconds": time.perf_counter() - began}
    record |= {split: {"loss": result.loss(loss, device), **result.metrics()} for split, result in made.items()}
    record["train"] = {name: record["train"][name] for name in ("loss", "nll", "error")}
    record["bins"] = made["test"].bins()
    record = finite_or_none(record)
    log = EpochLog(None if folder is None else folder / "epochs.jsonl", None, [])
    log.add(record)
    log.close()
    kept = KeptEpochs("last")
    if "val" in made and (scores := made["val"].scores()) is not None:
        kept.see(1, scores, made, estimator)
    return Fitted(estimator.eval(), loss, [record], record["seconds"], made, kept.by_rule)
