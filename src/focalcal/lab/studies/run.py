"""One run: from a spec to a stored result."""

from __future__ import annotations

import time
from collections.abc import Mapping
from contextlib import nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import nn

from focalcal.core.atomic import atomic_file
from focalcal.lab.data import DataSet
from focalcal.lab.models import EstimatorNetwork
from focalcal.lab.store import Evaluations, Run, Spec, Store
from focalcal.lab.store.layout import epoch_file, now
from focalcal.lab.store.spec import NOTHING_MORE
from focalcal.lab.studies.evaluate import WEIGHTS, add_missing
from focalcal.lab.studies.events import Report, RunProgress
from focalcal.lab.studies.measurement import EvaluationTask, Trained, evaluation_tasks, make_evaluation
from focalcal.lab.studies.own_data import FINGERPRINT
from focalcal.lab.studies.provenance import earlier_attempts, machine, software
from focalcal.lab.studies.spec_builder import check_sources, loss_of, recipe_of
from focalcal.lab.studies.subsets import load_run_data, with_statistics
from focalcal.lab.training import Fitted, NonFiniteLossError, Recipe, check_start, fit
from focalcal.lab.training.determinism import fixed_conditions
from focalcal.lab.training.distributed import Processes, joined_processes
from focalcal.lab.training.outputs import predictions_of

_SMALL_WEIGHTS = 50_000_000  # bytes that are kept unless somebody says otherwise


def run_spec(
    spec: Spec,
    store: Store,
    *,
    evaluations: Evaluations = NOTHING_MORE,
    data_dir: Path | None = None,
    device: str = "cpu",
    threads: int = 1,
    report: Report | None = None,
    tensorboard: Path | None = None,
    checkpoint_seconds: float = 30.0,
) -> Run:
    """Train, predict, measure and store what `spec` says; what the store has already is returned as it is.

    The numbers follow from the spec, the kind of machine and `threads`: not from global random states, nor from
    what ran before, nor from how often the run was interrupted. A run that was killed goes on from its last
    checkpoint in the store's workspace. Two processes with the same spec take turns, and the second finds the run
    stored; those that `torchrun` starts work on it together, the first of them storing.

    A loss that is not finite is recorded in the store and raised. Data and weights that are missing or do not fit
    raise before any training.

    Args:
        evaluations: of the trained network besides, and whether its weights are kept. Of a run that is stored
            without some of them these are added, from its weights: see `evaluate_run`.
        data_dir: the folder of the data sets; by default what FOCALCAL_DATA names.
        report: is told how far the run is, in epochs, one more for what comes after the training; what it raises,
            KeyboardInterrupt say, ends the run, to be resumed later.
        tensorboard: a folder for the logs of any number of runs, each in one of its own.
        checkpoint_seconds: the least time between two checkpoints.
        spec: the run.
        store: where it is stored.
        device: where the network computes.
        threads: how many torch may use.

    Returns:
        The run, read from the store.

    >>> from dataclasses import replace
    >>> from tempfile import TemporaryDirectory
    >>> from focalcal.lab.store import Store
    >>> from focalcal.lab.studies import spec_of
    >>> from focalcal.lab.training import recipe
    >>> quick = replace(recipe("digits_mlp_lite"), epochs=1)

    >>> with TemporaryDirectory() as folder:
    ...     run = run_spec(spec_of(quick, "ce", seed=0), Store(folder))
    ...     print(run.spec.name, run.splits, run.metrics("test")["error"] < 0.9)
    digits/mlp ce seed 0 ('train', 'val', 'test') True
    """
    processes = joined_processes(device)
    progress = RunProgress(spec.key, spec.training["epochs"], report if processes.first else None)
    with store.claim(spec) if processes.first else nullcontext():
        if processes.from_first(store.has(spec)):
            if processes.first:
                add_missing(
                    store.run(spec.key),
                    store,
                    evaluations,
                    data_dir=data_dir,
                    device=device,
                    threads=threads,
                    progress=progress,
                )
            processes.from_first(None)
            progress.end("already stored")
            return store.run(spec.key)
        store.check_writable()
        with fixed_conditions(threads):
            work = _prepare(spec, store, evaluations, data_dir, processes, threads)
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
    """What a run needs, complete before it trains; `began` is when that was, on the clock of `perf_counter`."""

    spec: Spec
    recipe: Recipe
    data: DataSet
    tasks: list[EvaluationTask]
    keep_weights: bool | None
    folder: Path
    device: torch.device
    provenance: dict[str, Any]
    began: float


def _prepare(
    spec: Spec, store: Store, evaluations: Evaluations, data_dir: Path | None, processes: Processes, threads: int
) -> _Work:
    """Load the data; whatever can be refused is refused here, and what needs no data before they are decoded."""
    began, started = time.perf_counter(), now()
    check_sources(spec)
    recipe, protocol = recipe_of(spec), spec.protocol
    check_start(recipe, data_dir)
    data = load_run_data(recipe, protocol, data_dir, spec.training.get(FINGERPRINT))
    recipe = with_statistics(recipe, data)
    tasks = evaluation_tasks(evaluations, evaluations.names, recipe, data, protocol, data_dir)
    store.check_writable(_bytes_of_predictions(data, sum(len(task.shifts) for task in tasks)))
    folder = store.workspace(spec)
    attempt = {
        "software": software(),
        "machine": {**machine(processes.device, threads), "processes": processes.size},
        "started": started,
    }
    earlier = earlier_attempts(folder, attempt) if processes.first else []
    return _Work(
        spec=spec,
        recipe=recipe,
        data=data,
        tasks=tasks,
        keep_weights=evaluations.keep_weights,
        folder=folder,
        device=processes.device,
        provenance={**attempt, "data": dict(data.provenance), "earlier_attempts": earlier},
        began=began,
    )


def _bytes_of_predictions(data: DataSet, shifts: int) -> int:
    """About: float32 scores, labels and ids of every split; a shift is as large as the test split."""
    sizes = {
        split: len(examples) * 4 * len(data.classes) + examples.labels.nbytes + examples.ids.nbytes
        for split, examples in data.splits.items()
    }
    return sum(sizes.values()) + shifts * sizes["test"] + 3 * (sizes["val"] + sizes["test"])  # of other rules' epochs


def _store(work: _Work, fitted: Fitted, store: Store, progress: RunProgress) -> None:
    """Evaluate the trained network, and add the run to the store."""
    about = {"run": work.spec.key, "name": work.spec.name, "data_set": work.data.name}
    trained = Trained(fitted.model, work.recipe, work.data, work.device, about, fitted.outputs)
    pieces = sum(len(examples) > 0 for examples in work.data.splits.values())
    on_split = progress.count_splits(pieces + sum(task.pieces for task in work.tasks))
    predictions, metrics = trained.measure_splits(on_split)
    elapsed = time.perf_counter() - work.began  # the evaluations are timed by themselves
    origin = {name: work.provenance[name] for name in ("software", "machine")}
    evaluations = [make_evaluation(task, trained, predictions["test"], origin, on_split) for task in work.tasks]
    size = sum(tensor.nbytes for tensor in fitted.model.state_dict().values())
    keeps = size <= _SMALL_WEIGHTS if work.keep_weights is None else work.keep_weights
    files = _save_weights(work.folder, fitted.model) if keeps else {}
    record = {
        "metrics": metrics,
        "provenance": {**work.provenance, "finished": now(), "elapsed": elapsed},
        "seconds": fitted.seconds,
        "epochs": len(fitted.epochs),
        "kept": {rule: kept.record() for rule, kept in fitted.kept.items()},
    }
    store.add(
        work.spec,
        record=record,
        epochs=work.folder / "epochs.jsonl",
        predictions=predictions.values(),
        files=files | _save_other_epochs(work, fitted, about),
        evaluations=evaluations,
    )


def _save_other_epochs(work: _Work, fitted: Fitted, about: Mapping[str, Any]) -> dict[str, Path]:
    """Predictions of val and test after the epochs that the run does not keep and other rules would: `Run.kept`."""
    files: dict[str, Path] = {}
    for kept in {kept.epoch: kept for kept in fitted.kept.values()}.values():
        if kept.epoch == fitted.kept[fitted.keep].epoch or work.recipe.evaluation == "ten_crop":  # seen by one crop
            continue
        for split, outputs in kept.outputs.items():
            origin = {**about, "epoch": kept.epoch}
            path = work.folder / epoch_file(kept.epoch, split)
            predictions_of(outputs, work.data.splits[split], split=split, provenance=origin).save(path)
            files[path.name] = path
    return files


def _save_weights(folder: Path, model: nn.Module) -> dict[str, Path]:
    """The final weights, in the workspace until they are stored; an estimator has none."""
    if isinstance(model, EstimatorNetwork):
        return {}
    with atomic_file(folder / WEIGHTS) as handle:
        torch.save({name: value.cpu() for name, value in model.state_dict().items()}, handle)
    return {WEIGHTS: folder / WEIGHTS}
