"""The predictions of a trained network."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch
from torch import nn

from focalcal.data import Examples
from focalcal.predictions import Predictions
from focalcal.training.distributed import Processes
from focalcal.training.inputs import Inputs
from focalcal.training.outputs import outputs
from focalcal.training.recipe import Recipe


def predict(
    model: nn.Module,
    examples: Examples,
    recipe: Recipe,
    *,
    split: str,
    device: str | torch.device = "cpu",
    provenance: Mapping[str, Any] | None = None,
) -> Predictions:
    """What `model` says about `examples`, which go through what the recipe's test images go through.

    float32 logits; with `evaluation` "ten_crop" float64 probabilities, the mean over the crops of softmax, or of
    sigmoid where an example has several labels. Labels, ids, groups and posterior are the examples'. The model is moved
    to `device`, and evaluated in evaluation mode; its mode is as before afterwards.
    """
    place = torch.device(device)
    result = outputs(model.to(place), Inputs(examples, recipe, place, reported=True), Processes(place))
    averaged = result.logits.shape[1] > 1
    return Predictions(
        logits=None if averaged else result.logits[:, 0].contiguous(),
        probs=result.probs if averaged else None,
        labels=examples.labels,
        split=split,
        multilabel=result.multilabel,
        ids=examples.ids,
        groups=examples.groups,
        posterior=examples.posterior,
        provenance=provenance,
    )
