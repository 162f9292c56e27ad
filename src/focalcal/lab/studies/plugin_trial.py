"""Plug-ins called once, as training would call them, so that their faults show before hours of it."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from focalcal.lab.data import DataSet
from focalcal.lab.models import EstimatorNetwork
from focalcal.lab.store.spec import Spec
from focalcal.lab.studies.own_data import FINGERPRINT, blame
from focalcal.lab.studies.spec_builder import SOURCES, is_multilabel, loss_of, recipe_of
from focalcal.lab.studies.subsets import load_run_data, with_statistics
from focalcal.lab.training import Recipe, build_network
from focalcal.lab.training.inputs import TrainingInputs

_EXAMPLES = 8


def try_plugins(specs: Iterable[Spec], data_dir: Path | None = None) -> None:
    """Load each data set, give each network a batch, and each loss the logits, for every plug-in of these cells.

    A network of somebody's own is given examples of its data set, which is loaded for that. What fails is a ValueError
    that names the plug-in and the line.
    """
    loaded: dict[str, DataSet] = {}
    tried: set[str] = set()
    for spec in specs:
        sources = spec.training.get(SOURCES, {})
        what = repr([spec.data_set, spec.model, spec.objective, spec.objective_options])
        if not sources or what in tried:
            continue
        tried.add(what)
        recipe = recipe_of(spec)
        if "data_set" in sources or "model" in sources:
            which = repr([spec.data_set, recipe.data_options, spec.protocol])
            if which not in loaded:
                with blame("data set", spec.data_set):
                    loaded[which] = load_run_data(recipe, spec.protocol, data_dir, spec.training.get(FINGERPRINT))
            logits, labels = _outputs(spec, recipe, loaded[which], data_dir)
        else:
            logits, labels = _made_up(spec, recipe.classes)
        if "objective" in sources:
            _try_loss(spec, logits, labels)


def _outputs(spec: Spec, recipe: Recipe, data: DataSet, data_dir: Path | None) -> tuple[Tensor, Tensor]:
    """What the network says about the first training examples, and their labels."""
    few = data.train.take(np.arange(min(_EXAMPLES, len(data.train))))
    recipe = with_statistics(recipe, data)
    with blame("model", spec.model):
        batch = TrainingInputs(few, recipe, torch.device("cpu")).training_batch(torch.arange(len(few)), None)
        network = build_network(recipe, data, seed=spec.seed, data_dir=data_dir)
        if isinstance(network, EstimatorNetwork):
            return _made_up(spec, recipe.classes)
        logits = network(batch)
        if not isinstance(logits, Tensor) or logits.shape != (len(few), recipe.classes):
            shape = tuple(logits.shape) if isinstance(logits, Tensor) else type(logits).__name__
            raise ValueError(f"logits must have the shape {(len(few), recipe.classes)}, got {shape}")
    return logits.detach(), torch.from_numpy(few.labels)


def _made_up(spec: Spec, classes: int) -> tuple[Tensor, Tensor]:
    generator = torch.Generator().manual_seed(0)
    logits = torch.randn(_EXAMPLES, classes, generator=generator)
    if is_multilabel(spec.model):
        return logits, torch.rand(_EXAMPLES, classes, generator=generator) < 0.5
    return logits, torch.randint(classes, (_EXAMPLES,), generator=generator)


def _try_loss(spec: Spec, logits: Tensor, labels: Tensor) -> None:
    with blame("objective", spec.objective):
        outputs = logits.float().requires_grad_()
        loss = loss_of(spec)(outputs, labels)
        if not isinstance(loss, Tensor) or loss.dim() or not loss.requires_grad:
            raise ValueError("the loss must be one number per batch with a gradient; take the mean of the examples'")
        torch.autograd.backward(loss)
        if not loss.isfinite() or outputs.grad is None or not outputs.grad.isfinite().all():
            raise ValueError(f"the loss and its gradient must be finite, got {loss.item()} for {len(labels)} examples")
