"""Training: the loop, from a recipe, a data set, a loss and a seed to the last epoch's network."""

from __future__ import annotations

import copy
import json
import math
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor, nn

from focalcal.core.atomic import remove_unfinished, write_atomically
from focalcal.core.checks import whole
from focalcal.lab.data import DataSet
from focalcal.lab.models import EstimatorNetwork, is_estimator, model_builder
from focalcal.lab.training.averaging import move_average
from focalcal.lab.training.checkpoint import check_disk_space, load_checkpoint, run_identity, save_checkpoint
from focalcal.lab.training.determinism import deterministic, seed_epoch
from focalcal.lab.training.distributed import Processes, joined_processes
from focalcal.lab.training.epoch_log import EpochLog
from focalcal.lab.training.inputs import TrainingInputs, epoch_batches, steps_per_epoch
from focalcal.lab.training.kept_epochs import KeptEpoch, KeptEpochs
from focalcal.lab.training.network import build_network
from focalcal.lab.training.non_finite import NonFiniteLossError, check_logits, check_loss
from focalcal.lab.training.optimization import Plateau, build_optimizer, rate_share
from focalcal.lab.training.outputs import Outputs, RunningMetrics, finite_or_none, outputs
from focalcal.lab.training.precision import mixed_precision
from focalcal.lab.training.recipe import Recipe

if TYPE_CHECKING:
    from focalcal.posthoc import TemperatureScaling

OnEpoch = Callable[[dict[str, Any], int], None]
OnStep = Callable[[int, int], None]


@dataclass(frozen=True, eq=False)
class Fitted:
    """The network of the epoch that is kept, or its average, in evaluation mode; what `fit` returns.

    Args:
        model: the network.
        loss: as it ended.
        epochs: one record per epoch.
        seconds: that the training took.
        outputs: those of the validation and test examples by the network, as they are reported: none where ten
            crops are, or where every epoch had been trained by an earlier call and no rule could be followed.
        kept: by rule, "last", "nll", "error" and "refined", the epoch that it keeps, whichever of them the recipe
            names; empty without validation rows of one label.
        keep: the recipe's rule.

    >>> from dataclasses import replace
    >>> from focalcal import FocalCalibrationLoss
    >>> from focalcal.lab.data import load_data
    >>> from focalcal.lab.training import recipe
    >>> quick = replace(recipe("digits_mlp_lite"), epochs=2)
    >>> fitted = fit(quick, load_data("digits"), FocalCalibrationLoss(gamma=3, lam=1), seed=0)
    >>> len(fitted.epochs), sorted(fitted.outputs), fitted.calibrator.temperature < 1
    (2, ['test', 'val'], True)
    """

    model: nn.Module
    loss: nn.Module
    epochs: list[dict[str, Any]]
    seconds: float
    outputs: dict[str, Outputs]
    kept: dict[str, KeptEpoch]
    keep: str = "last"

    @property
    def calibrator(self) -> TemperatureScaling:
        """The temperature that the validation rows need after the epoch that is kept; 1 where they show none."""
        from focalcal.posthoc import TemperatureScaling

        if self.keep not in self.kept:
            raise ValueError("a calibrator must have validation rows of one label, got none; hold some out")
        temperature = self.kept[self.keep].scores.temperature
        return TemperatureScaling(temperature=1.0 if math.isnan(temperature) else temperature)


def fit(
    recipe: Recipe,
    data: DataSet,
    loss: nn.Module,
    *,
    seed: int,
    model: nn.Module | None = None,
    folder: Path | None = None,
    device: str | torch.device = "cpu",
    data_dir: Path | None = None,
    evaluate_every: int = 1,
    checkpoint_seconds: float = 30.0,
    on_epoch: OnEpoch | None = None,
    on_step: OnStep | None = None,
    tensorboard: Path | None = None,
) -> Fitted:
    """Train the recipe's network on `data` with `loss`.

    The numbers follow from recipe, data, loss, network and seed: equal to the bit on one machine, whatever ran
    before. A second call with the same `folder` goes on from what is there and ends with the same bits; a
    checkpoint of another recipe, data, loss, network or seed raises `CheckpointError`.

    An epoch's record: `epoch` from 1, `lr` of its last step, `seconds`, `train` {loss, nll, error} over its batches
    as the network was then, `val` and `test` {loss, nll, error, brier, ece, ...} every `evaluate_every` epochs and
    after the last, with one crop of an image where ten are reported, None where a number is not finite; with `test`
    also `bins`, the sums of its reliability diagram {count, confidence, correct}; with `val` of one label
    `refined`, its NLL after the best temperature (cross-fitted below 5,000 rows) and that, {nll, temperature};
    `gammas` and `edges` of a loss that is steered by validation data. A loss with a method `update(probs, labels)`,
    such as AdaFocal, gets the validation split's after each epoch.

    A loss that is not finite raises `NonFiniteLossError`, and folder/non_finite.json says where. A disk without
    room for two checkpoints raises OSError before any training. A recipe whose model is an estimator is fitted at
    once, in one epoch.

    Args:
        recipe: how it is trained.
        data: what it is trained on.
        loss: is copied, and must give one number per batch.
        seed: of the initial weights, the order, the augmentation and the drop-out.
        model: a copy of this network is trained instead of the one that the recipe names: any `nn.Module` from a
            batch of inputs to logits (N, classes), from the weights that it has.
        folder: what the run has reached is kept there: checkpoint.pt, at the end of an epoch and always of the
            last; epochs.jsonl.
        device: where the network computes.
        data_dir: the folder of the data sets, for initial weights; None: where FOCALCAL_DATA points.
        evaluate_every: epochs between evaluations.
        checkpoint_seconds: the least time between two checkpoints.
        on_epoch: is called as on_epoch(record, epochs) after each epoch. What it raises stops the run, to be
            resumed.
        on_step: likewise after each step, as on_step(steps done, steps in all).
        tensorboard: a folder for its logs.

    Returns:
        A `Fitted`: the network, its outputs and the records of its epochs.

    >>> from dataclasses import replace
    >>> from torch import nn
    >>> from focalcal.lab.data import load_data
    >>> from focalcal.lab.training import recipe
    >>> quick = replace(recipe("digits_mlp_lite"), epochs=2)
    >>> fitted = fit(quick, load_data("digits"), nn.CrossEntropyLoss(), seed=0)
    >>> fitted.epochs[-1]["test"]["error"] < fitted.epochs[0]["test"]["error"] < 0.9
    True
    """
    if model is None and is_estimator(model_builder(recipe.model)):
        return _fit_estimator(recipe, data, loss, seed=seed, folder=folder)
    processes = joined_processes(device)
    whole("evaluate_every", evaluate_every, 1)
    with deterministic(processes.device):
        run = _Run(recipe, data, loss, seed, processes, data_dir, model)
        if recipe.keep != "last" and evaluate_every >= recipe.epochs > 1:
            raise ValueError(
                f"evaluate_every must be below the {recipe.epochs} epochs that keep = {recipe.keep!r} is to choose "
                f"from, got {evaluate_every}; 1 evaluates each"
            )
        files = None if folder is None or not processes.first else Path(folder)
        records = run.restore(files)
        board = tensorboard if processes.first else None
        if files is not None and len(records) < recipe.epochs:
            networks = 1 + (recipe.averaging is not None) + (recipe.keep != "last")
            check_disk_space(files, run.network, recipe.optimizer, networks)
        log = EpochLog(None if files is None else files / "epochs.jsonl", board, records)
        saved = time.monotonic()
        try:
            for epoch in range(len(records) + 1, recipe.epochs + 1):
                last = epoch == recipe.epochs
                record = run.epoch(epoch, evaluated=last or epoch % evaluate_every == 0, on_step=on_step)
                records.append(record)
                log.add(record)
                if files is not None and (last or time.monotonic() - saved >= checkpoint_seconds):
                    run.save(files, records)
                    saved = time.monotonic()
                if on_epoch is not None and processes.first:
                    on_epoch(record, recipe.epochs)
        except NonFiniteLossError as error:
            if files is not None:
                write_atomically(files / "non_finite.json", json.dumps(error.record(), indent=2).encode())
            raise
        finally:
            log.close()
        if run.kept.weights is not None:
            run.evaluated.load_state_dict(run.kept.weights)
        processes.same_buffers(run.evaluated)
    seconds = sum(record["seconds"] for record in records)
    outputs = run.outputs if run.kept.chosen is None else run.kept.chosen.outputs
    reported = {} if recipe.evaluation == "ten_crop" else outputs
    return Fitted(run.evaluated.eval(), run.loss, records, seconds, reported, run.kept.by_rule, recipe.keep)


def _fit_estimator(recipe: Recipe, data: DataSet, loss: nn.Module, *, seed: int, folder: Path | None) -> Fitted:
    """Its optimiser and epochs have no effect; what it predicts is stored and judged as a network's."""
    began, device = time.perf_counter(), torch.device("cpu")
    estimator = build_network(recipe, data, seed=seed)
    assert isinstance(estimator, EstimatorNetwork)
    inputs = {split: TrainingInputs(rows, recipe, device) for split, rows in data.splits.items() if len(rows)}
    estimator.fit(inputs["train"].evaluation_batch(slice(None)), data.train.labels)
    made = {split: outputs(estimator, rows, Processes(device)) for split, rows in inputs.items()}
    record: dict[str, Any] = {"epoch": 1, "lr": 0.0, "seconds": time.perf_counter() - began}
    record |= {split: {"loss": result.loss(loss, device), **result.metrics()} for split, result in made.items()}
    record["train"] = {name: record["train"][name] for name in ("loss", "nll", "error")}
    record["bins"] = made["test"].bins()
    record = finite_or_none(record)
    log = EpochLog(None if folder is None else folder / "epochs.jsonl", None, [])
    log.add(record)
    log.close()
    kept = KeptEpochs("last")
    if "val" in made and (scores := made["val"].scores()) is not None:
        kept.see(1, scores, made, estimator)
    return Fitted(estimator.eval(), loss, [record], record["seconds"], made, kept.by_rule)


class _Run:
    """What is trained, with what, and how far it is."""

    def __init__(
        self,
        recipe: Recipe,
        data: DataSet,
        loss: nn.Module,
        seed: int,
        processes: Processes,
        data_dir: Path | None,
        model: nn.Module | None,
    ) -> None:
        self.recipe, self.seed, self.processes = recipe, seed, processes
        self.device = processes.device
        self.inputs = {
            split: TrainingInputs(examples, recipe, self.device)
            for split, examples in data.splits.items()
            if len(examples)
        }
        self.steps = steps_per_epoch(recipe, len(data.train))
        self.steered = callable(getattr(loss, "update", None))
        self._check(len(data.train))
        self.autocast, self.scaler = mixed_precision(recipe, self.device)
        self.identity = run_identity(recipe, data, loss, seed, model)
        self.loss = copy.deepcopy(loss).to(self.device)
        if model is None:
            network = build_network(recipe, data, seed=seed, data_dir=data_dir)
        else:
            network = copy.deepcopy(model).train()
        if processes.size > 1 and self.device.type == "cuda":
            network = nn.SyncBatchNorm.convert_sync_batchnorm(network)  # type: ignore[no-untyped-call]
        self.network = network.to(self.device)
        if self.device.type == "cpu":  # a step of a ResNet-8 takes two thirds of the time with channels last
            self.network.to(memory_format=torch.channels_last)  # type: ignore[call-overload]
        self.evaluated = self.network if recipe.averaging is None else copy.deepcopy(self.network)
        self.trained = processes.wrapped(self.network)
        self.optimizer = build_optimizer(recipe.optimizer, self.network)
        self.plateau = Plateau()
        self.outputs: dict[str, Outputs] = {}  # of the last epoch that was evaluated
        self.kept = KeptEpochs(recipe.keep)

    def _check(self, examples: int) -> None:
        """Refuse, before any training, what would fail after it has begun."""
        needs = [
            *(["a loss with validation feedback (update)"] if self.steered else []),
            *(["a schedule of kind 'plateau'"] if self.recipe.schedule.kind == "plateau" else []),
            *([f"keep = {self.recipe.keep!r}"] if self.recipe.keep != "last" else []),
        ]
        if needs and "val" not in self.inputs:
            raise ValueError(
                f"{' and '.join(needs)} must have a validation split, got none; load the data with one "
                "(data_options such as validation=5000), or choose another"
            )
        if self.recipe.keep != "last" and self.inputs["val"].labels.dim() == 2:
            raise ValueError(f"keep must be 'last' where examples have several labels, got {self.recipe.keep!r}")
        smallest = examples - (self.steps - 1) * self.recipe.batch_size
        if min(smallest, self.recipe.batch_size) < self.processes.size:
            raise ValueError(
                f"every batch must have an example for each of {self.processes.size} processes, got a last batch of "
                f"{smallest}; set drop_last, or start fewer processes"
            )

    def epoch(self, epoch: int, *, evaluated: bool, on_step: OnStep | None) -> dict[str, Any]:
        """Train for an epoch, evaluate, steer what the validation split steers; the epoch's record."""
        began = time.perf_counter()
        train, rate = self._train(epoch, on_step)
        record: dict[str, Any] = {"epoch": epoch, "lr": rate, "seconds": 0.0, "train": train}
        patience = self.recipe.schedule.patience
        by_split: dict[str, Outputs] = {}
        for split in ("val", "test"):
            steers = split == "val" and (self.steered or patience is not None)
            if split in self.inputs and (evaluated or steers):
                by_split[split] = outputs(self.evaluated, self.inputs[split], self.processes)
                check_logits(by_split[split].logits, self.inputs[split].ids, epoch=epoch, split=split)
                if evaluated:
                    record[split] = {"loss": by_split[split].loss(self.loss, self.device), **by_split[split].metrics()}
                if evaluated and split == "test" and (bins := by_split[split].bins()) is not None:
                    record["bins"] = bins
        self.outputs = by_split
        if evaluated and "val" in by_split and (scores := by_split["val"].scores()) is not None:
            record["refined"] = {"nll": scores.refined_nll, "temperature": scores.temperature}
            self.kept.see(epoch, scores, by_split, self.evaluated)
        # After both losses, which are to be those of the objective that the epoch was trained with.
        if patience is not None:
            self.plateau.see(by_split["val"].loss(self.loss, self.device), patience)
        if self.steered:
            val = by_split["val"]
            self.loss.update(val.probs.to(self.device), val.labels.to(self.device))  # type: ignore[operator]
            record |= {
                name: getattr(self.loss, name).tolist() for name in ("gammas", "edges") if hasattr(self.loss, name)
            }
        record["seconds"] = time.perf_counter() - began
        cleaned: dict[str, Any] = finite_or_none(record)
        return cleaned

    def _train(self, epoch: int, on_step: OnStep | None) -> tuple[dict[str, float], float]:
        """One pass over the training examples."""
        seed_epoch(self.seed, epoch, self.processes.rank, self.device)
        self.trained.train()
        inputs = self.inputs["train"]
        keys = inputs.keys(self.seed, epoch)
        running = RunningMetrics()
        for batch, rows in enumerate(epoch_batches(self.recipe, len(inputs), seed=self.seed, epoch=epoch), 1):
            done = (epoch - 1) * self.steps + batch
            rate = self._set_rate(done - 1)
            with self.autocast:
                own = self.trained(inputs.training_batch(rows[self.processes.share(len(rows))], keys))
            logits = self.processes.whole(own.float(), len(rows))
            labels = inputs.labels[rows].to(self.device)
            loss = self.loss(logits, labels)
            check_loss(loss.detach(), inputs.ids, rows, epoch=epoch, batch=batch)
            self._descend(loss)
            if self.recipe.averaging is not None:
                move_average(self.evaluated, self.network, share=self.recipe.averaging, steps=done)
            running.add(loss.detach(), logits.detach(), labels)
            if on_step is not None and self.processes.first:
                on_step(done, self.recipe.epochs * self.steps)
        return running.values(), rate

    def _set_rate(self, step: int) -> float:
        factor = self.recipe.schedule.factor or 1.0
        rate = self.recipe.optimizer.lr * rate_share(self.recipe, step, self.steps) * factor**self.plateau.lowered
        for group in self.optimizer.param_groups:
            group["lr"] = rate
        return rate

    def _descend(self, loss: Tensor) -> None:
        self.optimizer.zero_grad()
        # DDP averages the processes' gradients, and it is their sum that is wanted.
        torch.autograd.backward(self.scaler.scale(loss * self.processes.size if self.processes.size > 1 else loss))
        if self.recipe.gradient_clip is not None:
            self.scaler.unscale_(self.optimizer)
            nn.utils.clip_grad_norm_(self.network.parameters(), self.recipe.gradient_clip)
        self.scaler.step(self.optimizer)
        self.scaler.update()

    def save(self, folder: Path, records: list[dict[str, Any]]) -> None:
        """What `restore` needs; the random streams follow from the seed."""
        state = {
            "model": self.network.state_dict(),
            **({} if self.evaluated is self.network else {"average": self.evaluated.state_dict()}),
            "optimizer": self.optimizer.state_dict(),
            "scaler": self.scaler.state_dict(),
            "plateau": asdict(self.plateau),
            "loss": self.loss.state_dict(),
            "records": json.dumps(records),
            "kept": self.kept.state(),
        }
        save_checkpoint(folder / "checkpoint.pt", state, self.identity)

    def restore(self, folder: Path | None) -> list[dict[str, Any]]:
        """Go on from the folder's checkpoint, if there is one; the records of the epochs that are done."""
        state = None
        if folder is not None:
            folder.mkdir(parents=True, exist_ok=True)
            remove_unfinished(folder)
            state = load_checkpoint(folder / "checkpoint.pt", self.identity)
            (folder / "non_finite.json").unlink(missing_ok=True)  # of an earlier attempt
        state = self.processes.from_first(state)
        if state is None:
            return []
        self.network.load_state_dict(state["model"])
        if self.evaluated is not self.network:
            self.evaluated.load_state_dict(state["average"])
        self.optimizer.load_state_dict(state["optimizer"])
        self.scaler.load_state_dict(state["scaler"])
        self.plateau = Plateau(**state["plateau"])
        self.loss.load_state_dict(state["loss"])
        self.kept.restore(state["kept"], {split: inputs.labels for split, inputs in self.inputs.items()})
        records: list[dict[str, Any]] = json.loads(state["records"])
        return records
