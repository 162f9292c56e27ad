"""Evaluation of language models by tokens: the same numbers as of all logits, in little memory."""

import subprocess
import sys

import numpy as np
import pytest

torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")

from focalcal import FocalCalibrationLoss  # noqa: E402
from focalcal.integrations.hugging_face import TrainerCalibration, compute_loss_func  # noqa: E402
from focalcal.integrations.token_scores import token_report, token_scores  # noqa: E402

WORDS = 40


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
@pytest.mark.parametrize("shift", [False, True])
def test_three_numbers_are_those_of_the_logits(shift, dtype):
    torch.manual_seed(0)
    logits, labels = (4 * torch.randn(3, 7, WORDS)).to(dtype), torch.randint(0, WORDS, (3, 7))
    labels[1, 4:] = -100
    found = token_scores(logits, labels, shift_labels=shift)
    report = token_report(found, labels)
    rows, wanted = (logits[:, :-1], labels[:, 1:]) if shift else (logits, labels)
    probs, wanted = rows[wanted.ne(-100)].double().softmax(1).numpy(), wanted[wanted.ne(-100)].numpy()
    assert len(report.nll) == len(wanted) == (15 if shift else 18)
    np.testing.assert_allclose(report.confidence, probs.max(1), rtol=1e-5)
    np.testing.assert_array_equal(report.correct, probs.argmax(1) == wanted)
    np.testing.assert_allclose(report.nll, -np.log(probs[np.arange(len(wanted)), wanted]), rtol=1e-4, atol=1e-5)
    np.testing.assert_array_equal(report.token, wanted)
    assert report.position.min() == int(shift)


@pytest.mark.once
@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="memory is in kilobytes there")
def test_8192_tokens_of_50257_words_take_less_than_300_megabytes():
    """Besides the logits, which are one number here."""
    code = """
import resource, torch
from focalcal.integrations.token_scores import token_scores
logits, labels = torch.zeros(1).expand(8, 1024, 50_257), torch.zeros(8, 1024).long()
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
token_scores(logits, labels, shift_labels=True)
print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before)
"""
    used = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert int(used) < 300_000


def test_tokens_by_position_and_frequency():
    labels = torch.tensor([[5, 5, 5, 1], [5, 5, 5, 2]])
    scores = torch.tensor([0.5, 1.0, 0.7]).expand(2, 4, 3).clone()
    scores[:, 2:, 1] = 0
    report = token_report(scores, labels)
    halves = report.by_position(2)
    assert (halves["part"], halves["tokens"], halves["gap"]) == (["0 to 1", "2 to 3"], [4, 4], [-0.5, 0.5])
    assert report.by_frequency([0, 3, 7, 0, 0, 250])["part"] == ["1 to 9", "100 to 999"]
    assert report.by_frequency()["tokens"] == [8]
    assert report.frame()["tokens"] == [8]


def trainer_of(folder, calibration, **chosen):
    torch.manual_seed(0)
    size = {"n_embd": 8, "n_layer": 1, "n_head": 2, "n_positions": 12, "vocab_size": WORDS, "initializer_range": 0.5}
    words = torch.randint(0, WORDS, (9, 12))
    data = [{"input_ids": row, "labels": torch.where(torch.arange(12) < 9, row, -100)} for row in words]
    quiet = {"report_to": "none", "disable_tqdm": True, "use_cpu": True, "per_device_eval_batch_size": 4}
    return transformers.Trainer(
        model=transformers.GPT2LMHeadModel(transformers.GPT2Config(**size)),
        args=transformers.TrainingArguments(str(folder), **quiet),
        eval_dataset=data,
        compute_loss_func=compute_loss_func(FocalCalibrationLoss(gamma=0, lam=0)),
        **chosen,
    )


@pytest.mark.once
@pytest.mark.filterwarnings("ignore")
def test_a_trainer_that_keeps_three_numbers_reports_what_one_that_keeps_logits_does(tmp_path):
    measured = []
    for reduced in (False, True):
        calibration = TrainerCalibration(resamples=20)
        own = {"preprocess_logits_for_metrics": calibration.preprocess_logits_for_metrics} if reduced else {}
        trainer = trainer_of(
            tmp_path, calibration, compute_metrics=calibration.compute_metrics, callbacks=[calibration], **own
        )
        measured.append(trainer.evaluate())
    for name in ("eval_ece", "eval_nll", "eval_error"):
        assert measured[0][name] == pytest.approx(measured[1][name], abs=1e-5)
    assert measured[1]["eval_nll_low"] < measured[1]["eval_nll"] < measured[1]["eval_nll_high"]
    assert calibration.tokens.frame()["tokens"] == [72]


@pytest.mark.once
@pytest.mark.filterwarnings("ignore")
def test_a_callback_without_its_metrics_refuses_to_do_nothing(tmp_path):
    calibration = TrainerCalibration()
    with pytest.raises(ValueError, match=r"compute_metrics=calibration.compute_metrics, callbacks=\[calibration\]"):
        trainer_of(tmp_path, calibration, callbacks=[calibration]).evaluate()


def test_several_labels_per_row():
    torch.manual_seed(0)
    logits = torch.randn(200, 3)
    labels = (torch.rand(200, 3) < logits.sigmoid()).float()
    measured = TrainerCalibration(resamples=20).compute_metrics(
        transformers.EvalPrediction(logits.numpy(), labels.numpy())
    )
    p, y = logits.double().sigmoid().numpy().ravel(), labels.numpy().ravel()
    assert measured["nll"] == pytest.approx(-np.log(np.where(y, p, 1 - p)).mean(), abs=1e-6)
    assert measured["error"] == pytest.approx(np.mean((p > 0.5) != y))
    assert measured["ece_low"] <= measured["ece"] <= measured["ece_high"]
