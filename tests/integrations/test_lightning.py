"""The Lightning callback: what it logs, writes and updates, on one process and on several."""

from functools import partial

import lightning
import pytest
import torch
import torch.distributed as dist
from support import forked
from torch.utils.data import DataLoader, TensorDataset

from focalcal import AdaFocalLoss, EarlyStopping, Predictions
from focalcal.integrations.lightning import LightningCalibration, of_all_ranks
from focalcal.metrics import ece
from focalcal.posthoc import epoch_scores

pytestmark = [pytest.mark.once, pytest.mark.filterwarnings("ignore")]


class Classifier(lightning.LightningModule):
    def __init__(self, loss, key="logits"):
        super().__init__()
        self.network, self.loss, self.key = torch.nn.Linear(4, 3), loss, key

    def training_step(self, batch, _):
        return self.loss(self.network(batch[0]), batch[1])

    def validation_step(self, batch, _):
        return {self.key: self.network(batch[0]), "labels": batch[1]}

    def configure_optimizers(self):
        return torch.optim.SGD(self.parameters(), lr=0.1)


def trainer(callback, epochs=2):
    quiet = {
        "logger": False,
        "enable_checkpointing": False,
        "enable_progress_bar": False,
        "enable_model_summary": False,
    }
    return lightning.Trainer(max_epochs=epochs, accelerator="cpu", callbacks=[callback], **quiet)


def rows(number):
    return DataLoader(TensorDataset(torch.randn(number, 4), torch.randint(3, (number,))), 8)


def test_metrics_predictions_and_adafocal(tmp_path):
    loss = AdaFocalLoss(bins=3)
    module, callback = Classifier(loss), LightningCalibration(loss, path=tmp_path / "val.npz", resamples=20)
    running, val = trainer(callback), rows(37)
    running.fit(module, rows(40), val)
    assert (loss.gammas != 1).any()
    stored = Predictions.load(tmp_path / "val.npz")
    with torch.no_grad():
        torch.testing.assert_close(torch.from_numpy(stored.logits), module.network(val.dataset.tensors[0]))
    assert stored.labels.tolist() == val.dataset.tensors[1].tolist()
    logged = running.callback_metrics
    assert float(logged["val_ece"]) == pytest.approx(ece(stored.probs, stored.labels), abs=1e-6)
    assert logged["val_ece_low"] <= logged["val_ece"] <= logged["val_ece_high"]
    after = loss.gammas.clone()
    running.validate(module, val, verbose=False)
    torch.testing.assert_close(loss.gammas, after, rtol=0, atol=0)


def test_a_validation_step_without_logits_is_refused():
    with pytest.raises(ValueError, match=r"a mapping with 'logits' and 'labels', got \['labels', 'scores'\]"):
        trainer(LightningCalibration()).fit(Classifier(AdaFocalLoss(), key="scores"), rows(8), rows(8))


def gather(rank, world, folder):
    dist.init_process_group("gloo", init_method=f"file://{folder}/meeting", rank=rank, world_size=world)
    logits, labels = of_all_ranks(torch.full((rank + 1, 2), float(rank)), torch.full((rank + 1,), rank))
    torch.save((logits, labels), f"{folder}/{rank}.pt")
    dist.destroy_process_group()


def test_rows_of_all_ranks_however_many_each_has(tmp_path):
    processes = [forked.started(partial(gather, rank, 2, str(tmp_path))) for rank in range(2)]
    assert [forked.ended(process) for process in processes] == [0, 0]
    for rank in range(2):
        logits, labels = torch.load(tmp_path / f"{rank}.pt", weights_only=True)
        assert labels.tolist() == [0, 1, 1]
        assert logits[:, 0].tolist() == [0.0, 1.0, 1.0]


def test_the_best_epoch_is_kept_and_ends_the_fit(tmp_path):
    stopping = EarlyStopping(patience=2)
    module, callback = Classifier(torch.nn.CrossEntropyLoss()), LightningCalibration(stopping=stopping, resamples=20)
    running, val = trainer(callback, epochs=50), rows(37)
    running.fit(module, rows(40), val)
    epochs = [scores.refined_nll for scores in stopping.history]
    assert len(epochs) == stopping.best_epoch + 2 < 50
    assert stopping.best.refined_nll == min(epochs)
    inputs, labels = val.dataset.tensors
    with torch.no_grad():
        again = epoch_scores(module.network(inputs), labels)
    assert again.refined_nll == pytest.approx(min(epochs), rel=1e-6)
    assert float(running.callback_metrics["val_refined_nll"]) == pytest.approx(epochs[-1], rel=1e-6)
    running.validate(module, val, verbose=False)
    assert len(stopping.history) == len(epochs)
