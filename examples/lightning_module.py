"""AdaFocal in a Lightning `Trainer`: the callback updates the loss from the validation loop and stores predictions.

The module also shows a metric of the package as a torchmetrics object. Takes a few seconds.
"""

import tempfile
from pathlib import Path

import lightning
import torch
from sklearn.datasets import load_digits
from torch import nn
from torch.utils.data import DataLoader, TensorDataset, random_split

from focalcal import AdaFocalLoss, Predictions
from focalcal.integrations.lightning import LightningCalibration
from focalcal.integrations.torchmetrics import ECE


class Classifier(lightning.LightningModule):
    def __init__(self):
        super().__init__()
        self.network = nn.Sequential(nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 10))
        self.loss = AdaFocalLoss()
        self.val_ece = ECE(num_classes=10)

    def training_step(self, batch, _):
        images, labels = batch
        return self.loss(self.network(images), labels)

    def validation_step(self, batch, _):
        images, labels = batch
        logits = self.network(images)
        self.val_ece.update(logits.softmax(1), labels)
        self.log("val_ece_torchmetrics", self.val_ece)
        return {"logits": logits, "labels": labels}  # what the callback collects

    def configure_optimizers(self):
        return torch.optim.Adam(self.parameters(), lr=1e-2)


digits = load_digits()
rows = TensorDataset(torch.tensor(digits.data / 16).float(), torch.tensor(digits.target))
train, val = random_split(rows, [1400, 397], torch.Generator().manual_seed(0))
module = Classifier()
with tempfile.TemporaryDirectory() as folder:
    path = Path(folder) / "val.npz"
    trainer = lightning.Trainer(
        max_epochs=3, logger=False, enable_checkpointing=False, enable_progress_bar=False,
        enable_model_summary=False, accelerator="cpu", callbacks=[LightningCalibration(module.loss, path=path)],
    )  # fmt: skip
    trainer.fit(module, DataLoader(train, 64, shuffle=True), DataLoader(val, 64))
    print(Predictions.load(path))
print(f"ECE {trainer.callback_metrics['val_ece']:.4f}, gammas {module.loss.gammas.min():.2f}", end=" ")
print(f"to {module.loss.gammas.max():.2f}")
