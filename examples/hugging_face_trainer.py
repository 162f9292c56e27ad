"""Fine-tune a transformer with Focal Calibration Loss in a Hugging Face `Trainer`.

The network is built from a configuration, so that nothing is downloaded; use `from_pretrained` for a real one. Each
document is a sequence of words, one half of which belongs to its class. Takes a few seconds.
"""

import tempfile

import torch
from transformers import BertConfig, BertForSequenceClassification, Trainer, TrainingArguments

from focalcal import FocalCalibrationLoss
from focalcal.integrations.hugging_face import TrainerCalibration, compute_loss_func

CLASSES, WORDS, LENGTH = 4, 64, 12


def documents(number: int, seed: int) -> list[dict[str, torch.Tensor]]:
    """Words of the class's own part of the vocabulary, and as many of any part."""
    generator = torch.Generator().manual_seed(seed)
    labels = torch.randint(CLASSES, (number,), generator=generator)
    words = torch.randint(WORDS, (number, LENGTH), generator=generator)
    part = WORDS // CLASSES
    words[:, : LENGTH // 2] = words[:, : LENGTH // 2] % part + labels[:, None] * part
    return [{"input_ids": text, "labels": label} for text, label in zip(words, labels, strict=True)]


size = {"hidden_size": 32, "intermediate_size": 64, "num_hidden_layers": 1, "num_attention_heads": 2}
network = BertForSequenceClassification(BertConfig(vocab_size=WORDS, num_labels=CLASSES, **size))
loss = FocalCalibrationLoss(gamma=3, lam=1)
calibration = TrainerCalibration(loss)
with tempfile.TemporaryDirectory() as folder:
    trainer = Trainer(
        model=network,
        args=TrainingArguments(
            folder,
            num_train_epochs=3,
            per_device_train_batch_size=16,
            per_device_eval_batch_size=64,
            gradient_accumulation_steps=2,
            learning_rate=5e-3,
            eval_strategy="epoch",
            save_strategy="no",
            report_to="none",
            disable_tqdm=True,
            use_cpu=True,
        ),
        train_dataset=documents(192, seed=0),
        eval_dataset=documents(192, seed=1),
        compute_loss_func=compute_loss_func(loss),  # the mean over all accumulated items
        compute_metrics=calibration.compute_metrics,
        callbacks=[calibration],
    )
    trainer.train()
    measured = trainer.evaluate()
print(f"error {measured['eval_error']:.3f}, ECE {measured['eval_ece']:.3f}", end=" ")
print(f"[{measured['eval_ece_low']:.3f}, {measured['eval_ece_high']:.3f}], chance {measured['eval_ece_chance']:.3f}")
