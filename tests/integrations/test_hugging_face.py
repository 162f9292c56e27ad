"""Losses in a Hugging Face Trainer: the mean over accumulated batches, tokens, and AdaFocal's updates."""

import pytest
import torch
import transformers
from torch.nn import functional as F

from focalcal import AdaFocalLoss, EarlyStopping, FocalCalibrationLoss, MMCELoss
from focalcal.integrations.hugging_face import TrainerCalibration, compute_loss_func
from focalcal.metrics import ece, nll
from focalcal.posthoc import epoch_scores

WORDS, CLASSES = 16, 3


def batches(*sizes, length=None):
    shape = [(size,) if length is None else (size, length) for size in sizes]
    logits = [torch.randn(*rows, CLASSES, requires_grad=True) for rows in shape]
    labels = [torch.randint(CLASSES, rows) for rows in shape]
    return logits, labels


def documents(number):
    words = torch.randint(WORDS, (number, 5))
    return [{"input_ids": text, "labels": text[0] % CLASSES} for text in words]


def arguments(folder, **chosen):
    quiet = {"save_strategy": "no", "report_to": "none", "disable_tqdm": True, "use_cpu": True, "seed": 0}
    return transformers.TrainingArguments(str(folder), **{**quiet, **chosen})


def trained(tmp_path, loss, *, callback=None, batch=2, steps=4, **chosen):
    """A Trainer after a few accumulated steps on nine documents, so that batches are unequal."""
    torch.manual_seed(0)
    size = {"hidden_size": 8, "intermediate_size": 8, "num_hidden_layers": 1, "num_attention_heads": 2}
    config = transformers.BertConfig(vocab_size=WORDS, num_labels=CLASSES, hidden_dropout_prob=0.0, **size)
    data = documents(9)
    trainer = transformers.Trainer(
        model=transformers.BertForSequenceClassification(config),
        args=arguments(
            tmp_path,
            max_steps=steps,
            per_device_train_batch_size=batch,
            gradient_accumulation_steps=8 // batch,
            logging_steps=1,
            eval_strategy="no" if callback is None else "steps",
            eval_steps=2,
            **chosen,
        ),
        train_dataset=data,
        eval_dataset=documents(12),
        compute_loss_func=compute_loss_func(loss),
        compute_metrics=None if callback is None else callback.compute_metrics,
        callbacks=[] if callback is None else [callback],
    )
    trainer.train()
    return trainer


def test_accumulated_batches_add_up_to_the_mean_over_all_items():
    logits, labels = batches(5, 2, 1)
    labels[0][:2] = -100
    loss = FocalCalibrationLoss(gamma=2, lam=1)
    compute = compute_loss_func(loss)
    parts = [compute({"logits": z}, y, num_items_in_batch=torch.tensor(6)) for z, y in zip(logits, labels, strict=True)]
    whole = loss(torch.cat(logits), torch.cat(labels))
    torch.testing.assert_close(torch.stack(parts).sum(), whole)
    wanted = torch.autograd.grad(whole, logits)
    torch.testing.assert_close(torch.autograd.grad(torch.stack(parts).sum(), logits), wanted)


def test_tokens_and_shifted_labels():
    (logits,), (labels,) = batches(2, length=4)
    labels[0, 2] = -100
    compute = compute_loss_func(FocalCalibrationLoss(gamma=0, lam=0), shift_labels=False)
    wanted = F.cross_entropy(logits.flatten(0, 1), labels.flatten())
    torch.testing.assert_close(compute((logits,), labels), wanted)
    shifted = F.cross_entropy(logits[:, :-1].flatten(0, 1), labels[:, 1:].flatten())
    compute = compute_loss_func(FocalCalibrationLoss(gamma=0, lam=0), shift_labels=True)
    torch.testing.assert_close(compute((logits,), labels), shifted)


def test_a_batch_without_items_counts_nothing():
    (logits,), _ = batches(3)
    value = compute_loss_func(MMCELoss())({"logits": logits}, torch.full((3,), -100), num_items_in_batch=7)
    (gradient,) = torch.autograd.grad(value, logits)
    assert value == 0
    assert not gradient.any()


@pytest.mark.parametrize("options", [{"reduction": "sum"}, {"ignore_index": 0}])
def test_losses_that_a_trainer_cannot_add_up_are_refused(options):
    with pytest.raises(ValueError, match=f"loss must have {next(iter(options))}"):
        compute_loss_func(FocalCalibrationLoss(**options))


def test_labels_of_another_shape_are_refused():
    with pytest.raises(ValueError, match=r"labels must have the shape .* \(3,\), got \(2,\)"):
        compute_loss_func(FocalCalibrationLoss())({"logits": torch.zeros(3, 2)}, torch.zeros(2).long())


@pytest.mark.once
@pytest.mark.filterwarnings("ignore")
def test_accumulated_steps_are_those_of_large_batches(tmp_path):
    """Nine documents, eight in a step and one left over: in batches of two, and at once."""
    histories = [trained(tmp_path, FocalCalibrationLoss(), batch=batch).state.log_history for batch in (2, 8)]
    small, large = ([record for record in history if "loss" in record] for history in histories)
    assert len(small) == 4
    for name in ("loss", "grad_norm"):
        assert [record[name] for record in small] == pytest.approx([record[name] for record in large], abs=2e-4)


@pytest.mark.once
@pytest.mark.filterwarnings("ignore")
def test_the_callback_updates_adafocal_in_training_only(tmp_path):
    loss = AdaFocalLoss(bins=3)
    calibration = TrainerCalibration(loss, resamples=20)
    trainer = trained(tmp_path, loss, callback=calibration)
    after = loss.gammas.clone()
    assert (after != 1).any()
    predicted = trainer.predict(documents(20))
    trainer.evaluate()
    torch.testing.assert_close(loss.gammas, after, rtol=0, atol=0)
    probs = torch.tensor(predicted.predictions).double().softmax(1)
    assert predicted.metrics["test_ece"] == pytest.approx(ece(probs, predicted.label_ids), abs=1e-9)
    assert predicted.metrics["test_nll"] == pytest.approx(nll(probs, predicted.label_ids), abs=1e-6)
    assert predicted.metrics["test_ece_low"] <= predicted.metrics["test_ece"] <= predicted.metrics["test_ece_high"]


@pytest.mark.once
@pytest.mark.filterwarnings("ignore")
def test_the_best_evaluation_is_kept_and_ends_the_training(tmp_path):
    stopping = EarlyStopping(patience=2)
    calibration = TrainerCalibration(stopping=stopping, resamples=20)
    options = {"callback": calibration, "steps": 60, "learning_rate": 0.1}
    trainer = trained(tmp_path, FocalCalibrationLoss(), **options)
    judged = [scores.refined_nll for scores in stopping.history]
    assert trainer.state.global_step == 2 * len(judged) == 2 * stopping.best_epoch + 4 < 60
    logged = [record["eval_refined_nll"] for record in trainer.state.log_history if "eval_nll" in record]
    assert logged == pytest.approx(judged)
    predicted = trainer.predict(trainer.eval_dataset)
    assert epoch_scores(predicted.predictions, predicted.label_ids).refined_nll == pytest.approx(min(judged), rel=1e-6)
    assert len(stopping.history) == len(judged)
    with pytest.raises(ValueError, match="load_best_model_at_end must be False"):
        trained(tmp_path, FocalCalibrationLoss(), **options, load_best_model_at_end=True, save_strategy="best")
