"""Losses and calibration metrics in a Hugging Face `Trainer`."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any, Never

import torch
from torch import Tensor, nn
from torch.nn.functional import linear
from transformers import TrainerCallback

from focalcal.integrations.token_scores import TokenReport, token_report, token_scores
from focalcal.integrations.validation import calibration_metrics, stopping_metrics, token_metrics, update_adaptive_loss
from focalcal.losses import AdaFocalLoss
from focalcal.posthoc import EarlyStopping

__all__ = ["LossWithoutLogits", "TrainerCalibration", "compute_loss_func"]

_IGNORED = -100  # the label that a Trainer leaves out when it counts the items of a batch
_SCALES = {"logit_scale": 1, "lm_head_multiplier": 1, "logits_scaling": -1}  # of logits, in configurations; the power


def compute_loss_func(loss: nn.Module, *, shift_labels: bool | None = None) -> Callable[..., Tensor]:
    """`Trainer(compute_loss_func=compute_loss_func(loss))` for any loss of (logits, labels) that returns a mean.

    With gradient accumulation a `Trainer` adds up the losses of several batches and passes the number of items in all
    of them. Each batch's mean is weighted by its share of these items, so that the sum is the mean over all of them,
    however unequal the batches are. Logits (N, K) or (N, T, K) with labels (N,) or (N, T); labels of -100 do not count.

    In a causal language model the logits at position t belong to the label at t + 1. Its outputs are recognised, as
    those of an encoder with a decoder and of token classification, which are not shifted; others with logits (N, T, K)
    are refused unless `shift_labels` says what they are. `shift_labels=False` is also for labels that are shifted
    already, and for the few models whose own loss does not shift, such as `BartForCausalLM`.

    Args:
        loss: of (logits, labels); returns a mean.
        shift_labels: whether the logits at t belong to the label at t + 1; None: as the model's outputs show.

    Returns:
        What a `Trainer` takes as `compute_loss_func`.

    >>> from focalcal import FocalCalibrationLoss
    >>> function = compute_loss_func(FocalCalibrationLoss(gamma=3, lam=1))
    >>> outputs = {"logits": torch.zeros(4, 2)}
    >>> function(outputs, torch.tensor([0, 1, 1, 0]))
    tensor(0.5866)
    """
    _check_loss(loss)

    def compute_loss(outputs: Any, labels: Tensor, num_items_in_batch: Tensor | int | None = None) -> Tensor:
        logits: Tensor = outputs["logits"] if hasattr(outputs, "keys") else outputs[0]
        tokens = logits.dim() == 3 and labels.shape == logits.shape[:-1]
        shift = (tokens and _is_causal(outputs)) if shift_labels is None else shift_labels
        logits, labels = rows_with_labels(logits, labels.to(logits.device), shift_labels=shift)
        return _share_of_items(lambda: loss(logits, labels), logits, labels, num_items_in_batch)

    return compute_loss


class LossWithoutLogits:
    """Trains a language model without the logits of all its tokens, which would not fit.

        Trainer(model, compute_loss_func=LossWithoutLogits(model, LinearFocalCalibrationLoss(gamma=3, lam=1)), ...)

    `loss(hidden, weight, labels, bias)` is given what the model gives to its output layer, and that layer. While the
    model is in training mode and gradients are on, its output layer sees the last token alone, so that the model
    returns the logits of one token; else it returns all of them. The model is otherwise what it was: it is saved,
    resumed, adapted by PEFT and trained by TRL's `SFTTrainer` as any other. Labels are shifted as in
    `compute_loss_func`.

    What a model does to its logits after its output layer is done here too if its configuration names it:
    `final_logit_softcapping` (Gemma 2), `logit_scale` (Cohere), `lm_head_multiplier` (Falcon-H1), `logits_scaling`
    (Granite). Logits are compared with the model's own, at once for random states and in the first batch for its last
    token; a model that does anything else is refused.

    `hook.remove()` gives the model all its logits back in training mode.

    Args:
        model: a causal language model of transformers.
        loss: is called as loss(hidden, weight, labels, bias), such as `LinearFocalCalibrationLoss`.
        shift_labels: as `compute_loss_func` takes it.

    >>> from focalcal import LinearFocalCalibrationLoss
    >>> from transformers import GPT2Config, GPT2LMHeadModel
    >>> config = GPT2Config(n_layer=1, n_head=1, n_embd=8, vocab_size=20, bos_token_id=0, eos_token_id=0)
    >>> model = GPT2LMHeadModel(config)
    >>> function = LossWithoutLogits(model, LinearFocalCalibrationLoss(gamma=3, lam=1))
    >>> model.train()(torch.zeros(2, 5, dtype=torch.long)).logits.shape  # of the last token alone
    torch.Size([2, 1, 20])
    >>> function.hook.remove()
    >>> model(torch.zeros(2, 5, dtype=torch.long)).logits.shape
    torch.Size([2, 5, 20])
    """

    def __init__(self, model: Any, loss: nn.Module, *, shift_labels: bool | None = None) -> None:
        _check_loss(loss)
        head: Any = getattr(model, "get_output_embeddings", lambda: None)()
        if getattr(head, "weight", None) is None or isinstance(head, nn.Embedding) or not hasattr(model, "config"):
            raise TypeError(
                f"model must be of transformers and have a linear output layer, as AutoModelForCausalLM's do, got "
                f"{type(model).__name__}; use compute_loss_func, which needs logits only"
            )
        self._model, self._loss, self._shift_labels = model, loss, shift_labels
        self._scale, soft_cap = _after_the_head(model)
        self._cap: dict[str, Any] = {} if soft_cap is None else {"soft_cap": soft_cap}
        try:
            inspect.signature(getattr(loss, "forward", loss)).bind("hidden", "weight", "labels", "bias", **self._cap)
        except TypeError:
            raise TypeError(
                f"loss must take (hidden, weight, labels, bias{', *, soft_cap' * bool(self._cap)}), got "
                f"{type(loss).__name__}; use LinearFocalCalibrationLoss, or compute_loss_func for a loss of logits"
            ) from None
        self._taken: tuple[Tensor, bool, torch.dtype] | None = None
        # Not a wrapper, which is no PreTrainedModel, nor a new `forward`, which SFTTrainer goes around.
        if (earlier := vars(head).get("_loss_without_logits")) is not None:
            earlier.remove()  # a cell of a notebook that runs again
        self.hook = head._loss_without_logits = head.register_forward_pre_hook(self._take)
        self._trial, self._compared = True, False  # with random states, with a batch of a training
        try:
            self._compare_random_states()
        except Exception:
            self.hook.remove()  # the model is refused, and left as it was
            raise
        self._trial = False

    def __getattr__(self, name: str) -> Never:
        """Refused: what is asked of a model, as by a `Trainer` that was given this in a model's place."""
        raise AttributeError(
            f"LossWithoutLogits has no {name!r}, it is no model; call "
            "Trainer(model, compute_loss_func=LossWithoutLogits(model, loss)), and ask the model itself"
        )

    def __call__(self, outputs: Any, labels: Tensor, num_items_in_batch: Tensor | int | None = None) -> Tensor:
        """The loss of the batch that the model has just returned `outputs` for."""
        states, autocast, dtype = self._last_taken()
        with torch.autocast(states.device.type, dtype=dtype, enabled=autocast):
            if not self._compared:
                self._compare(outputs, states[:, -1:])
                self._compared = bool(self._model.training)  # a model may do something in training only
            labels = labels.to(states.device)
            if _is_causal(outputs) if self._shift_labels is None else self._shift_labels:
                states, labels = states[..., :-1, :], labels[..., 1:]
            weight, bias = self._head()
            return _share_of_items(
                lambda: self._loss(self._scaled(states), weight, labels, bias, **self._cap),
                states,
                labels,
                num_items_in_batch,
            )

    def __deepcopy__(self, memo: Any) -> LossWithoutLogits:
        """Itself: PEFT copies an output layer that it trains, and the copy's hook must report here."""
        return self

    def _take(self, head: Any, args: tuple[Any, ...]) -> tuple[Any, ...]:
        """Keep what the output layer is given; in training hand it the last token alone."""
        states, device = args[0], args[0].device.type
        if self._trial:  # logits of up to 100, which show a cap that those of a new model would not reach
            states = torch.randn_like(states)
            states *= 100 / linear(states, head.weight).abs().max().clamp(min=0.01)
        # The Trainer calls the loss outside of the model's autocast.
        self._taken = states, torch.is_autocast_enabled(device), torch.get_autocast_dtype(device)
        return (states[..., -1:, :] if head.training and torch.is_grad_enabled() else states, *args[1:])

    def _last_taken(self) -> tuple[Tensor, bool, torch.dtype]:
        if self._taken is None:
            raise RuntimeError(
                f"the output layer of {type(self._model).__name__} must make the logits, but it was not called; make "
                "LossWithoutLogits of the model that the Trainer trains, after its last change such as "
                "resize_token_embeddings, or use compute_loss_func"
            )
        taken, self._taken = self._taken, None
        return taken

    def _head(self) -> tuple[Tensor, Tensor | None]:
        """Weight and bias, by which the scale is multiplied here as in the hidden states."""
        head = self._model.get_output_embeddings()
        weight, bias = head.weight, getattr(head, "bias", None)
        others = [name for name, value in head.named_parameters() if value.requires_grad and value is not weight]
        if any(not name.endswith("bias") for name in others):
            raise ValueError(
                f"the model's output layer must train its weight and bias only, got {', '.join(others)}; leave the "
                "layer out of target_modules, or name it in modules_to_save"
            )
        return weight, None if bias is None else self._scaled(bias)

    def _scaled(self, value: Tensor) -> Tensor:
        return value if self._scale == 1 else value * self._scale

    def _compare_random_states(self) -> None:
        """Run the model on two tokens, with random states in place of its own, whose values could hide a difference."""
        device = self._model.device
        tokens = torch.zeros(1, 2, dtype=torch.long, device=device)
        inputs = {"decoder_input_ids": tokens} if getattr(self._model.config, "is_encoder_decoder", False) else {}
        inputs |= {"input_ids": tokens, "attention_mask": tokens + 1}
        # Nothing must be drawn here that training would have drawn.
        with torch.no_grad(), torch.random.fork_rng([] if device.type == "cpu" else [device], device_type=device.type):
            outputs = self._model(**inputs)
        self._compare(outputs, self._last_taken()[0])

    @torch.no_grad()
    def _compare(self, outputs: Any, states: Tensor) -> None:
        """Refuse a model whose logits of the last tokens are not those that the loss would compute of their states."""
        weight, bias = self._head()
        ours = linear(self._scaled(states), weight, bias)
        if cap := self._cap.get("soft_cap"):
            ours = cap * (ours / cap).tanh()
        own: Tensor = (outputs["logits"] if hasattr(outputs, "keys") else outputs[0])[:, -states.shape[1] :]
        largest = ours.float().abs().max()  # not of the model's own, which may be infinite
        difference = (own.float() - ours.float()).abs().max() if own.shape == ours.shape else torch.inf
        if not difference <= max(1e-5, 4 * torch.finfo(ours.dtype).eps) * largest:
            raise ValueError(
                f"model must make its logits with its output layer and what {', '.join(_SCALES)} and "
                f"final_logit_softcapping say, got {type(self._model).__name__}, whose logits differ by "
                f"{difference:.3g} from these, of up to {largest:.3g}; use compute_loss_func, which needs no such rule"
            )


class TrainerCalibration(TrainerCallback):
    """Logs calibration metrics with intervals at every evaluation, and updates an AdaFocal loss during training.

        calibration = TrainerCalibration(loss)
        Trainer(..., compute_metrics=calibration.compute_metrics, callbacks=[calibration])

    Adds `ece`, `ece_low`, `ece_high`, `ece_chance`, `nll`, `nll_low`, `nll_high` and `error` to the evaluation's
    metrics; `ece_chance` is the ECE that chance alone would give. Several labels per row are taken as `multilabel_`
    metrics take them. The loss is updated after evaluations
    that a training makes, never by `Trainer.predict` or an evaluation afterwards. Every process sees the predictions of
    all, as the Trainer gathers them. Labels are shifted for the causal language models of transformers, as in
    `compute_loss_func`, or as `shift_labels` says.

    With `stopping`, an `EarlyStopping`, each evaluation of a training is judged, `refined_nll` and `temperature` are
    among the metrics, the training ends when its patience does, and at the end the model has the weights of the best
    evaluation; `stopping.calibrator` goes with them. It takes the place of `load_best_model_at_end`.

    A `Trainer` keeps the logits of all tokens that it evaluates; with
    `preprocess_logits_for_metrics=calibration.preprocess_logits_for_metrics` it keeps three numbers per token.
    `calibration.tokens` is then a `TokenReport` of the last evaluation, by position and by frequency, and intervals
    are over sequences.

    Args:
        loss: updated after evaluations of a training if it is an AdaFocal loss.
        stopping: judges each evaluation of a training.
        shift_labels: as `compute_loss_func` takes it.
        resamples: of the rows, for the intervals.

    >>> import numpy as np
    >>> from transformers import EvalPrediction
    >>> rows = EvalPrediction(np.array([[2.0, 0.0], [0.0, 2.0], [1.0, 0.0]]), np.array([0, 1, 1]))
    >>> round(TrainerCalibration(shift_labels=False).compute_metrics(rows)["error"], 4)
    0.3333
    """

    tokens: TokenReport | None = None

    def __init__(
        self,
        loss: nn.Module | None = None,
        *,
        stopping: EarlyStopping | None = None,
        shift_labels: bool | None = None,
        resamples: int = 200,
    ) -> None:
        self._loss, self._stopping, self._shift_labels, self._resamples = loss, stopping, shift_labels, resamples
        self._model: nn.Module | None = None
        self._causal: bool | None = None  # unknown
        self._rows: tuple[Tensor, Tensor] | None = None
        self._training = False
        self._computed = self._reduced = False  # since the last evaluation; by preprocess_logits_for_metrics

    def compute_metrics(self, evaluated: Any) -> dict[str, float]:
        """The metrics of an `EvalPrediction` with logits."""
        predictions, self._computed = evaluated.predictions, True
        if self._reduced:
            self.tokens = token_report(predictions, evaluated.label_ids)
            return token_metrics(self.tokens, resamples=self._resamples)
        logits = torch.as_tensor(predictions[0] if isinstance(predictions, tuple) else predictions)
        labels = torch.as_tensor(evaluated.label_ids)
        shift = self._shift_labels
        if shift is None and logits.dim() == 3 and labels.shape == logits.shape[:-1]:
            shift = self._causal
            if shift is None:
                raise ValueError(
                    "shift_labels must say whether logits of tokens belong to the next label, got None and no model of "
                    "transformers; pass callbacks=[calibration] to the Trainer as well, or shift_labels"
                )
        logits, labels = rows_with_labels(logits, labels, shift_labels=bool(shift))
        if labels.shape != logits.shape:
            counted = labels.ne(_IGNORED)
            logits, labels = logits[counted], labels[counted]
        self._rows = logits, labels
        metrics = calibration_metrics(*self._rows, resamples=self._resamples)
        if self._stopping is not None and self._training and self._model is not None:
            metrics |= stopping_metrics(self._stopping, logits, labels, self._model)
        return metrics

    def preprocess_logits_for_metrics(self, logits: Any, labels: Tensor) -> Tensor:
        """The `token_scores` of a batch of a language model, (B, T, 3), in the place of its logits (B, T, K)."""
        logits = logits[0] if isinstance(logits, tuple) else logits
        shift = self._causal if self._shift_labels is None else self._shift_labels
        if shift is None or logits.dim() != 3 or labels.shape != logits.shape[:-1]:
            raise ValueError(
                "preprocess_logits_for_metrics is for logits of tokens (B, T, K) of a model of transformers, got "
                f"{tuple(logits.shape)} and labels {tuple(labels.shape)}; pass callbacks=[calibration] to the Trainer "
                "as well, or shift_labels, and leave it out where rows are whole examples"
            )
        if not self._reduced and (isinstance(self._loss, AdaFocalLoss) or self._stopping is not None):
            name = "loss must not be an AdaFocalLoss" if self._stopping is None else "stopping must be None"
            raise ValueError(f"{name}, which is updated from logits; leave one of them out")
        self._reduced = True
        return token_scores(logits, labels, shift_labels=shift)

    def on_init_end(self, args: Any, state: Any, control: Any, model: Any = None, **_: Any) -> None:
        """Note whether the model's labels are to be shifted."""
        self.on_prediction_step(args, state, control, model)

    def on_train_begin(self, args: Any, state: Any, control: Any, model: Any = None, **_: Any) -> None:
        """From now on evaluations update the loss, and are judged."""
        if self._stopping is not None and args.load_best_model_at_end:
            raise ValueError("load_best_model_at_end must be False with stopping, which loads the best model itself")
        self._training, self._model = True, model

    def on_prediction_step(self, args: Any, state: Any, control: Any, model: Any = None, **_: Any) -> None:
        """Note whether the model's labels are to be shifted."""
        if hasattr(model, "can_generate"):
            self._causal = model.can_generate() and not model.config.is_encoder_decoder

    def on_evaluate(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        """Update the loss if this evaluation belongs to a training."""
        if not self._computed:
            raise ValueError(
                "TrainerCalibration must compute the metrics of an evaluation, but was not asked to; pass "
                "Trainer(compute_metrics=calibration.compute_metrics, callbacks=[calibration], ...) and labels"
            )
        self._computed = False
        if self._training and self._rows is not None:
            update_adaptive_loss(self._loss, *self._rows)
            control.should_training_stop |= self._stopping is not None and self._stopping.finished

    def on_train_end(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        """Load the weights of the best evaluation; later ones leave the loss as it is."""
        if self._stopping is not None and self._stopping.history:
            self._stopping.restore(self._model)
        self._training, self._model = False, None


CalibrationCallback = TrainerCalibration


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


def _is_causal(outputs: Any) -> bool:
    """Whether token logits belong to the next label, as far as the outputs show it."""
    names, kind = (set(outputs.keys()) if hasattr(outputs, "keys") else set()), type(outputs).__name__
    if "encoder_last_hidden_state" in names or any(part in kind for part in ("Seq2Seq", "TokenClassifier", "MaskedLM")):
        return False
    if "CausalLM" in kind or "past_key_values" in names:
        return True
    raise ValueError(
        f"shift_labels must be True for a causal language model and False for other logits of tokens, got outputs of "
        f"type {kind}, which do not show it; pass shift_labels"
    )


def _after_the_head(model: Any) -> tuple[float, float | None]:
    """By what the model multiplies the logits of its output layer, and the value at which it then caps them."""
    config, scale = model.config.get_text_config(), 1.0
    for name, power in _SCALES.items():
        if isinstance(value := getattr(config, name, None), float | int):
            scale *= value**power
    return scale, getattr(config, "final_logit_softcapping", None)


def _check_loss(loss: nn.Module) -> None:
    if getattr(loss, "reduction", "mean") != "mean":
        raise ValueError(f"loss must have reduction='mean', got {loss.reduction!r}; the Trainer needs one number")
    if getattr(loss, "ignore_index", _IGNORED) != _IGNORED:
        raise ValueError(
            f"loss must have ignore_index={_IGNORED}, which a Trainer does not count, got {loss.ignore_index!r}"
        )
