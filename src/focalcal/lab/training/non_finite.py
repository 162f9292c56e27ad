"""What happens when a loss is not finite: training stops, and says where."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

_SHOWN = 5


class NonFiniteLossError(ValueError):
    """Training met a NaN or an infinity.

    `epoch` and `batch` count from 1. In split "train" `value` is the loss of that batch, `ids` are its examples. Where
    "val" or "test" is evaluated, `batch` is None, `value` an offending logit and `ids` the examples that have one.
    """

    def __init__(
        self, *, epoch: int, batch: int | None, value: float, ids: Sequence[Any], split: str = "train"
    ) -> None:
        self.epoch, self.batch, self.value, self.ids, self.split = epoch, batch, value, list(ids), split
        where = f"the loss of batch {batch}" if split == "train" else f"a logit of the {split} split"
        some = ", ".join(map(str, self.ids[:_SHOWN])) + (", ..." if len(self.ids) > _SHOWN else "")
        super().__init__(
            f"{where} must be finite, got {value} in epoch {epoch} (examples {some}); lower the learning rate, "
            "clip the gradient, or look at these examples"
        )

    def record(self) -> dict[str, Any]:
        """What JSON can express of it; `value` as text, since JSON has neither NaN nor infinity."""
        return {
            "epoch": self.epoch,
            "batch": self.batch,
            "split": self.split,
            "value": str(self.value),
            "ids": self.ids,
            "message": str(self),
        }


def check_loss(loss: Tensor, ids: Any, rows: Tensor, *, epoch: int, batch: int) -> None:
    """Refuse the loss of this batch (from 1), of examples at `rows`, if it is not one finite number."""
    if loss.dim():
        raise ValueError(f"loss must give one number per batch, got shape {tuple(loss.shape)}; use reduction='mean'")
    if not math.isfinite(value := loss.item()):
        raise NonFiniteLossError(epoch=epoch, batch=batch, value=value, ids=ids[rows.cpu().numpy()].tolist())


def check_logits(logits: Tensor, ids: Any, *, epoch: int, split: str) -> None:
    """Refuse logits (N, ...) that are not finite."""
    finite = torch.isfinite(logits)
    if not bool(finite.all()):
        rows = (~finite).flatten(1).any(1).cpu().numpy()
        raise NonFiniteLossError(
            epoch=epoch, batch=None, value=logits[~finite][0].item(), ids=ids[rows].tolist(), split=split
        )
