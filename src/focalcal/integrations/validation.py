"""What every framework's callback does with validation predictions."""

from __future__ import annotations

from typing import TYPE_CHECKING

from torch import Tensor, nn

from focalcal.losses import AdaFocalLoss
from focalcal.metrics import bootstrap, ece, error, nll

if TYPE_CHECKING:
    from focalcal.metrics import Interval


def calibration_metrics(logits: Tensor, labels: Tensor, *, resamples: int) -> dict[str, float]:
    """ECE and NLL with their 95 % intervals over rows, the ECE that chance alone gives, and the error."""
    probs = logits.double().softmax(1)
    intervals: dict[str, Interval] = bootstrap([ece, nll], probs, labels, resamples=resamples)
    metrics = {"error": error(probs, labels)}
    for name, interval in intervals.items():
        metrics |= {name: interval.estimate, f"{name}_low": interval.low, f"{name}_high": interval.high}
        if interval.chance is not None:
            metrics[f"{name}_chance"] = interval.chance
    return metrics


def update_adaptive_loss(loss: nn.Module | None, logits: Tensor, labels: Tensor) -> None:
    """`AdaFocalLoss.update`, which no other loss has; under `torch.distributed` with the rows of all processes."""
    if isinstance(loss, AdaFocalLoss):
        loss.update(logits.double().softmax(1).to(loss.gammas.device), labels.to(loss.gammas.device))
