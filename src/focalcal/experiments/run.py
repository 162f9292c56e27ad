"""One run: from a spec to a stored result."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import nn

from focalcal.core.atomic import atomic_file
from focalcal.data import DataSet, load_data
from focalcal.experiments.cells import loss_of, recipe_of
from focalcal.experiments.conditions import fixed_conditions
from focalcal.experiments.events import Progress
from focalcal.experiments.metrics import Record, shift_metrics, split_metrics
from focalcal.experiments.provenance import data_provenance, machine, now, software
from focalcal.experiments.saliency import check_has_maps, grad_cam, save_saliency
from focalcal.experiments.shifts import Shift, shifts
from focalcal.experiments.subsets import seen_by_run
from focalcal.models import MODEL_INFO
from focalcal.predictions import Predictions
from focalcal.results import Run, Spec, Store
from focalcal.training import NonFiniteLossError, Recipe, fit, predict
from focalcal.training.inputs import Inputs

WEIGHTS, SALIENCY = "weights.pt", "saliency.npz"
Report = Callable[[Progress], None]


def run_spec(
    spec: Spec,
    store: Store,
    *,
    data_dir: Path | None = None,
    device: str = "cpu",
    threads: int = 1,
    report: Report | None = None,
    tensorboard: Path | None = None,
    checkpoint_seconds: float = 30.0,
) -> Run:
    """Train, predict, measure and store what `spec` says; what the store has already is returned as it is.

    The numbers follow from the spec, the kind of machine and `threads`: not from global random states, nor from what
    ran before, nor from how often the run was interrupted. A run that was killed goes on from its last checkpoint in
    the store's workspace. Two processes with the same spec take turns, and the second finds the run stored.

    A loss that is not finite is recorded in the store and raised. Data that are missing or do not fit raise before
    any training.

    data_dir            where data sets lie; by default what FOCALCAL_DATA names
    report              is told how far the run is, in epochs, one more for what comes after the training; what it
                        raises, KeyboardInterrupt say, ends the run, to be resumed later
    tensorboard         a folder for the logs of any number of runs, each in one of its own
    checkpoint_seconds  the least time between two checkpoints
    """
    with store.claim(spec):
        return run_claimed(
            spec,
            store,
            data_dir=data_dir,
            device=device,
            threads=threads,
            report=report,
            tensorboard=tensorboard,
            checkpoint_seconds=checkpoint_seconds,
        )


def run_claimed(
    spec: Spec,
    store: Store,
    *,
    data_dir: Path | None = None,
    device: str = "cpu",
    threads: int = 1,
    report: Report | None = None,
    tensorboard: Path | None = None,
    checkpoint_seconds: float = 30.0,
) -> Run:
    """`run_spec` for a caller that holds the store's claim to the spec, which cannot be had twice."""
    tell = _Teller(spec.key, recipe_of(spec).epochs + 1, report)
    if store.has(spec):
        tell.end("already stored")
        return store.run(spec.key)
    store.check_writable()
    try:
        with fixed_conditions(threads):
            run = _Making(spec, store, data_dir, device, tell).stored(
                machine(device, threads), tensorboard=tensorboard, checkpoint_seconds=checkpoint_seconds
            )
    except NonFiniteLossError as error:
        store.record_failure(spec, kind="non-finite loss", message=str(error), details=error.record())
        raise
    tell.end("stored")
    return run


class _Teller:
    """Says how far a run is."""

    def __init__(self, key: str, of: int, report: Report | None) -> None:
        self._key, self._of, self._report = key, of, report

    def __call__(self, done: float, note: str) -> None:
        if self._report is not None:
            self._report(Progress(self._key, done, float(self._of), note))

    def step(self, done: int, of: int) -> None:
        """So many training steps."""
        epochs = self._of - 1
        reached = epochs * done / of
        self(reached, f"epoch {min(int(reached) + 1, epochs)} of {epochs}")

    def predicted(self, done: int, of: int, split: str) -> None:
        """So many splits, with one piece of work left for the storing."""
        self(self._of - 1 + done / (of + 1), f"predicted {split}")

    def end(self, note: str) -> None:
        """Everything."""
        self(float(self._of), note)


class _Making:
    """The parts of one run, in the order in which they are made; everything that can be refused is refused first."""

    def __init__(self, spec: Spec, store: Store, data_dir: Path | None, device: str, tell: _Teller) -> None:
        self.spec, self.store, self.data_dir, self.device, self.tell = spec, store, data_dir, device, tell
        self.started = now()
        self.recipe = recipe_of(spec)
        if spec.protocol.saliency:
            check_has_maps(spec.model)
        self.data = _data(spec, self.recipe, data_dir)
        self.shifts = shifts(self.data, spec.protocol, data_dir)
        self.workspace = store.workspace(spec)

    def stored(self, machine: dict[str, Any], *, tensorboard: Path | None, checkpoint_seconds: float) -> Run:
        """Train, and add the run to the store."""
        fitted = fit(
            self.recipe,
            self.data,
            loss_of(self.spec),
            seed=self.spec.seed,
            folder=self.workspace,
            device=self.device,
            data_dir=self.data_dir,
            evaluate_every=self.spec.protocol.evaluate_every,
            checkpoint_seconds=checkpoint_seconds,
            on_step=self.tell.step,
            tensorboard=None if tensorboard is None else tensorboard / self.spec.key,
        )
        predictions, metrics, sources = self.evaluated(fitted.model)
        provenance = {
            "software": software(),
            "machine": machine,
            "data": data_provenance(self.data),
            "shifts": sources,
            "started": self.started,
            "finished": now(),
        }
        return self.store.add(
            self.spec,
            record={
                "metrics": metrics,
                "provenance": provenance,
                "seconds": fitted.seconds,
                "epochs": len(fitted.epochs),
            },
            epochs=self.workspace / "epochs.jsonl",
            predictions=predictions,
            files=self.files(fitted.model),
        )

    def evaluated(self, model: nn.Module) -> tuple[list[Predictions], dict[str, Record], dict[str, Any]]:
        """Of each split and shift: the predictions and the metrics; and where the shifts come from."""
        classes = self.data.classes
        splits = {split: examples for split, examples in self.data.splits.items() if len(examples)}
        found: dict[str, Predictions] = {}
        metrics: dict[str, Record] = {}
        sources: dict[str, Any] = {}
        pieces = len(splits) + len(self.shifts)
        about = {"run": self.spec.key, "name": self.spec.name, "data_set": self.data.name}
        for split, examples in splits.items():
            found[split] = predict(
                model, examples, self.recipe, split=split, device=self.device, provenance={**about, "split": split}
            )
            metrics[split] = split_metrics(found[split], classes)
            self.tell.predicted(len(found), pieces, split)
        for shift in self.shifts:
            examples, sources[shift.split] = shift.load()
            found[shift.split] = predict(
                model,
                examples,
                self.recipe,
                split=shift.split,
                device=self.device,
                provenance={**about, "shift": sources[shift.split]},
            )
            metrics[shift.split] = _of_shift(shift, found[shift.split], found["test"], classes)
            self.tell.predicted(len(found), pieces, shift.split)
        return list(found.values()), metrics, sources

    def files(self, model: nn.Module) -> dict[str, Path]:
        """The weights and saliency maps that the protocol asks for, in the workspace until they are stored."""
        made: dict[str, Path] = {}
        if self.spec.protocol.keep_weights:
            made[WEIGHTS] = self.workspace / WEIGHTS
            with atomic_file(made[WEIGHTS]) as handle:
                torch.save({name: value.cpu() for name, value in model.state_dict().items()}, handle)
        if self.spec.protocol.saliency:
            made[SALIENCY] = self.workspace / SALIENCY
            self._save_saliency(model, made[SALIENCY])
        return made

    def _save_saliency(self, model: nn.Module, path: Path) -> None:
        info = MODEL_INFO[self.spec.model]
        assert info.feature_layer is not None
        assert info.feature_layout is not None
        test = self.data.test
        shown = test.take(np.arange(min(len(test), self.spec.protocol.saliency)))
        inputs = Inputs(shown, self.recipe, torch.device(self.device))
        batch = inputs.evaluation_batch(slice(0, len(shown)))
        if inputs.crops > 1:
            batch = batch[_CENTRE :: inputs.crops]
        save_saliency(path, grad_cam(model, batch, layer=info.feature_layer, layout=info.feature_layout), shown)


_CENTRE = 4  # of the ten crops: four corners, then this one


def _data(spec: Spec, recipe: Recipe, data_dir: Path | None) -> DataSet:
    loaded = load_data(
        recipe.data_set, data_dir, allow_partial=spec.protocol.allow_partial, **dict(recipe.data_options)
    )
    return seen_by_run(loaded, spec.protocol)


def _of_shift(shift: Shift, shifted: Predictions, clean: Predictions, classes: Sequence[str]) -> Record:
    told_apart = shift_metrics(shifted, clean)
    return {**split_metrics(shifted, classes), **told_apart} if shift.same_classes else told_apart
