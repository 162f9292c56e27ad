"""Runs on disk: many processes may add, read and remove at once, and a run that is there is whole."""

from __future__ import annotations

import os
import secrets
import shutil
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from focalcal.core.checks import text, whole
from focalcal.lab.store import layout
from focalcal.lab.store.diagnostics import RunProblem, StoreProblem, clear_failure, read_failures, write_failure
from focalcal.lab.store.index import list_store, run_folders
from focalcal.lab.store.keys import ELSEWHERE
from focalcal.lab.store.run import Run
from focalcal.lab.store.run_folder import (
    Checksums,
    checked_record,
    read_folder,
    unreadable,
    write_evaluation,
    write_run,
)
from focalcal.lab.store.staging import check_disk_space, clear_leftovers, commit, discard, force, hold, staging

if TYPE_CHECKING:
    import duckdb

    from focalcal.lab.store.spec import Evaluation, Evaluations, Spec
    from focalcal.predictions import Predictions

_SHORTEST_PREFIX = 4


class Store:
    """The runs in a folder, made if it is not there and `create` is left at True.

    The folder may lie on a file system that several machines share. See `layout.py` for what is in it.

    Args:
        path: the folder, which may lie on a file system that several machines share.
        create: whether a folder that is not there is made.

    >>> from tempfile import TemporaryDirectory
    >>> from focalcal import Predictions
    >>> with TemporaryDirectory() as folder:
    ...     store = Store(folder)
    ...     test = Predictions(probs=[[0.8, 0.2], [0.3, 0.7]], labels=[0, 0], split="test")
    ...     run = store.record(name="my_loss", predictions=test, seed=0)  # trained in a loop of your own
    ...     print(len(list(store.runs())), store.has(run.spec))
    1 True
    """

    def __init__(self, path: str | os.PathLike[str], *, create: bool = True) -> None:
        self.path = Path(path)
        self._checksums = Checksums()
        layout.open_layout(self.path, create=create)

    def __repr__(self) -> str:
        """Where it is."""
        return f"Store({str(self.path)!r})"

    def has(self, spec: Spec | str, evaluations: Evaluations | None = None) -> bool:
        """Whether a run is there and every file of it is what was stored, and so are these evaluations of it.

        Checksums are compared when this object first looks at a run, and again when a size or time has changed. Weights
        and other files that no number comes from are compared by whoever reads them.
        """
        run = self._find(_key(spec))
        return run is not None and (evaluations is None or not evaluations.missing_from(run.evaluations))

    def missing(self, specs: Iterable[Spec], evaluations: Evaluations | None = None) -> list[Spec]:
        """The specs without a whole run, or without these evaluations of it, in their order, each once; see `has`."""
        return [spec for spec in dict.fromkeys(specs) if not self.has(spec, evaluations)]

    def workspace(self, spec: Spec) -> Path:
        """The folder for what a run in progress must find again after a crash; cleared when the run is added."""
        folder = self._folder(layout.WORK) / spec.key
        layout.refuse_link(folder)
        folder.mkdir(exist_ok=True)
        return folder

    @contextmanager
    def scratch(self) -> Iterator[Path]:
        """A folder for the time of the block. What a killed process leaves of it is removed by later writers."""
        tmp = self._folder(layout.TMP)
        clear_leftovers(tmp)
        with staging(tmp) as folder:
            yield folder

    @contextmanager
    def claim(self, spec: Spec, *, wait: bool = True) -> Iterator[bool]:
        """One process or thread at a time works on a spec; the lock dies with its holder. Yields whether it was got.

        Waits for the others, unless told not to. Look again whether the run is there once the claim is granted:
        another may have made it.
        """
        folder = self._folder(layout.WORK)
        with hold(folder / f"{spec.key}.lock", wait=wait, keep=(folder / spec.key).exists) as granted:
            yield granted

    def is_free(self, spec: Spec) -> bool:
        """Whether nobody has the claim at this moment."""
        with self.claim(spec, wait=False) as granted:
            return granted

    def add(
        self,
        spec: Spec,
        *,
        record: Mapping[str, Any],
        epochs: Path | None,
        predictions: Iterable[Predictions],
        files: Mapping[str, Path] | None = None,
        evaluations: Iterable[Evaluation] = (),
    ) -> Run:
        """Store a run: all of it, on the disk, or nothing. If it is there already, that one stays and is returned.

        record       {"metrics": {split: {metric: number}}, "provenance": {...}, "seconds": number, "epochs": number}
        epochs       a file with one JSON object per line
        files        others to keep, by the name they get: {"weights.pt": path}
        evaluations  of the trained network, which are there when the run is
        """

        def write(folder: Path) -> None:
            write_run(folder, spec, record, epochs, predictions, files or {})
            for evaluation in evaluations:
                write_evaluation(folder / layout.EVALUATIONS / evaluation.name, spec.key, evaluation)

        checked_record(record)  # raises, of a record that is none, before anything is looked at
        self._place(self.path / layout.RUNS / spec.key, lambda: self._find(spec.key) is not None, write)
        shutil.rmtree(self.path / layout.WORK / spec.key, ignore_errors=True)
        clear_failure(self.path / layout.FAILURES, spec.key)
        return self.run(spec.key)

    def record(
        self,
        *,
        name: str,
        predictions: Predictions | Mapping[str, Predictions],
        seed: int,
        options: Mapping[str, Any] | None = None,
        data_set: str = "custom",
        model: str = "custom",
        training: Mapping[str, Any] | None = None,
        epochs: Iterable[Mapping[str, Any]] = (),
        weights: str | os.PathLike[str] | None = None,
        seconds: float = 0.0,
        classes: Sequence[str] | None = None,
        provenance: Mapping[str, Any] | None = None,
    ) -> Run:
        """Store a run that was trained elsewhere, in a loop of your own; its metrics are computed here.

        Lists, comparisons, SQL and reports treat it like every other run: `name` stands where the objective's name
        does, and runs are compared with those of the same `data_set` and `model`, seed by seed. A run with the same of
        all these that has other predictions is refused.

        name         what is compared: the loss or the method
        predictions  of the split "test", or of several splits by their names
        options      what tells settings of `name` from each other: {"gamma": 2}
        training     how it was trained, as JSON can say it; part of the run's key
        epochs       one mapping per epoch: {"train": {"loss": 0.5}, "test": {"nll": 0.4}}
        weights      a file to keep with it, under the name that it has
        seconds      that the training took
        classes      names of the labels, where each example can have several
        provenance   anything else that is to be remembered
        """
        from focalcal.lab.store.record import record_run
        from focalcal.lab.store.spec import Spec

        spec = Spec(
            data_set=data_set,
            model=model,
            objective=text("name", name),
            objective_options=tuple((options or {}).items()),
            seed=seed,
            training={**(training or {}), **ELSEWHERE},
        )
        about = provenance or {}
        return record_run(
            self, spec, predictions, epochs=epochs, weights=weights, seconds=seconds, classes=classes, provenance=about
        )

    def add_evaluation(self, key: str, evaluation: Evaluation) -> Run:
        """Store an evaluation of the run with this key: all of it or nothing, and nothing that is there changes.

        If the run has one of that name, that one stays.
        """
        run = self.run(key)
        layout.refuse_link(run.path / layout.EVALUATIONS)
        self._place(
            run.path / layout.EVALUATIONS / evaluation.name,
            lambda: evaluation.name in self.run(run.key).evaluations,
            lambda folder: write_evaluation(folder, run.key, evaluation),
        )
        clear_failure(self.path / layout.FAILURES, run.key)
        return self.run(run.key)

    def copy_run(self, run: Run, evaluation: str | None = None) -> None:
        """Take a run of another store, or one of its evaluations, whose files were compared; all of it or nothing."""
        source = run.path if evaluation is None else run.path / layout.EVALUATIONS / evaluation

        def is_there() -> bool:
            mine = self._find(run.key)
            return mine is not None and (evaluation is None or evaluation in mine.evaluations)

        def copy(folder: Path) -> None:
            shutil.copytree(source, folder, dirs_exist_ok=True)

        self._place(self._folder(layout.RUNS) / source.relative_to(run.path.parent), is_there, copy)

    def run(self, key: str) -> Run:
        """The run with this key, or the only one whose key begins so; `RunProblem` if it is damaged, see `has`."""
        if not isinstance(key, str) or not set(key) <= set("0123456789abcdef") or len(key) > 32:
            raise ValueError(
                f"key must be hexadecimal digits, at most 32 of them, got {key!r}; see `focalcal runs list`"
            )
        if len(key) < _SHORTEST_PREFIX:
            raise ValueError(f"key must have at least {_SHORTEST_PREFIX} digits, got {key!r}; give more of them")
        if len(key) == 32:  # then thousands of names need not be listed
            keys = [key] if os.path.lexists(self.path / layout.RUNS / key) else []
        else:
            keys = [name for name in run_folders(self.path) if name.startswith(key)]
        if len(keys) > 1:
            several = ", ".join(name[:12] for name in keys[:5]) + (" and more" if len(keys) > 5 else "")
            raise ValueError(f"key must begin that of one run, got {key!r}, which begins {len(keys)}: {several}")
        if not keys:
            raise ValueError(f"there is no run {key} in {self.path}; see `focalcal runs list`")
        return self._read(keys[0])

    def runs(self) -> list[Run]:
        """Every run that is whole, by key, judged by sizes and times; see `problems` for the others."""
        return list(list_store(self.path, self._checksums)[0].values())

    def problems(self, *, contents: bool = False) -> list[StoreProblem]:
        """What in the store cannot be used, and why. With `contents` every file is read and no cache trusted."""
        return self.survey(contents=contents)[1]

    def survey(self, *, contents: bool = False) -> tuple[list[Run], list[StoreProblem]]:
        """`runs()` and `problems()` of one moment, for the price of one."""
        by_key, problems = list_store(self.path, Checksums() if contents else self._checksums, indexed=not contents)
        runs = list(by_key.values())
        if contents:
            damage = {run.key: _damage(run) for run in runs}
            runs = [run for run in runs if damage[run.key] is None]
            checked = [*damage.values(), *(_damage(run, name) for run in runs for name in run.evaluations)]
            problems += [problem for problem in checked if problem is not None]
        aside = self.path / layout.SET_ASIDE
        names = sorted(os.listdir(aside)) if aside.is_dir() else []
        problems += [StoreProblem(aside / name, "set aside", "damaged, and run again since") for name in names]
        return runs, problems + read_failures(self.path / layout.FAILURES)[1]

    def record_failure(self, spec: Spec, *, kind: str, message: str, details: Mapping[str, Any] | None = None) -> None:
        """Keep why a run failed, instead of what was kept before."""
        write_failure(self._folder(layout.FAILURES), spec, kind, message, details or {})

    def failures(self) -> list[dict[str, Any]]:
        """The last failure of each spec that has no run: key, spec, kind, message, details, time; by key."""
        failures, _ = read_failures(self.path / layout.FAILURES)
        return [failure for failure in failures if not self.has(failure["key"])]

    def sql(self, query: str) -> duckdb.DuckDBPyRelation:
        """The rows of a query over the tables `runs`, `metrics` and `epochs`; see `tables.py`.

        The query sees a copy and can neither read nor write files.
        """
        from focalcal.lab.store.tables import answer

        return answer(self.runs(), query)

    def export(self, path: str | os.PathLike[str], keys: Iterable[str] | None = None) -> Path:
        """All runs, or those with these keys, as one file.

        .zip            their folders, as a store of its own
        .csv, .parquet  one row per run and split: what was run, and the metrics
        """
        from focalcal.lab.store.tables import export

        chosen = self.runs() if keys is None else [self.run(key) for key in dict.fromkeys(keys)]
        return export(chosen, Path(path))

    def remove(self, keys: Iterable[str]) -> None:
        """Delete runs for good, each at once for every reader. A damaged or foreign folder needs its whole name."""
        names = set(run_folders(self.path))
        for key in [keys] if isinstance(keys, str) else list(keys):
            name = key if key in names else self.run(key).key
            discard(self.path / layout.RUNS / name, self._folder(layout.TMP))

    def check_writable(self, needed_bytes: int = 0) -> None:
        """Raise OSError, with the remedy, if runs of so many bytes in all could not be stored here."""
        layout.refuse_link(self.path / layout.TMP)
        check_disk_space(self.path, self.path / layout.TMP, whole("needed_bytes", needed_bytes, 0))

    def _folder(self, name: str) -> Path:
        folder = self.path / name
        layout.refuse_link(folder)
        folder.mkdir(exist_ok=True)
        return folder

    def _find(self, key: str) -> Run | None:
        """The run, if it is there and whole."""
        try:
            return self._read(key) if os.path.lexists(self.path / layout.RUNS / key) else None
        except RunProblem:
            return None

    def _read(self, name: str) -> Run:
        """The run in a folder, its content compared with the checksums; evaluations that are damaged are left out."""
        folder = os.path.join(self.path, layout.RUNS, name)
        read = read_folder(folder)
        run = Run(folder, {"run": read.record, "evaluations": read.evaluations}, self._checksums)
        try:
            run.verify(kept=False)
        except OSError as error:
            raise unreadable(folder, error) from error
        whole = {name: record for name, record in read.evaluations.items() if _damage(run, name) is None}
        return Run(folder, {"run": read.record, "evaluations": whole}, self._checksums)

    def _place(self, target: Path, is_there: Callable[[], bool], write: Callable[[Path], None]) -> None:
        """Unless it is there, have a folder written and give it its name; what is not whole there is set aside."""
        tmp = self._folder(layout.TMP)
        clear_leftovers(tmp)
        if is_there():
            return
        with staging(tmp) as folder:
            write(folder)
            while not (written := commit(folder, target)) and self._set_aside(target, is_there):
                pass
        if written:
            self._checksums.trust(target)

    def _set_aside(self, target: Path, is_there: Callable[[], bool]) -> bool:
        """Move what is not whole out of the way; False if it is whole. Nobody else does so meanwhile."""
        with hold(self._folder(layout.WORK) / "set-aside.lock"):
            if is_there():
                return False
            if os.path.lexists(target):
                parts = target.relative_to(self.path / layout.RUNS).parts  # the run's name; of an evaluation two more
                name = "-".join(part for part in parts if part != layout.EVALUATIONS)
                os.rename(target, self._folder(layout.SET_ASIDE) / f"{name}-{secrets.token_hex(4)}")
                force(target.parent)
            return True


def _key(spec: Spec | str) -> str:
    key = spec if isinstance(spec, str) else getattr(spec, "key", None)
    if not isinstance(key, str) or not layout.is_key(key):
        raise ValueError(f"a spec, or its key of 32 hexadecimal digits, is needed, got {spec!r}")
    return key


def _damage(run: Run, evaluation: str | None = None) -> StoreProblem | None:
    try:
        run.verify(evaluation)
    except RunProblem as error:
        return error.problem
    except OSError as error:
        return unreadable(str(run.path), error).problem
    return None
