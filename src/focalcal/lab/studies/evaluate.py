"""Evaluations of runs that are stored: computed from their weights, without training them again."""

from __future__ import annotations

import warnings
import zipfile
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import torch

from focalcal.core.extras import required
from focalcal.lab.data import OWN_DATA, DataSet, Examples, data_options, fingerprint, load_data
from focalcal.lab.data.errors import DataSetWarning, reading
from focalcal.lab.data.examples import numbered_ids
from focalcal.lab.data.own_files import read_table
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
from focalcal.lab.training import Recipe, trained_network
from focalcal.lab.training.determinism import fixed_conditions

WEIGHTS = "weights.pt"
_REMOVE = "focalcal runs rm"
_SPLIT = "focalcal_split"  # a column of a file that has old and new rows


class NoWeightsError(ValueError):
    """A run that cannot be evaluated: its weights were not kept, or are those of a network that is not ours.

    `reason` says why without saying of which run.
    """

    def __init__(self, key: str, name: str, reason: str) -> None:
        self.reason = reason
        told = reason.replace(_REMOVE, f"{_REMOVE} {key[:12]}")
        super().__init__(f"run {key[:12]} ({name}) {told}")


@dataclass(frozen=True)
class Evaluated:
    """A run after its evaluation: the names of what was added, or why nothing could be; `reason` without the run."""

    run: Run
    added: tuple[str, ...] = ()
    refused: str | None = None
    reason: str | None = None

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
    """Add to a stored run what it lacks of some evaluations; nothing that is stored changes, nothing is trained.

    Each evaluation is stored when it is there, whole. A run without weights, or one that was trained elsewhere,
    raises `NoWeightsError`; one that has everything needs none.

    Args:
        run: of the store.
        store: which is given them.
        evaluations: what is asked for.
        test_sets: .npz files with the arrays `inputs`, as the run's data set has them, `labels`, which are its
            classes, and perhaps `ids`; of a run on files of your own (`focalcal.lab.data.OWN_DATA`) files like
            those, which are read as they were. Each becomes a split, and an evaluation, of the file's name.
        data_dir: the folder of the data sets; None: where FOCALCAL_DATA points.
        device: where the network computes.
        threads: how many torch may use.
        report: is told how far it is.

    Returns:
        The run with all of them.

    >>> from dataclasses import replace
    >>> from tempfile import TemporaryDirectory
    >>> from focalcal.lab.store import Store
    >>> from focalcal.lab.studies import run_spec, spec_of
    >>> from focalcal.lab.training import recipe
    >>> quick = replace(recipe("digits_mlp_lite"), epochs=1)

    >>> with TemporaryDirectory() as folder:
    ...     store = Store(folder)
    ...     run = run_spec(spec_of(quick, "ce", seed=0), store)
    ...     evaluate_run(run, store, test_sets=[]).evaluations
    ()
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
    """`evaluate_run` of each of several runs. One that cannot be evaluated says why, and the others go on.

    Args:
        runs: of the store.
        store: which is given them.
        evaluations: what is asked for.
        options: as `evaluate_run` takes them: test_sets, data_dir, device, threads.

    Returns:
        One `Evaluated` per run: the run, what was `added`, or why it was `refused`.

    >>> from tempfile import TemporaryDirectory
    >>> from focalcal.lab.store import Store
    >>> with TemporaryDirectory() as folder:
    ...     evaluate_runs(Store(folder).runs(), Store(folder))
    []
    """
    evaluated = []
    for run in runs:
        try:
            after = evaluate_run(run, store, evaluations, **options)
        except (NoWeightsError, RunProblem) as error:
            evaluated.append(Evaluated(run, refused=str(error), reason=getattr(error, "reason", str(error))))
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
            run.key,
            run.spec.name,
            "was trained elsewhere and recorded, so that its network cannot be built here; predict with it yourself, "
            "and add that by Store.add_evaluation",
        )
    if WEIGHTS not in run.files:
        reason = without_weights((*names, *(path.stem for path in own)))
        raise NoWeightsError(run.key, run.spec.name, reason)
    check_sources(run.spec)
    store.check_writable()
    recipe, protocol, place = recipe_of(run.spec), run.spec.protocol, torch.device(device)
    with fixed_conditions(threads):
        data = load_run_data(recipe, protocol, data_dir, run.spec.training.get(FINGERPRINT))
        clean = run.predictions("test")
        _check_same(run, data)
        recipe = with_statistics(recipe, data)
        tasks = evaluation_tasks(evaluations, names, recipe, data, protocol, data_dir)
        tasks += [_test_set(path, data, recipe, data_dir) for path in own]
        network = trained_network(recipe, run.file(WEIGHTS), data).to(place)
        about = {"run": run.key, "name": run.spec.name, "data_set": data.name}
        provenance = {"software": software(), "machine": machine(place, threads), "weights": sha256(run.file(WEIGHTS))}
        on_split = progress.count_splits(sum(task.pieces for task in tasks))
        for task in tasks:
            trained = Trained(network, recipe, data, place, about)
            store.add_evaluation(run.key, make_evaluation(task, trained, clean, provenance, on_split))
    progress.end("evaluated")
    return store.run(run.key)


def without_weights(evaluations: Iterable[str]) -> str:
    """Why a run cannot have these evaluations, and what to do."""
    return (
        f"was stored without its weights, which {', '.join(evaluations)} would be computed from; remove it with "
        f"`{_REMOVE}` and train it again, by the study that has this evaluation or with --keep-weights"
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


def _test_set(path: Path, data: DataSet, recipe: Recipe, data_dir: Path | None) -> EvaluationTask:
    """Read it once, to refuse it before anything is computed."""
    if recipe.data_set in OWN_DATA and recipe.data_set != "images":  # arrays of decoded ones are what the network takes
        load = partial(_load_own_rows, path, recipe, data_dir)
    else:
        load = partial(_load_test_set, path, data)
    load()
    return EvaluationTask(path.stem, [Shift(path.stem, same_classes=True, load=load)])


def _load_own_rows(path: Path, recipe: Recipe, data_dir: Path | None) -> tuple[Examples, dict[str, Any]]:
    """The rows of a file like the one that a run was trained on, encoded by that run's training rows.

    The loader is given one file: the old rows in the splits that they had, and the new ones to be tested. Columns that
    are no inputs, which a run dropped or never read, need not be in the new file.
    """
    options = dict(recipe.data_options)
    with TemporaryDirectory() as folder, warnings.catch_warnings():
        warnings.simplefilter("ignore", DataSetWarning)  # it was given when the run was trained
        trained = load_data(recipe.data_set, data_dir, **options)
        old = Path(trained.files[0])
        split_of = {one: split for split in ("train", "val") for one in trained.splits[split].ids.tolist()}
        file = Path(folder) / f"{old.stem}{'.npz' if old.suffix == '.npz' else '.parquet'}"
        if old.suffix == ".npz":
            rows = _join_arrays(old, path, file, split_of)
        else:
            rows = _join_tables(old, path, file, {**data_options(recipe.data_set), **options}, split_of)
        kept = {name: value for name, value in options.items() if name != "drop"}
        joined = load_data(recipe.data_set, data_dir, **{**kept, "path": str(file), "split": _SPLIT})
    if strange := [name for name in joined.classes if name not in trained.classes]:
        raise ValueError(f"{path} must have the classes of {old.name}, got {', '.join(strange)} too; leave it out")
    if fingerprint(joined.train) != fingerprint(trained.train):
        raise ValueError(
            f"{path} must be read as {old.name} was, got other training rows beside it; convert its columns"
        )
    return joined.test.take(np.arange(len(joined.test) - rows, len(joined.test))), {
        "file": path.name,
        "sha256": sha256(path),
    }


def _join_tables(old: Path, new: Path, file: Path, options: Mapping[str, Any], split_of: Mapping[Any, str]) -> int:
    """Write the columns of both tables that the loader reads, with one of splits; how many rows are new."""
    arrow, parquet = (required(module, purpose="Reading a table") for module in ("pyarrow", "pyarrow.parquet"))
    table = read_table(old)
    more = read_table(
        new, [field.name for field in table.schema if field.type in (arrow.string(), arrow.large_string())]
    )
    if "text" in options:
        unread = set(table.column_names) - {options[what] for what in ("text", "label", "group", "ids")}
    else:
        drop = options["drop"].split(",") if isinstance(options["drop"], str) else options["drop"]
        unread = {options["split"], *(name.strip() for name in drop)}
    ids, names = options["ids"], [name for name in table.column_names if name not in unread]
    if lacking := [name for name in names if name not in more.column_names]:
        raise ValueError(f"{new} must have the columns of {old.name}, got none called {', '.join(lacking)}; add them")
    if twice := [name for name in names if more.column_names.count(name) > 1]:
        raise ValueError(f"{new} must have columns of different names, got {twice[0]!r} twice; rename one")
    if not more.num_rows:
        raise ValueError(f"{new} must have rows, got none; add them")
    labels = more.column(options["label"]).to_pylist()
    if gaps := [row for row, label in enumerate(labels) if label is None or not str(label).strip()]:
        raise ValueError(f"{new} must have a label in every row, got none in row {gaps[0]}; leave such rows out")
    try:
        more = more.select(names).cast(table.select(names).schema)
    except arrow.ArrowException as error:
        raise ValueError(f"{new} must have columns of the types of {old.name}: {error}; convert them") from None
    known = table.column(ids).to_pylist() if ids else numbered_ids(old.stem, table.num_rows).tolist()
    splits = [*(split_of.get(one, split_of.get(str(one), "test")) for one in known), *["test"] * more.num_rows]
    both = arrow.concat_tables([table.select(names), more])
    parquet.write_table(both.append_column(_SPLIT, arrow.array(splits)), file)
    return int(more.num_rows)


def _join_arrays(old: Path, new: Path, file: Path, split_of: Mapping[Any, str]) -> int:
    """The same of arrays."""
    with reading(new, "an .npz file of arrays"), np.load(old) as arrays, np.load(new, allow_pickle=False) as more:
        rows, count = len(more["inputs"]), len(arrays["inputs"])
        known = arrays["ids"].tolist() if "ids" in arrays else numbered_ids(old.stem, count).tolist()
        splits = np.array([*(split_of.get(one, "test") for one in known), *["test"] * rows])
        shared = [name for name in arrays.files if name in more.files and len(arrays[name]) == count]
        joined: dict[str, Any] = {name: np.concatenate([arrays[name], more[name]]) for name in shared}
    np.savez(file, allow_pickle=False, **joined, **{_SPLIT: splits})
    return rows


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
