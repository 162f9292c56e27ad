"""What every framework's callback does with validation predictions."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from torch import Tensor, nn

from focalcal.losses import AdaFocalLoss
from focalcal.metrics import MULTILABEL_METRICS, bootstrap, ece, error, multilabel_bootstrap, nll
from focalcal.metrics.bootstrap import Interval
from focalcal.stats import bootstrap_ci

if TYPE_CHECKING:
    from focalcal.integrations.token_scores import TokenReport
    from focalcal.posthoc import EarlyStopping


def calibration_metrics(logits: Tensor, labels: Tensor, *, resamples: int) -> dict[str, float]:
    """ECE and NLL with their 95 % intervals over rows, the ECE that chance alone gives, and the error.

    Labels of the logits' shape are several per row, of which -100 does not count.
    """
    intervals: dict[str, Interval]
    if labels.shape == logits.shape:
        rows = logits.double().sigmoid(), labels.long()
        chosen = {name: MULTILABEL_METRICS[name] for name in ("ece", "nll")}
        intervals = {
            name: multilabel_bootstrap(metric, *rows, ignore_index=-100, resamples=resamples)
            for name, metric in chosen.items()
        }
        return {"error": MULTILABEL_METRICS["error"](*rows, ignore_index=-100), **_flat(intervals)}
    probs = logits.double().softmax(1)
    intervals = bootstrap([ece, nll], probs, labels, resamples=resamples)
    return {"error": error(probs, labels), **_flat(intervals)}


def stopping_metrics(stopping: EarlyStopping, logits: Tensor, labels: Tensor, model: nn.Module) -> dict[str, float]:
    """Judge an epoch, and say the NLL after its best temperature, and that."""
    stopping.update(logits, labels, model)
    return {"refined_nll": stopping.history[-1].refined_nll, "temperature": stopping.history[-1].temperature}


def token_metrics(tokens: TokenReport, *, resamples: int) -> dict[str, float]:
    """The same of tokens, with intervals over sequences where there are several."""
    several = len(set(tokens.sequence.tolist())) > 1
    groups = np.unique(tokens.sequence, return_inverse=True)[1] if several else None
    sums = tokens.nll if groups is None else np.bincount(groups, tokens.nll)
    calibration = bootstrap(
        ece, confidence=tokens.confidence, correct=tokens.correct, clusters=groups, resamples=resamples
    )
    found = bootstrap_ci(sums * (len(sums) / len(tokens.nll)), resamples=resamples)  # whose mean is that of the tokens
    likelihood = Interval(found.mean, found.low, found.high, 0.95)
    return {"error": float(1 - tokens.correct.mean()), **_flat({"ece": calibration, "nll": likelihood})}


def _flat(intervals: dict[str, Interval]) -> dict[str, float]:
    metrics: dict[str, float] = {}
    for name, interval in intervals.items():
        metrics |= {name: interval.estimate, f"{name}_low": interval.low, f"{name}_high": interval.high}
        if interval.chance is not None:
            metrics[f"{name}_chance"] = interval.chance
    return metrics


def update_adaptive_loss(loss: nn.Module | None, logits: Tensor, labels: Tensor) -> None:
    """`AdaFocalLoss.update`, which no other loss has; under `torch.distributed` with the rows of all processes."""
    if isinstance(loss, AdaFocalLoss):
        loss.update(logits.double().softmax(1).to(loss.gammas.device), labels.to(loss.gammas.device))
