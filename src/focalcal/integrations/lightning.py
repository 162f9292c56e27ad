"""Calibration in a Lightning `Trainer`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import lightning
import torch
import torch.distributed as dist
from torch import Tensor, nn

from focalcal.integrations.validation import calibration_metrics, stopping_metrics, update_adaptive_loss
from focalcal.posthoc import EarlyStopping
from focalcal.predictions import Predictions

__all__ = ["LightningCalibration"]


class LightningCalibration(lightning.Callback):
    """Collects the predictions of a validation loop across ranks, logs their calibration, and updates AdaFocal.

    `validation_step` returns a mapping with "logits" (B, K) and "labels" (B,). After each validation epoch:
    `val_ece`, `val_nll`, the ends of their intervals (`_low`, `_high`), `val_ece_chance` and `val_error` are logged,
    over the rows of every rank; `loss`, if it is an AdaFocal loss, is updated from them, alike on every rank;
    `predictions` holds them as `Predictions`, and rank 0 writes them to `path` if there is one. The sanity check
    before training does none of this. With `stopping` each validation epoch of a fit is judged: `val_refined_nll` and
    `val_temperature` are logged too, the fit ends when its patience does, and at the end the module has the weights of
    the best epoch, which `stopping.calibrator` belongs to. A sampler that pads the last batch of a rank repeats rows,
    here as in any metric; `use_distributed_sampler=False` avoids that. `TrainerCalibration` is the same for the
    `Trainer` of transformers.

    Args:
        loss: updated from the rows if it is an AdaFocal loss.
        stopping: judges each validation epoch.
        path: of a file for the predictions.
        split: name of the split in them.
        resamples: of the rows, for the intervals.

    >>> calibration = LightningCalibration()
    >>> trainer = lightning.Trainer(callbacks=[calibration], accelerator="cpu", logger=False)  # doctest: +SKIP
    """

    def __init__(
        self,
        loss: nn.Module | None = None,
        *,
        stopping: EarlyStopping | None = None,
        path: str | Path | None = None,
        split: str = "val",
        resamples: int = 200,
    ) -> None:
        self._loss, self._stopping, self._path, self._split, self._resamples = loss, stopping, path, split, resamples
        self._batches: list[tuple[Tensor, Tensor]] = []
        self.predictions: Predictions | None = None

    def on_validation_epoch_start(self, trainer: Any, pl_module: Any) -> None:
        """Forget what an interrupted epoch left."""
        self._batches.clear()

    def on_validation_batch_end(
        self, trainer: Any, pl_module: Any, outputs: Any, batch: Any, batch_idx: int, dataloader_idx: int = 0
    ) -> None:
        """Keep the batch's logits and labels."""
        if not hasattr(outputs, "keys") or not {"logits", "labels"} <= set(outputs.keys()):
            raise ValueError(
                "validation_step must return a mapping with 'logits' and 'labels', "
                f"got {sorted(outputs) if hasattr(outputs, 'keys') else type(outputs).__name__}"
            )
        self._batches.append((outputs["logits"].detach().cpu(), outputs["labels"].detach().cpu()))

    def on_validation_epoch_end(self, trainer: Any, pl_module: Any) -> None:
        """Log, update and write."""
        if trainer.sanity_checking or not self._batches:
            return
        logits, labels = of_all_ranks(*map(torch.cat, zip(*self._batches, strict=True)))
        self._batches.clear()
        metrics = calibration_metrics(logits, labels, resamples=self._resamples)
        if trainer.state.fn == "fit":
            update_adaptive_loss(self._loss, logits, labels)
            if self._stopping is not None:
                metrics |= stopping_metrics(self._stopping, logits, labels, pl_module)
                trainer.should_stop |= self._stopping.finished
        pl_module.log_dict({f"{self._split}_{name}": value for name, value in metrics.items()}, sync_dist=False)
        self.predictions = Predictions(logits=logits, labels=labels, split=self._split)
        if self._path is not None and trainer.is_global_zero:
            self.predictions.save(self._path)

    def on_train_end(self, trainer: Any, pl_module: Any) -> None:
        """Load the weights of the best epoch."""
        if self._stopping is not None and self._stopping.history:
            self._stopping.restore(pl_module)


CalibrationCallback = LightningCalibration


def of_all_ranks(logits: Tensor, labels: Tensor) -> tuple[Tensor, Tensor]:
    """The rows of every process of `torch.distributed` in the order of their ranks, however many each has."""
    if not dist.is_available() or not dist.is_initialized() or dist.get_world_size() == 1:
        return logits, labels
    parts: list[Any] = [None] * dist.get_world_size()
    dist.all_gather_object(parts, (logits, labels))
    gathered_logits, gathered_labels = zip(*parts, strict=True)
    return torch.cat(gathered_logits), torch.cat(gathered_labels)
