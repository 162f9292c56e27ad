"""Runs on disk: many processes may add, read and remove at once, and a run that is there is whole."""

from __future__ import annotations

import os
import secrets
import shutil
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from focalcal.results import failures, layout
from focalcal.results.entry import examined
from focalcal.results.index import listing
from focalcal.results.locks import held
from focalcal.results.problems import Problem, RunProblem
from focalcal.results.run import Run
from focalcal.results.staging import clear_leftovers, commit, discard, force, staging

if TYPE_CHECKING:
    import duckdb

    from focalcal.predictions import Predictions
    from focalcal.results.spec import Spec

_SHORTEST_PREFIX = 4
_FEW = 100  # runs that are found more quickly in their folders than in the cache


class Store:
    """The runs in a folder, made if it is not there and `create` is left at True.

    The folder may lie on a file system that several machines share. See `results/layout.py` for what is in it.
    """

    def __init__(self, path: str | os.PathLike[str], *, create: bool = True) -> None:
        self.path = Path(path)
        layout.open_layout(self.path, create=create)

    def __repr__(self) -> str:
        """Where it is."""
        return f"Store({str(self.path)!r})"

    def has(self, spec: Spec | str) -> bool:
        """Whether a run is there and whole; looks at its folder, not at a cache."""
        return self._there(_key(spec)) is not None

    def missing(self, specs: Iterable[Spec]) -> list[Spec]:
        """The specs without a whole run, in their order, each once."""
        wanted = dict.fromkeys(specs)
        if len(wanted) <= _FEW:
            return [spec for spec in wanted if not self.has(spec)]
        there = listing(self.path, {spec.key for spec in wanted}).entries
        return [spec for spec in wanted if spec.key not in there]

    def workspace(self, spec: Spec) -> Path:
        """The folder for what a run in progress must find again after a crash; cleared when the run is added."""
        folder = self._folder(layout.WORK) / spec.key
        folder.mkdir(exist_ok=True)
        return folder

    @contextmanager
    def claim(self, spec: Spec) -> Iterator[bool]:
        """One process or thread at a time works on a spec. Waits for the others; the lock dies with its holder.

        Look again whether the run is there once the claim is granted: another may have made it.
        """
        folder = self._folder(layout.WORK)
        with held(folder / f"{spec.key}.lock", keep=(folder / spec.key).exists) as granted:
            yield granted

    def add(
        self,
        spec: Spec,
        *,
        record: Mapping[str, Any],
        epochs: Path | None,
        predictions: Iterable[Predictions],
        files: Mapping[str, Path] | None = None,
    ) -> Run:
        """Store a run: all of it, on the disk, or nothing. If it is there already, that one stays and is returned.

        record       {"metrics": {split: {metric: number}}, "provenance": {...}, "seconds": number, "epochs": number}
        epochs       a file with a JSON object a line
        files        others to keep, by the name they get: {"weights.pt": path}
        """
        from focalcal.results.content import checked_record, write_run

        checked_record(record)
        tmp = self._folder(layout.TMP)
        clear_leftovers(tmp)
        if self._there(spec.key) is None:
            with staging(tmp) as folder:
                write_run(folder, spec, record, epochs, predictions, files or {})
                target = self.path / layout.RUNS / spec.key
                while not commit(folder, target):
                    if not self._set_aside(target):
                        break
        self._clear(spec.key)
        return self.run(spec.key)

    def run(self, key: str) -> Run:
        """The run with this key, or the only one whose key begins so."""
        if not isinstance(key, str) or not set(key) <= set("0123456789abcdef") or len(key) > 32:
            raise ValueError(
                f"key must be hexadecimal digits, at most 32 of them, got {key!r}; see `focalcal runs list`"
            )
        if len(key) < _SHORTEST_PREFIX:
            raise ValueError(f"key must have at least {_SHORTEST_PREFIX} digits, got {key!r}; give more of them")
        found = [key] if len(key) == 32 else [name for name in self._names() if name.startswith(key)]
        if len(found) > 1:
            raise ValueError(f"key must begin that of one run, got {key!r}, which begins {len(found)}: {_some(found)}")
        if not found or not os.path.lexists(self.path / layout.RUNS / found[0]):
            raise ValueError(f"there is no run {key} in {self.path}; see `focalcal runs list`")
        return Run(examined(os.path.join(self.path, layout.RUNS, found[0])))

    def runs(self) -> list[Run]:
        """Every run that is whole, by key; see `problems` for the others."""
        return [Run(entry) for entry in listing(self.path).entries.values()]

    def problems(self, *, contents: bool = False) -> list[Problem]:
        """What in the store cannot be used, and why. With `contents` every file is read and its checksum compared."""
        return self.survey(contents=contents)[1]

    def survey(self, *, contents: bool = False) -> tuple[list[Run], list[Problem]]:
        """`runs()` and `problems()` of one moment, for the price of one."""
        entries, problems = listing(self.path)
        runs = [Run(entry) for entry in entries.values()]
        if contents:
            found = [(run, _content_problem(run)) for run in runs]
            runs = [run for run, problem in found if problem is None]
            problems += [problem for _, problem in found if problem is not None]
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
            name = key if key in names else self.run(key).key
            discard(self.path / layout.RUNS / name, self._folder(layout.TMP))

    def check_writable(self, needed_bytes: int = 0) -> None:
        """Raise OSError, with the remedy, if runs of so many bytes in all could not be stored here."""
        from focalcal.results.room import check_room

        check_room(self.path, self.path / layout.TMP, needed_bytes)

    def _folder(self, name: str) -> Path:
        folder = self.path / name
        folder.mkdir(exist_ok=True)
        return folder

    def _names(self) -> list[str]:
        with suppress(FileNotFoundError):
            return sorted(os.listdir(self.path / layout.RUNS))
        return []

    def _there(self, key: str) -> Run | None:
        if not os.path.lexists(folder := os.path.join(self.path, layout.RUNS, key)):
            return None
        try:
            return Run(examined(folder))
        except RunProblem:
            return None

    def _set_aside(self, target: Path) -> bool:
        """Move a run that is not whole out of the way; False if it is whole. Nobody else does so meanwhile."""
        with held(self._folder(layout.WORK) / "set-aside.lock"):
            if self._there(target.name) is not None:
                return False
            if os.path.lexists(target):
                os.rename(target, self._folder(layout.SET_ASIDE) / f"{target.name}-{secrets.token_hex(4)}")
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


def _content_problem(run: Run) -> Problem | None:
    try:
        run.verify()
    except RunProblem as error:
        return error.problem
    except OSError as error:
        return Problem(run.path, "unreadable", f"{error.strerror or error} ({error.filename})")
    return None


def _some(keys: list[str]) -> str:
    return ", ".join(key[:12] for key in keys[:5]) + (" and more" if len(keys) > 5 else "")
