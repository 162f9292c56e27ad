"""Evaluations of runs that are stored: computed from their weights, without training them again."""

from __future__ import annotations

import zipfile
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch

from focalcal.lab.data import DataSet, Examples
from focalcal.lab.store import Evaluations, Run, RunProblem, Store
from focalcal.lab.store.run_folder import sha256
from focalcal.lab.store.spec import NOTHING_MORE
from focalcal.lab.studies.events import Report, RunProgress
from focalcal.lab.studies.measurement import EvaluationTask, Trained, evaluation_tasks, make_evaluation
from focalcal.lab.studies.own_data import FINGERPRINT
from focalcal.lab.studies.provenance import machine, software
from focalcal.lab.studies.shifts import SHIFTS, Shift
from focalcal.lab.studies.spec_builder import check_sources, recipe_of
from focalcal.lab.studies.subsets import load_run_data, with_statistics
from focalcal.lab.training import trained_network
from focalcal.lab.training.determinism import fixed_conditions

WEIGHTS = "weights.pt"


class NoWeightsError(ValueError):
    """A run that cannot be evaluated: its weights were not kept, or are those of a network that is not ours."""


@dataclass(frozen=True)
class Evaluated:
    """A run after its evaluation: the names of what was added, or why nothing could be."""

    run: Run
    added: tuple[str, ...] = ()
    refused: str | None = None

    def __str__(self) -> str:
        """One line."""
        if self.refused is not None:
            return f"focalcal: {self.refused}"
        added = f"added {', '.join(self.added)}" if self.added else "has these already"
        return f"{self.run.key[:12]}  {self.run.spec.name}: {added}"


def evaluate_run(
    run: Run,
    store: Store,
    evaluations: Evaluations = NOTHING_MORE,
    *,
    test_sets: Sequence[Path] = (),
    data_dir: Path | None = None,
    device: str = "cpu",
    threads: int = 1,
    report: Report | None = None,
) -> Run:
    """Add to a stored run what it lacks of these evaluations; nothing that is stored changes, nothing is trained.

    `test_sets` are .npz files with the arrays `inputs`, as the run's data set has them, `labels`, which are its
    classes, and perhaps `ids`; each becomes a split, and an evaluation, of the file's name. Each evaluation is stored
    when it is there, whole. A run without weights, or one that was trained elsewhere, raises `NoWeightsError`; one that
    has everything needs none.
    """
    progress = RunProgress(run.key, 0, report)
    with store.claim(run.spec):
        return add_missing(
            run,
            store,
            evaluations,
            test_sets=test_sets,
            data_dir=data_dir,
            device=device,
            threads=threads,
            progress=progress,
        )


def evaluate_runs(
    runs: Iterable[Run], store: Store, evaluations: Evaluations = NOTHING_MORE, **options: Any
) -> list[Evaluated]:
    """`evaluate_run` of each. One that cannot be evaluated says why in `refused`, and the others go on."""
    evaluated = []
    for run in runs:
        try:
            after = evaluate_run(run, store, evaluations, **options)
        except (NoWeightsError, RunProblem) as error:
            evaluated.append(Evaluated(run, refused=str(error)))
        else:
            evaluated.append(Evaluated(after, tuple(name for name in after.evaluations if name not in run.evaluations)))
    return evaluated


def add_missing(
    run: Run,
    store: Store,
    evaluations: Evaluations,
    *,
    test_sets: Sequence[Path] = (),
    data_dir: Path | None,
    device: str,
    threads: int,
    progress: RunProgress,
) -> Run:
    """`evaluate_run`, for whoever holds the run's claim."""
    run = store.run(run.key)  # another may have added some while this one waited
    names = evaluations.missing_from(run.evaluations)
    own = [path for path in map(Path, test_sets) if not _has_test_set(run, path)]
    if not names and not own:
        return run
    if run.trained_elsewhere:
        raise NoWeightsError(
            f"run {run.key[:12]} ({run.spec.name}) was trained elsewhere and recorded, so that its network cannot be "
            "built here; predict with it yourself, and add that by Store.add_evaluation"
        )
    if WEIGHTS not in run.files:
        raise NoWeightsError(no_weights_message(run.key, run.spec.name, (*names, *(path.stem for path in own))))
    check_sources(run.spec)
    store.check_writable()
    recipe, protocol, place = recipe_of(run.spec), run.spec.protocol, torch.device(device)
    with fixed_conditions(threads):
        data = load_run_data(recipe, protocol, data_dir, run.spec.training.get(FINGERPRINT))
        clean = run.predictions("test")
        _check_same(run, data)
        recipe = with_statistics(recipe, data)
        tasks = evaluation_tasks(evaluations, names, recipe, data, protocol, data_dir)
        tasks += [_test_set(path, data) for path in own]
        network = trained_network(recipe, run.file(WEIGHTS), data).to(place)
        about = {"run": run.key, "name": run.spec.name, "data_set": data.name}
        provenance = {"software": software(), "machine": machine(place, threads), "weights": sha256(run.file(WEIGHTS))}
        on_split = progress.count_splits(sum(task.pieces for task in tasks))
        for task in tasks:
            trained = Trained(network, recipe, data, place, about)
            store.add_evaluation(run.key, make_evaluation(task, trained, clean, provenance, on_split))
    progress.end("evaluated")
    return store.run(run.key)


def no_weights_message(key: str, name: str, evaluations: Iterable[str]) -> str:
    """Why the run cannot have these evaluations, and what to do."""
    return (
        f"run {key[:12]} ({name}) was stored without its weights, which {', '.join(evaluations)} would be "
        f"computed from; remove it with `focalcal runs rm {key[:12]}` and train it again, by the study that has "
        "this evaluation or with --keep-weights"
    )


def _check_same(run: Run, data: DataSet) -> None:
    """The test split is the one that the run was tested on, to the last bit of its images."""
    known = run.record["provenance"].get("data", {}).get("fingerprints", {}).get("test")
    if known is not None and known != data.provenance["fingerprints"]["test"]:
        raise ValueError(
            f"{data.name} must be what run {run.key[:12]} was tested on, got a test split with other examples; "
            "give the folder of the data that it was trained with (--data-dir)"
        )


def _has_test_set(run: Run, path: Path) -> bool:
    """Whether the run has this very file's evaluation; refuses names that mean something else there."""
    name = path.stem
    if name in (*SHIFTS, "train", "val", "test") or name.startswith(("saliency-", "cifar10c-")):
        raise ValueError(f"test_sets must not be called {path.name}, which means something else; rename the file")
    if name not in run.evaluations:
        return False
    sources = run.record["evaluations"].get(name, {}).get("provenance", {}).get("sources", {})
    if sources.get(name, {}).get("sha256") != sha256(path):
        raise ValueError(f"test_sets: run {run.key[:12]} has an evaluation {name} of another file; rename {path.name}")
    return True


def _test_set(path: Path, data: DataSet) -> EvaluationTask:
    """Read it once, to refuse it before anything is computed."""
    load = partial(_load_test_set, path, data)
    load()
    return EvaluationTask(path.stem, [Shift(path.stem, same_classes=True, load=load)])


def _load_test_set(path: Path, data: DataSet) -> tuple[Examples, dict[str, Any]]:
    try:
        with np.load(path, allow_pickle=False) as file:
            arrays = {name: file[name] for name in ("inputs", "labels", "ids") if name in file or name != "ids"}
    except (KeyError, ValueError, TypeError, zipfile.BadZipFile, EOFError) as error:
        raise ValueError(
            f"{path} must be an .npz file with the arrays inputs and labels, got {error}; write it with numpy.savez"
        ) from error
    inputs, like = arrays["inputs"], data.test.inputs
    if inputs.shape[1:] != like.shape[1:] or inputs.dtype.kind != like.dtype.kind or not len(inputs):
        raise ValueError(
            f"{path}: inputs must be like those of {data.name}, {like.dtype} (N, {', '.join(map(str, like.shape[1:]))})"
            f", got {inputs.dtype} {inputs.shape}; convert them as the data set does"
        )
    labels = arrays["labels"]
    examples = Examples(
        inputs.astype(like.dtype),
        labels.astype(np.int64) if labels.dtype.kind in "iu" else labels,
        arrays.get("ids", np.array([f"{path.stem}-{row}" for row in range(len(inputs))])),
    )
    none = examples.none()
    DataSet(path.stem, data.classes, none, none, examples, data.vocabulary)  # refuses labels that are no classes
    return examples, {"file": path.name, "sha256": sha256(path)}
