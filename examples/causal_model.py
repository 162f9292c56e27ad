"""Train a small causal language model on real text with Focal Calibration Loss, without the logits of all tokens.

The model is built from a configuration, so that nothing is downloaded; use `AutoModelForCausalLM.from_pretrained` for a
real one. The text is AG News from the folder in FOCALCAL_DATA. Takes about a minute.
"""

import os
import sys
import tempfile

import torch
from transformers import GPT2Config, GPT2LMHeadModel, Trainer, TrainingArguments

from focalcal import LinearFocalCalibrationLoss
from focalcal.integrations.hugging_face import LossWithoutLogits, TrainerCalibration
from focalcal.lab.data import load_data

WORDS, LENGTH, DOCUMENTS = 5_000, 32, 1_000

if "FOCALCAL_DATA" not in os.environ:
    sys.exit("set FOCALCAL_DATA to a folder with AG News: FOCALCAL_DATA=... focalcal data get ag_news")
news = load_data("ag_news", length=LENGTH, num_words=WORDS, allow_partial=True)


def documents(split: str, number: int) -> list[dict[str, torch.Tensor]]:
    """Words as numbers; padding, which is 0, has no label."""
    texts = torch.as_tensor(news.splits[split].inputs[:number]).long()
    return [{"input_ids": text, "labels": torch.where(text == 0, -100, text)} for text in texts]


torch.manual_seed(0)
size = {"n_embd": 64, "n_layer": 2, "n_head": 4, "n_positions": LENGTH}
network = GPT2LMHeadModel(GPT2Config(vocab_size=WORDS, bos_token_id=0, eos_token_id=0, **size))
calibration = TrainerCalibration()
with tempfile.TemporaryDirectory() as folder:
    trainer = Trainer(
        model=network,
        args=TrainingArguments(
            folder,
            num_train_epochs=2,
            per_device_train_batch_size=16,
            per_device_eval_batch_size=16,
            learning_rate=3e-3,
            save_strategy="no",
            report_to="none",
            disable_tqdm=True,
            use_cpu=True,
        ),
        train_dataset=documents("train", DOCUMENTS),
        eval_dataset=documents("test", 100),
        compute_loss_func=LossWithoutLogits(network, LinearFocalCalibrationLoss(gamma=1, lam=1)),
        compute_metrics=calibration.compute_metrics,
        callbacks=[calibration],
    )
    trainer.train()
    measured = trainer.evaluate()
print(f"{WORDS:,} words: error {measured['eval_error']:.3f}, NLL {measured['eval_nll']:.3f}, ", end="")
print(f"ECE {measured['eval_ece']:.3f} [{measured['eval_ece_low']:.3f}, {measured['eval_ece_high']:.3f}]")
