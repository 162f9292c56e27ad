"""Losses and calibration metrics in a Hugging Face `Trainer`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn
from transformers import TrainerCallback

from focalcal.integrations.validation import calibration_metrics, update_adaptive_loss

_IGNORED = -100  # the label that a Trainer leaves out when it counts the items of a batch


def compute_loss_func(loss: nn.Module, *, shift_labels: bool = False) -> Callable[..., Tensor]:
    """`Trainer(compute_loss_func=compute_loss_func(loss))` for any loss of (logits, labels) that returns a mean.

    With gradient accumulation a `Trainer` adds up the losses of several batches and passes the number of items in all
    of them. Each batch's mean is weighted by its share of these items, so that the sum is the mean over all of them,
    however unequal the batches are. Logits (N, K) or (N, T, K) with labels (N,) or (N, T); labels of -100 do not count.

    `shift_labels=True` is for causal language models: the logits at position t belong to the label at t + 1.
    """
    if getattr(loss, "reduction", "mean") != "mean":
        raise ValueError(f"loss must have reduction='mean', got {loss.reduction!r}; the Trainer needs one number")
    if getattr(loss, "ignore_index", _IGNORED) != _IGNORED:
        raise ValueError(
            f"loss must have ignore_index={_IGNORED}, which a Trainer does not count, got {loss.ignore_index!r}"
        )

    def compute_loss(outputs: Any, labels: Tensor, num_items_in_batch: Tensor | int | None = None) -> Tensor:
        logits, labels = rows_with_labels(_logits(outputs), labels, shift_labels=shift_labels)
        return _share_of_items(lambda: loss(logits, labels), logits, labels, num_items_in_batch)

    return compute_loss


class LossWithoutLogits(nn.Module):
    """A causal language model that is trained without the logits of all its tokens: they would not fit.

        Trainer(LossWithoutLogits(model, LinearFocalCalibrationLoss(gamma=3, lam=1)), ...)

    `loss(hidden, weight, labels, bias)` is given the hidden states of the model's body and its output layer. The states
    at position t belong to the label at t + 1, and labels of -100 do not count. In evaluation the logits are returned
    as well, for `CalibrationCallback(shift_labels=True)`. The model itself stays `.model`, to be saved and used.
    """

    def __init__(self, model: Any, loss: nn.Module) -> None:
        super().__init__()
        head = getattr(model, "get_output_embeddings", lambda: None)()
        if head is None or getattr(model, "base_model", model) is model:
            raise TypeError(
                f"model must have a body and a linear output layer, as AutoModelForCausalLM's have, got "
                f"{type(model).__name__}; use compute_loss_func, which needs logits only"
            )
        self.model: Any = model
        self.loss = loss

    def forward(
        self,
        input_ids: Tensor | None = None,  # named, with the mask, because a Trainer leaves out columns that are not
        attention_mask: Tensor | None = None,
        labels: Tensor | None = None,
        num_items_in_batch: Tensor | int | None = None,
        **inputs: Any,
    ) -> Any:
        """What the model returns if there are no labels; else the loss, and in evaluation the logits."""
        inputs |= {"input_ids": input_ids, "attention_mask": attention_mask}
        if labels is None:
            return self.model(**inputs)
        head = self.model.get_output_embeddings()
        hidden = self.model.base_model(**inputs)[0]
        states, targets, bias = hidden[..., :-1, :], labels[..., 1:], getattr(head, "bias", None)
        loss = _share_of_items(
            lambda: self.loss(states, head.weight, targets, bias), hidden, targets, num_items_in_batch
        )
        return {"loss": loss} if self.training else {"loss": loss, "logits": head(hidden)}


class CalibrationCallback(TrainerCallback):
    """Logs calibration metrics with intervals at every evaluation, and updates an AdaFocal loss during training.

        calibration = CalibrationCallback(loss)
        Trainer(..., compute_metrics=calibration.compute_metrics, callbacks=[calibration])

    Adds `ece`, `ece_low`, `ece_high`, `ece_chance`, `nll`, `nll_low`, `nll_high` and `error` to the evaluation's
    metrics; `ece_chance` is the ECE that chance alone would give. The loss is updated after evaluations
    that a training makes, never by `Trainer.predict` or an evaluation afterwards. Every process sees the predictions of
    all, as the Trainer gathers them.
    """

    def __init__(self, loss: nn.Module | None = None, *, shift_labels: bool = False, resamples: int = 200) -> None:
        self._loss, self._shift_labels, self._resamples = loss, shift_labels, resamples
        self._rows: tuple[Tensor, Tensor] | None = None
        self._training = False

    def compute_metrics(self, evaluated: Any) -> dict[str, float]:
        """The metrics of an `EvalPrediction` with logits."""
        predictions = evaluated.predictions
        logits = torch.as_tensor(predictions[0] if isinstance(predictions, tuple) else predictions)
        logits, labels = rows_with_labels(logits, torch.as_tensor(evaluated.label_ids), shift_labels=self._shift_labels)
        counted = labels.ne(_IGNORED)
        self._rows = logits[counted], labels[counted]
        return calibration_metrics(*self._rows, resamples=self._resamples)

    def on_train_begin(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        """From now on evaluations update the loss."""
        self._training = True

    def on_evaluate(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        """Update the loss if this evaluation belongs to a training."""
        if self._training and self._rows is not None:
            update_adaptive_loss(self._loss, *self._rows)

    def on_train_end(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        """Later evaluations leave the loss as it is."""
        self._training = False


def rows_with_labels(logits: Tensor, labels: Tensor, *, shift_labels: bool) -> tuple[Tensor, Tensor]:
    """Logits (rows, K) and labels (rows,), of tokens as of whole examples."""
    if shift_labels:
        logits, labels = logits[..., :-1, :], labels[..., 1:]
    if labels.shape == logits.shape:  # multi-label: one column per label
        return logits, labels
    if labels.shape != logits.shape[:-1]:
        raise ValueError(
            f"labels must have the shape of the logits without their last dimension, {tuple(logits.shape[:-1])}, "
            f"got {tuple(labels.shape)}"
        )
    return logits.flatten(0, -2), labels.flatten()


def _share_of_items(
    mean: Callable[[], Tensor], scores: Tensor, labels: Tensor, num_items_in_batch: Tensor | int | None
) -> Tensor:
    """The mean of a batch, weighted by its share of the items that the Trainer counts over several batches."""
    items = labels.ne(_IGNORED).sum()
    if not items:
        return scores.sum() * 0  # a mean over nothing would be NaN
    return mean() if num_items_in_batch is None else mean() * (items / num_items_in_batch)


def _logits(outputs: Any) -> Tensor:
    logits: Tensor = outputs["logits"] if hasattr(outputs, "keys") else outputs[0]
    return logits
