"""Runs of other stores, or of archives that were exported, taken into one store; what disagrees stays as it is."""

from __future__ import annotations

import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from tempfile import TemporaryDirectory

from focalcal.lab.store.diagnostics import Disagreement, StoreProblem
from focalcal.lab.store.merge import disagreement
from focalcal.lab.store.store import Store


@dataclass(eq=False)
class ImportedRuns:
    """The keys of runs that were taken, those that were there, and what kept others away.

    evaluated  keys of runs that were there and have evaluations now that they had not
    conflicts  runs that both have, with other metrics: the store's stay
    problems   of the source: what could not be read
    """

    taken: list[str] = field(default_factory=list)
    found: list[str] = field(default_factory=list)
    evaluated: list[str] = field(default_factory=list)
    conflicts: list[Disagreement] = field(default_factory=list)
    problems: list[StoreProblem] = field(default_factory=list)


def import_runs(store: Store, source: Path) -> ImportedRuns:
    """Copy every whole run of `source`, a store's folder or a .zip of `focalcal runs export`, that `store` has not.

    Every file is compared with its checksum first. Of a run that both have, evaluations that the store's lacks are
    added, unless the two disagree in a metric: then nothing of it changes.
    """
    imported = ImportedRuns()
    with _opened(source) as other:
        if other.path.resolve() == store.path.resolve():
            raise ValueError(f"source must be another store than {store.path}, got the same folder")
        runs, imported.problems = other.survey(contents=True)
        for run in runs:
            if not store.has(run.key):
                store.copy_run(run)
                imported.taken.append(run.key)
                continue
            mine = store.run(run.key)
            if (conflict := disagreement(mine, run)) is not None:
                imported.conflicts.append(conflict)
                continue
            lacking = [name for name in run.evaluations if name not in mine.evaluations]
            for name in lacking:
                store.copy_run(run, name)
            (imported.evaluated if lacking else imported.found).append(run.key)
    return imported


@contextmanager
def _opened(source: Path) -> Iterator[Store]:
    """The store in a folder, or in an archive that is unpacked for the time of the block."""
    if source.is_dir() or not source.exists():
        yield Store(source, create=False)
        return
    with TemporaryDirectory() as folder:
        try:
            with zipfile.ZipFile(source) as archive:
                for name in archive.namelist():
                    if PurePosixPath(name).is_absolute() or ".." in PurePosixPath(name).parts:
                        raise ValueError(f"{source} must be an archive of runs, got a file {name!r}; export it again")
                archive.extractall(folder)
        except (zipfile.BadZipFile, OSError, EOFError) as error:
            raise ValueError(f"{source} must be a store, or a .zip of `focalcal runs export`, got {error}") from None
        yield Store(folder, create=False)
