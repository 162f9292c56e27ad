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


class FiniteLosses:
    """Looks at every loss of an epoch. On a GPU each is looked at one step late, when it is there without waiting."""

    def __init__(self, epoch: int, ids: Any) -> None:
        self.epoch, self.ids = epoch, ids
        self._waiting: tuple[int, Tensor, Tensor] | None = None

    def see(self, batch: int, loss: Tensor, rows: Tensor) -> None:
        """The loss of this batch (from 1) of examples at `rows`."""
        if loss.is_cpu:
            self._check(batch, loss, rows)
            return
        self.last()
        self._waiting = (batch, loss, rows)

    def last(self) -> None:
        """What has not been looked at yet."""
        if self._waiting is not None:
            self._check(*self._waiting)
            self._waiting = None

    def _check(self, batch: int, loss: Tensor, rows: Tensor) -> None:
        value = loss.item()
        if not math.isfinite(value):
            raise NonFiniteLossError(
                epoch=self.epoch, batch=batch, value=value, ids=self.ids[rows.cpu().numpy()].tolist()
            )


def check_logits(logits: Tensor, ids: Any, *, epoch: int, split: str) -> None:
    """Refuse logits (N, ...) that are not finite."""
    finite = torch.isfinite(logits)
    if not bool(finite.all()):
        rows = (~finite).flatten(1).any(1).cpu().numpy()
        raise NonFiniteLossError(
            epoch=epoch, batch=None, value=logits[~finite][0].item(), ids=ids[rows].tolist(), split=split
        )
