"""The learning rate: a function of how far training has come, and for a plateau of the validation losses so far."""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Mapping
from dataclasses import asdict, dataclass

from focalcal.training.recipe import Recipe

PLATEAU_THRESHOLD = 1e-4  # a loss counts as fallen if it is below best * (1 - this), torch's rule


def rate_share(recipe: Recipe, step: int, steps_per_epoch: int) -> float:
    """What the learning rate is divided by `optimizer.lr` in step 0, 1, ..., the plateau's part left out.

    warm-up     (step + 1) / w over the first w = warmup * steps_per_epoch steps
    milestones  factor ^ (how many milestones lie at or before the number of whole epochs done)
    cosine      (1 + cos(pi (step - w) / (total - w))) / 2, which would be 0 at step `total`
    """
    schedule = recipe.schedule
    warm = schedule.warmup * steps_per_epoch
    if step < warm:
        return (step + 1) / warm
    if schedule.kind == "milestones":
        assert schedule.factor is not None
        return float(schedule.factor ** bisect_right(schedule.milestones, step // steps_per_epoch))
    if schedule.kind == "cosine":
        total = recipe.epochs * steps_per_epoch
        return (1 + math.cos(math.pi * (step - warm) / (total - warm))) / 2
    return 1.0


@dataclass
class Plateau:
    """How often the rate was lowered, and since when the validation loss has not fallen; `torch`'s rule."""

    best: float = math.inf
    waited: int = 0
    lowered: int = 0

    def see(self, loss: float, patience: int) -> None:
        """Take an epoch's validation loss; lower the rate after more than `patience` epochs without a fall."""
        if loss < self.best * (1 - PLATEAU_THRESHOLD) if math.isfinite(self.best) else loss < self.best:
            self.best, self.waited = loss, 0
            return
        self.waited += 1
        if self.waited > patience:
            self.waited, self.lowered = 0, self.lowered + 1

    def state(self) -> dict[str, float]:
        """What a checkpoint keeps."""
        return asdict(self)

    def restore(self, state: Mapping[str, float]) -> None:
        """Go on from `state`."""
        self.best, self.waited, self.lowered = float(state["best"]), int(state["waited"]), int(state["lowered"])
