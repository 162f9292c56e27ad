"""Which epoch a run keeps, by each of four rules: one training answers what any of them would have kept."""

from __future__ import annotations

import copy
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from torch import Tensor, nn

from focalcal.lab.training.outputs import Outputs, finite_or_none

if TYPE_CHECKING:
    from focalcal.posthoc import EpochScores

_LOWEST = {"nll": "nll", "error": "error", "refined": "refined_nll"}  # the score that is to be lowest, by rule


@dataclass(frozen=True, eq=False)
class KeptEpoch:
    """An epoch, from 1, what validation rows say of the network after it, and its outputs for val and test."""

    epoch: int
    scores: EpochScores
    outputs: dict[str, Outputs]

    def record(self) -> dict[str, Any]:
        """The number and the scores, for JSON."""
        told: dict[str, Any] = finite_or_none({"epoch": self.epoch, **asdict(self.scores)})
        return told


class KeptEpochs:
    """By rule the epoch that it keeps, of those evaluated so far; and the weights of the one that `keep` names.

    last     the last one
    nll      lowest validation NLL
    error    lowest validation error
    refined  lowest validation NLL after its best temperature, see `focalcal.EarlyStopping`

    Of equal epochs the first is kept. Without validation rows of one label there are none, and `keep` is "last".
    """

    def __init__(self, keep: str) -> None:
        self._keep = keep
        self.by_rule: dict[str, KeptEpoch] = {}
        self.weights: dict[str, Tensor] | None = None  # None of the last epoch: they are the network's

    @property
    def chosen(self) -> KeptEpoch | None:
        """The epoch that the run keeps."""
        return self.by_rule.get(self._keep)

    def see(self, epoch: int, scores: EpochScores, outputs: dict[str, Outputs], network: nn.Module) -> None:
        """Take the next epoch that was evaluated."""
        from focalcal.posthoc.early_stopping import is_better

        for rule in ("last", *_LOWEST):
            best = self.by_rule.get(rule)
            if rule == "last" or best is None or is_better(scores, best.scores, _LOWEST[rule]):
                self.by_rule[rule] = KeptEpoch(epoch, scores, outputs)
                if rule == self._keep != "last":
                    self.weights = copy.deepcopy(network.state_dict())

    def state(self) -> dict[str, Any]:
        """For a checkpoint: tensors and plain values."""
        return {
            "weights": self.weights,
            "epochs": {rule: {"epoch": kept.epoch, **asdict(kept.scores)} for rule, kept in self.by_rule.items()},
            "logits": {
                kept.epoch: {split: each.logits for split, each in kept.outputs.items()}
                for kept in self.by_rule.values()
            },
        }

    def restore(self, state: dict[str, Any], labels: dict[str, Tensor]) -> None:
        """Go on from a checkpoint, with the labels of each split."""
        from focalcal.posthoc import EpochScores

        self.weights = state["weights"]
        for rule, told in state["epochs"].items():
            epoch = told.pop("epoch")
            outputs = {split: Outputs(logits, labels[split]) for split, logits in state["logits"][epoch].items()}
            self.by_rule[rule] = KeptEpoch(epoch, EpochScores(**told), outputs)
