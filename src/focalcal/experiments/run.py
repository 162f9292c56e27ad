"""One run: from a spec to a stored result."""

from __future__ import annotations

from contextlib import nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import nn

from focalcal.core.atomic import atomic_file
from focalcal.data import DataSet, load_data
from focalcal.experiments.cells import loss_of, recipe_of
from focalcal.experiments.conditions import fixed_conditions
from focalcal.experiments.evaluation import evaluated
from focalcal.experiments.progress import Report, RunProgress
from focalcal.experiments.provenance import earlier_attempts, machine, now, software
from focalcal.experiments.saliency import check_has_maps, save_test_saliency
from focalcal.experiments.shifts import Shift, shifts
from focalcal.experiments.subsets import seen_by_run
from focalcal.results import Run, Spec, Store
from focalcal.training import Fitted, NonFiniteLossError, Recipe, fit
from focalcal.training.distributed import Processes, joined_processes

WEIGHTS, SALIENCY = "weights.pt", "saliency.npz"


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
    the store's workspace. Two processes with the same spec take turns, and the second finds the run stored; those
    that `torchrun` starts work on it together, the first of them storing.

    A loss that is not finite is recorded in the store and raised. Data that are missing or do not fit raise before
    any training.

    data_dir            where data sets lie; by default what FOCALCAL_DATA names
    report              is told how far the run is, in epochs, one more for what comes after the training; what it
                        raises, KeyboardInterrupt say, ends the run, to be resumed later
    tensorboard         a folder for the logs of any number of runs, each in one of its own
    checkpoint_seconds  the least time between two checkpoints
    """
    processes = joined_processes(device)
    progress = RunProgress(spec.key, recipe_of(spec).epochs, report if processes.first else None)
    with store.claim(spec) if processes.first else nullcontext():
        if processes.from_first(store.has(spec)):
            progress.end("already stored")
            return store.run(spec.key)
        store.check_writable()
        with fixed_conditions(threads):
            work = _prepared(spec, store, data_dir, processes, threads)
            try:
                fitted = fit(
                    work.recipe,
                    work.data,
                    loss_of(spec),
                    seed=spec.seed,
                    folder=work.folder,
                    device=device,
                    data_dir=data_dir,
                    evaluate_every=spec.protocol.evaluate_every,
                    checkpoint_seconds=checkpoint_seconds,
                    on_step=progress.step,
                    tensorboard=None if tensorboard is None else tensorboard / spec.key,
                )
            except NonFiniteLossError as error:
                if processes.first:
                    store.record_failure(spec, kind="non-finite loss", message=str(error), details=error.record())
                raise
            if processes.first:
                _store(work, fitted, store, progress)
        processes.from_first(None)  # the others wait until the run is there
        progress.end("stored")
        return store.run(spec.key)


@dataclass(frozen=True, eq=False)
class _Work:
    """What a run needs, complete before it trains."""

    spec: Spec
    recipe: Recipe
    data: DataSet
    shifts: list[Shift]
    folder: Path
    device: torch.device
    provenance: dict[str, Any]


def _prepared(spec: Spec, store: Store, data_dir: Path | None, processes: Processes, threads: int) -> _Work:
    """Load the data; whatever can be refused is refused here."""
    started, recipe, protocol = now(), recipe_of(spec), spec.protocol
    if protocol.saliency:
        check_has_maps(spec.model)
    options = dict(recipe.data_options)
    loaded = load_data(recipe.data_set, data_dir, allow_partial=protocol.allow_partial, **options)
    data = seen_by_run(loaded, protocol)
    shifted = shifts(data, protocol, data_dir)
    store.check_writable(_bytes_of_predictions(data, len(shifted)))
    folder = store.workspace(spec)
    attempt = {
        "software": software(),
        "machine": {**machine(processes.device, threads), "processes": processes.size},
        "started": started,
    }
    earlier = earlier_attempts(folder, attempt) if processes.first else []
    provenance = {**attempt, "data": dict(data.provenance), "earlier_attempts": earlier}
    return _Work(
        spec=spec,
        recipe=recipe,
        data=data,
        shifts=shifted,
        folder=folder,
        device=processes.device,
        provenance=provenance,
    )


def _bytes_of_predictions(data: DataSet, shifts: int) -> int:
    """About: float32 scores, labels and ids of every split; a shift is as large as the test split."""
    sizes = {
        split: len(one) * 4 * len(data.classes) + one.labels.nbytes + one.ids.nbytes
        for split, one in data.splits.items()
    }
    return sum(sizes.values()) + shifts * sizes["test"]


def _store(work: _Work, fitted: Fitted, store: Store, progress: RunProgress) -> None:
    """Evaluate the trained network, and add the run to the store."""
    about = {"run": work.spec.key, "name": work.spec.name, "data_set": work.data.name}
    found = evaluated(
        fitted.model,
        work.recipe,
        work.data,
        work.shifts,
        device=work.device,
        about=about,
        on_split=progress.predicted,
    )
    files = _files(work, fitted.model)
    record = {
        "metrics": found.metrics,
        "provenance": {**work.provenance, "shifts": found.sources, "finished": now()},
        "seconds": fitted.seconds,
        "epochs": len(fitted.epochs),
    }
    epochs = work.folder / "epochs.jsonl"
    store.add(work.spec, record=record, epochs=epochs, predictions=found.predictions.values(), files=files)


def _files(work: _Work, model: nn.Module) -> dict[str, Path]:
    """The weights and saliency maps that the protocol asks for, in the workspace until they are stored."""
    made: dict[str, Path] = {}
    if work.spec.protocol.keep_weights:
        made[WEIGHTS] = work.folder / WEIGHTS
        with atomic_file(made[WEIGHTS]) as handle:
            torch.save({name: value.cpu() for name, value in model.state_dict().items()}, handle)
    if work.spec.protocol.saliency:
        made[SALIENCY] = work.folder / SALIENCY
        save_test_saliency(
            made[SALIENCY], model, work.recipe, work.data, count=work.spec.protocol.saliency, device=work.device
        )
    return made
