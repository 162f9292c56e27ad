"""Runs on disk: many processes may add, read and remove at once, and a run that is there is whole."""

from __future__ import annotations

import os
import secrets
import shutil
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from focalcal.results import failures, layout
from focalcal.results.diagnostics import Problem, RunProblem
from focalcal.results.index import listing, older_folders
from focalcal.results.locks import held
from focalcal.results.run import Run
from focalcal.results.run_folder import State, examined, state_of, unreadable
from focalcal.results.staging import clear_leftovers, commit, discard, force, staging

if TYPE_CHECKING:
    import duckdb

    from focalcal.predictions import Predictions
    from focalcal.results.evaluations import Evaluations
    from focalcal.results.run_writer import Evaluation
    from focalcal.results.spec import Spec

_SHORTEST_PREFIX = 4


class Store:
    """The runs in a folder, made if it is not there and `create` is left at True.

    The folder may lie on a file system that several machines share. See `results/layout.py` for what is in it.
    """

    def __init__(self, path: str | os.PathLike[str], *, create: bool = True) -> None:
        self.path = Path(path)
        self._compared: dict[str, State] = {}  # sizes and times of runs whose content was compared
        layout.open_layout(self.path, create=create)

    def __repr__(self) -> str:
        """Where it is."""
        return f"Store({str(self.path)!r})"

    def has(self, spec: Spec | str, evaluations: Evaluations | None = None) -> bool:
        """Whether a run is there and every file of it is what was stored, and so are these evaluations of it.

        Checksums are compared when this object first looks at a run, and again when a size or time has changed. Weights
        and other files that no number comes from are compared by whoever reads them.
        """
        return _complete(self._there(_key(spec)), evaluations)

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
        with held(folder / f"{spec.key}.lock", wait=wait, keep=(folder / spec.key).exists) as granted:
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
        epochs       a file with a JSON object a line
        files        others to keep, by the name they get: {"weights.pt": path}
        evaluations  of the trained network, which are there when the run is
        """
        from focalcal.results.run_writer import checked_record, write_evaluation, write_run

        checked_record(record)
        tmp = self._folder(layout.TMP)
        clear_leftovers(tmp)
        if self._there(spec.key) is None:
            with staging(tmp) as folder:
                write_run(folder, spec, record, epochs, predictions, files or {})
                for one in evaluations:
                    place = folder / layout.EVALUATIONS / one.name
                    place.mkdir(parents=True)
                    write_evaluation(place, spec.key, one)
                target = self.path / layout.RUNS / spec.key
                while not commit(folder, target):
                    if not self._set_aside(target, spec.key):
                        break
        self._clear(spec.key)
        return self.run(spec.key)

    def add_evaluation(self, key: str, evaluation: Evaluation) -> Run:
        """Store an evaluation of the run with this key: all of it or nothing, and nothing that is there changes.

        If the run has one of that name, that one stays.
        """
        from focalcal.results.run_writer import write_evaluation

        run = self.run(key)
        layout.refuse_link(run.path / layout.EVALUATIONS)
        tmp = self._folder(layout.TMP)
        clear_leftovers(tmp)
        if evaluation.name not in run.evaluations:
            with staging(tmp) as folder:
                write_evaluation(folder, run.key, evaluation)
                target = run.path / layout.EVALUATIONS / evaluation.name
                while not commit(folder, target):
                    if not self._set_aside(target, run.key, evaluation.name):
                        break
        failures.clear(self.path / layout.FAILURES, run.key)
        return self.run(run.key)

    def run(self, key: str) -> Run:
        """The run with this key, or the only one whose key begins so; `RunProblem` if it is damaged, see `has`."""
        if not isinstance(key, str) or not set(key) <= set("0123456789abcdef") or len(key) > 32:
            raise ValueError(
                f"key must be hexadecimal digits, at most 32 of them, got {key!r}; see `focalcal runs list`"
            )
        if len(key) < _SHORTEST_PREFIX:
            raise ValueError(f"key must have at least {_SHORTEST_PREFIX} digits, got {key!r}; give more of them")
        now = {name: current for current, names in self._old.items() for name in names}  # of older versions' folders
        names = ([key] if os.path.lexists(self.path / layout.RUNS / key) else []) if len(key) == 32 else self._names()
        found = sorted({now.get(name, name) for name in (*names, *self._old) if name.startswith(key)})
        if len(found) > 1:
            raise ValueError(f"key must begin that of one run, got {key!r}, which begins {len(found)}: {_some(found)}")
        if not found:
            raise ValueError(f"there is no run {key} in {self.path}; see `focalcal runs list`")
        if (run := self._there(found[0])) is not None:
            return run
        return self._whole(self._folders(found[0])[-1])  # raises what is wrong

    def runs(self) -> list[Run]:
        """Every run that is whole, by key, judged by sizes and times; see `problems` for the others."""
        return [Run(entry) for entry in listing(self.path).entries.values()]

    def problems(self, *, contents: bool = False) -> list[Problem]:
        """What in the store cannot be used, and why. With `contents` every file is read and no cache trusted."""
        return self.survey(contents=contents)[1]

    def survey(self, *, contents: bool = False) -> tuple[list[Run], list[Problem]]:
        """`runs()` and `problems()` of one moment, for the price of one."""
        entries, problems = listing(self.path, cached=not contents)
        runs = [Run(entry) for entry in entries.values()]
        if contents:
            found = [(run, _content_problem(run)) for run in runs]
            runs = [run for run, problem in found if problem is None]
            problems += [problem for _, problem in found if problem is not None]
            added = [_content_problem(run, evaluation) for run in runs for evaluation in run.evaluations]
            problems += [problem for problem in added if problem is not None]
        aside = self.path / layout.SET_ASIDE
        remedy = "damaged, and run again since; delete the folder when you have looked at it"
        if aside.is_dir():
            problems += [Problem(aside / name, "set aside", remedy) for name in sorted(os.listdir(aside))]
        return runs, problems + failures.problems(self.path / layout.FAILURES)

    def record_failure(self, spec: Spec, *, kind: str, message: str, details: Mapping[str, Any] | None = None) -> None:
        """Keep why a run failed, instead of what was kept before."""
        failures.write(self._folder(layout.FAILURES), spec, kind, message, details or {})

    def failures(self) -> list[dict[str, Any]]:
        """The last failure of each spec that has no run: key, spec, kind, message, details, time; by key."""
        return [one for one in failures.read(self.path / layout.FAILURES) if not self.has(one["key"])]

    def sql(self, query: str) -> duckdb.DuckDBPyRelation:
        """The rows of a query over the tables `runs`, `metrics` and `epochs`; see `results/query.py`.

        The query sees a copy and can neither read nor write files.
        """
        from focalcal.results.query import answer

        return answer(self.runs(), query)

    def export(self, path: str | os.PathLike[str], keys: Iterable[str] | None = None) -> Path:
        """All runs, or those with these keys, as one file.

        .zip            their folders, as a store of its own
        .csv, .parquet  a row a run and split: what was run, and the metrics
        """
        from focalcal.results.export import export

        chosen = self.runs() if keys is None else [self.run(key) for key in dict.fromkeys(keys)]
        return export(chosen, Path(path))

    def remove(self, keys: Iterable[str]) -> None:
        """Delete runs for good, each at once for every reader. A damaged or foreign folder needs its whole name."""
        names = set(self._names())
        for key in [keys] if isinstance(keys, str) else list(keys):
            for name in [key] if key in names else names.intersection(self._folders(self.run(key).key)):
                discard(self.path / layout.RUNS / name, self._folder(layout.TMP))

    def check_writable(self, needed_bytes: int = 0) -> None:
        """Raise OSError, with the remedy, if runs of so many bytes in all could not be stored here."""
        from focalcal.results.disk_space import check_room

        layout.refuse_link(self.path / layout.TMP)
        check_room(self.path, self.path / layout.TMP, needed_bytes)

    def _folder(self, name: str) -> Path:
        folder = self.path / name
        layout.refuse_link(folder)
        folder.mkdir(exist_ok=True)
        return folder

    def _names(self) -> list[str]:
        with suppress(FileNotFoundError):
            return sorted(os.listdir(self.path / layout.RUNS))
        return []

    @cached_property
    def _old(self) -> dict[str, list[str]]:
        """Looked for once: this version adds none."""
        return older_folders(self.path)

    def _folders(self, key: str) -> list[str]:
        return [key, *self._old.get(key, ())]

    def _there(self, key: str) -> Run | None:
        """The run in its own folder if that is whole, else that of an older version with most evaluations."""
        if (run := self._usable(key)) is not None:
            return run
        older = [run for name in self._old.get(key, ()) if (run := self._usable(name)) is not None]
        return max(older, key=lambda run: len(run.evaluations), default=None)

    def _usable(self, name: str) -> Run | None:
        try:
            return self._whole(name) if os.path.lexists(self.path / layout.RUNS / name) else None
        except RunProblem:
            return None

    def _whole(self, name: str) -> Run:
        """The run in a folder, its content compared with the checksums unless that was done for these sizes and times.

        Evaluations that are damaged are left out of it.
        """
        folder = os.path.join(self.path, layout.RUNS, name)
        try:
            state = state_of(folder)
            entry = examined(folder, state)
            run = Run(entry)
            if self._compared.get(name) == state:
                return run
            run.verify(kept=False)
        except OSError as error:
            raise unreadable(folder, error) from error
        whole = {one: kept for one, kept in entry.evaluations.items() if _content_problem(run, one) is None}
        if len(whole) < len(entry.evaluations):
            entry.evaluations = whole
            return Run(entry)
        self._compared[name] = state
        return run

    def _set_aside(self, target: Path, key: str, evaluation: str | None = None) -> bool:
        """Move what is not whole out of the way; False if it is whole. Nobody else does so meanwhile."""
        with held(self._folder(layout.WORK) / "set-aside.lock"):
            run = self._there(key)
            if run is not None and (evaluation is None or evaluation in run.evaluations):
                return False
            if os.path.lexists(target):
                name = key if evaluation is None else f"{key}-{evaluation}"
                os.rename(target, self._folder(layout.SET_ASIDE) / f"{name}-{secrets.token_hex(4)}")
                force(target.parent)
            return True

    def _clear(self, key: str) -> None:
        shutil.rmtree(self.path / layout.WORK / key, ignore_errors=True)
        failures.clear(self.path / layout.FAILURES, key)


def _key(spec: Spec | str) -> str:
    key = spec if isinstance(spec, str) else getattr(spec, "key", None)
    if not isinstance(key, str) or not layout.is_key(key):
        raise ValueError(f"a spec, or its key of 32 hexadecimal digits, is needed, got {spec!r}")
    return key


def _complete(run: Run | None, evaluations: Evaluations | None) -> bool:
    return run is not None and (evaluations is None or not evaluations.missing_from(run.evaluations))


def _content_problem(run: Run, evaluation: str | None = None) -> Problem | None:
    try:
        run.verify(evaluation)
    except RunProblem as error:
        return error.problem
    except OSError as error:
        return Problem(run.path, "unreadable", f"{error.strerror or error} ({error.filename})")
    return None


def _some(keys: list[str]) -> str:
    return ", ".join(key[:12] for key in keys[:5]) + (" and more" if len(keys) > 5 else "")
