"""What a network says about a split: as predictions, and how good they are, the numbers of the epoch log."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from focalcal.lab.data import Examples
from focalcal.lab.training.distributed import Processes
from focalcal.lab.training.inputs import TrainingInputs
from focalcal.lab.training.precision import evaluation_precision
from focalcal.lab.training.recipe import Recipe
from focalcal.metrics import multilabel_summary, reliability, summary
from focalcal.predictions import Predictions

if TYPE_CHECKING:
    from focalcal.posthoc import EpochScores

_ELEMENTS = 1 << 20  # of an evaluation batch's inputs, unless the training batch holds more


@dataclass(frozen=True, eq=False)
class Outputs:
    """The logits of a split, float32 (N, crops, K) on the CPU, and its labels; with ten crops or one."""

    logits: Tensor
    labels: Tensor

    @property
    def multilabel(self) -> bool:
        """Whether each logit has a sigmoid of its own."""
        return self.labels.dim() == 2

    @property
    def probs(self) -> Tensor:
        """(N, K): softmax or sigmoid of the logits, averaged over the crops; in float64, where 1 is rarely reached."""
        logits = self.logits.double()
        return (logits.sigmoid() if self.multilabel else logits.softmax(2)).mean(1)

    def loss(self, loss: nn.Module, device: torch.device) -> float:
        """The objective over all rows at once, every crop a row."""
        labels = self.labels.repeat_interleave(self.logits.shape[1], 0)
        with torch.no_grad():
            return float(loss(self.logits.flatten(0, 1).to(device), labels.to(device)))

    def metrics(self) -> dict[str, float]:
        """Those of `summary`, or the means over the labels of `multilabel_summary`'s."""
        if self.multilabel:
            return multilabel_summary(self.probs, self.labels).mean
        single = self.logits.shape[1] == 1
        measured = summary(logits=self.logits[:, 0], labels=self.labels) if single else summary(self.probs, self.labels)
        return {name: value for name, value in measured.as_dict().items() if name not in ("rows", "n_classes")}

    def scores(self) -> EpochScores | None:
        """What they say of the network as it is and after its best temperature; None for several labels."""
        from focalcal.posthoc import epoch_scores  # costs what scikit-learn costs

        return None if self.multilabel else epoch_scores(self.logits[:, 0], self.labels)

    def bins(self) -> dict[str, list[float]] | None:
        """Sums over the 15 bins of the reliability diagram, which add up over seeds; None for several labels."""
        if self.multilabel:
            return None
        bins = reliability(self.probs, self.labels)
        means = {"confidence": bins.confidence, "correct": bins.accuracy}
        return {"count": bins.count.astype(int).tolist()} | {
            name: [float(f"{value:.6g}") for value in (bins.count * np.where(bins.count > 0, mean, 0.0)).tolist()]
            for name, mean in means.items()
        }


@torch.no_grad()
def outputs(network: nn.Module, inputs: TrainingInputs, processes: Processes) -> Outputs:
    """The network's logits of every example, in evaluation mode, as float32; its mode is as before afterwards."""
    training = network.training
    processes.same_buffers(network)
    network.eval()
    try:
        own = processes.share(len(inputs))
        rows = _batch_rows(inputs)
        with evaluation_precision(inputs.recipe, processes.device):
            parts = [
                network(inputs.evaluation_batch(slice(start, min(start + rows, own.stop)))).float()
                for start in range(own.start, own.stop, rows)
            ]
    finally:
        network.train(training)
    none = torch.empty(0, inputs.recipe.classes, device=processes.device)  # with fewer examples than processes
    logits = torch.cat([none, *parts]).view(own.stop - own.start, inputs.crops, inputs.recipe.classes)
    return Outputs(processes.whole(logits, len(inputs)).cpu(), inputs.labels)


def predict(
    model: nn.Module,
    examples: Examples,
    recipe: Recipe,
    *,
    split: str,
    device: str | torch.device = "cpu",
    provenance: Mapping[str, Any] | None = None,
) -> Predictions:
    """What a network says about examples, which go through what the recipe's test images go through.

    Args:
        model: is moved to `device`, and evaluated in evaluation mode; its mode is as before afterwards.
        examples: the rows. Labels, ids, groups and posterior are theirs.
        recipe: how it was trained.
        split: name of the split.
        device: where the network computes.
        provenance: what else the predictions are to remember.

    Returns:
        float32 logits; with `evaluation` "ten_crop" float64 probabilities, the mean over the crops of softmax, or
        of sigmoid where an example has several labels.

    >>> from focalcal.lab.data import load_data
    >>> from focalcal.lab.training import build_network, recipe
    >>> digits, small = load_data("digits"), recipe("digits_mlp_lite")
    >>> predict(build_network(small, digits, seed=0), digits.test, small, split="test").logits.shape
    (360, 10)
    """
    place = torch.device(device)
    result = outputs(model.to(place), TrainingInputs(examples, recipe, place, reported=True), Processes(place))
    return predictions_of(result, examples, split=split, provenance=provenance)


def predictions_of(
    result: Outputs, examples: Examples, *, split: str, provenance: Mapping[str, Any] | None = None
) -> Predictions:
    """A network's outputs for `examples` with what else is known of these."""
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


def _batch_rows(inputs: TrainingInputs) -> int:
    side = inputs.recipe.image_size
    elements = side * side * len(inputs.recipe.mean or (0,)) if side else math.prod(inputs.values.shape[1:])
    return max(1, max(inputs.recipe.batch_size, _ELEMENTS // max(1, elements)) // inputs.crops)


class RunningMetrics:
    """Loss, NLL and error over the batches of an epoch, each as the network was then."""

    def __init__(self) -> None:
        self._batches: list[tuple[Tensor, Tensor, Tensor]] = []

    def add(self, loss: Tensor, logits: Tensor, labels: Tensor) -> None:
        """One batch. Nothing is computed yet, so that a step stays short."""
        self._batches.append((loss, logits, labels))

    def values(self) -> dict[str, float]:
        """The means over the examples; where an example has several labels, over all of them."""
        losses, logits, labels = zip(*self._batches, strict=True)
        sizes = torch.tensor([len(batch) for batch in labels], dtype=torch.float64)
        rows, truth = torch.cat(logits), torch.cat(labels)
        if truth.dim() == 2:
            nll = F.binary_cross_entropy_with_logits(rows.double(), truth.double(), reduction="sum")
            wrong = ((rows > 0) != truth).sum()
        else:
            nll = F.cross_entropy(rows.double(), truth, reduction="sum")
            wrong = (rows.argmax(1) != truth).sum()
        loss = (torch.stack(losses).double().cpu() * sizes).sum() / sizes.sum()
        return {"loss": float(loss), "nll": float(nll) / truth.numel(), "error": float(wrong) / truth.numel()}


def finite_or_none(values: Any) -> Any:
    """Numbers that JSON has: None in place of NaN and infinity, at every depth."""
    if isinstance(values, dict):
        return {name: finite_or_none(value) for name, value in values.items()}
    if isinstance(values, list):
        return [finite_or_none(value) for value in values]
    return None if isinstance(values, float) and not math.isfinite(values) else values
