"""What listings know already, so that they read each run once: a cache beside the runs.

A run is never changed once it is there. What was read of it stays true as long as its files have the same sizes and
times. The cache is a folder of files, each written whole by one process and then only removed, so that any number of
processes may read and write; what is lost is read again from the runs. Deleting the folder is safe.
"""

from __future__ import annotations

import hashlib
import os
import re
import secrets
import zlib
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from focalcal.core.atomic import write_atomically
from focalcal.lab.store.diagnostics import RunProblem, StoreProblem
from focalcal.lab.store.layout import CACHE, RUNS, is_key
from focalcal.lab.store.run import Run
from focalcal.lab.store.run_folder import State, examine, read_spec_key, state_of, unreadable

_SUFFIX = ".v3"  # of what is checked, and of a line: folder, state, CRC-32 of the texts, texts with tabs between
_KEY, _STATE, _CHECK, _TEXTS = slice(0, 32), slice(33, 57), slice(58, 66), slice(67, -1)  # of a line
_CACHE_FILE = re.compile(r"[0-9a-f]{16}\.v[0-9]+")
_MOST_FILES = 8


class Listing(NamedTuple):
    """The runs of a store by key, in that order, and what in its folder is not a run that can be used."""

    runs: dict[str, Run]
    problems: list[StoreProblem]


def list_store(store: Path, *, cached: bool = True) -> Listing:
    """Every run, from the cache where that holds, else from its folder; then the cache is updated."""
    files = _cache_files(store / CACHE) if cached else []
    known = _read(files)
    runs: list[Run] = []
    problems: list[StoreProblem] = []
    lines: dict[str, bytes] = {}
    new: list[str] = []
    for name in run_folders(store):
        folder = os.path.join(store, RUNS, name)  # not a Path: there are thousands
        try:
            state = state_of(folder)
            digest = _digest(state)
            old = known.get(name)
            if old is not None and old[_STATE] == digest:
                runs.append(Run(folder, old[_TEXTS]))
                lines[name] = old
                continue
            texts, damaged = examine(folder, state)
        except (RunProblem, OSError) as error:
            if os.path.lexists(folder):  # else it was removed meanwhile
                known_as = error if isinstance(error, RunProblem) else unreadable(folder, error)
                problems.append(known_as.problem)
            continue
        runs.append(Run(folder, texts))
        problems += damaged
        if not damaged:  # else it is read until its evaluations are whole
            lines[name] = _line(name, digest, texts)
            new.append(name)
    if cached:
        with suppress(OSError):  # a store that cannot be written to can be read all the same
            _update(store / CACHE, files, known, lines, new)
    return Listing(_by_key(runs), problems)


def older_folders(store: Path) -> dict[str, list[str]]:
    """The folders of runs that older versions stored under other keys, by the key that such a run has now.

    A folder's name says what was run, so what the cache knows of it holds as long as it is there.
    """
    known = _read(_cache_files(store / CACHE))
    folders: dict[str, list[str]] = {}
    for name in filter(is_key, run_folders(store)):
        # RecursionError: of JSON that is nested too deep. Whatever is not whole, `examine` says so.
        with suppress(OSError, ValueError, TypeError, KeyError, RecursionError):
            key = known[name][_TEXTS][:32].decode() if name in known else read_spec_key(store / RUNS / name)
            if key != name:
                folders.setdefault(key, []).append(name)
    return folders


def _by_key(runs: Iterable[Run]) -> dict[str, Run]:
    """As `Store` finds them: older versions could store a training several times, with different evaluations."""
    chosen: dict[str, Run] = {}
    for run in runs:
        if (other := chosen.setdefault(run.key, run)) is not run and _preference(run) > _preference(other):
            chosen[run.key] = run
    return dict(sorted(chosen.items()))


def _preference(run: Run) -> tuple[bool, int]:
    """The folder of the current version, else that with most evaluations."""
    return run.path.name == run.key, len(run.evaluations)


def run_folders(store: Path) -> list[str]:
    """The names of what lies among the runs."""
    with suppress(FileNotFoundError):
        return sorted(os.listdir(store / RUNS))
    return []


def _digest(state: State) -> bytes:
    text = repr(sorted(state.items())).encode(errors="surrogateescape")
    return hashlib.blake2b(text, digest_size=12).hexdigest().encode()


def _line(name: str, digest: bytes, texts: bytes) -> bytes:
    return b"%s %s %08x %s\n" % (name.encode(), digest, zlib.crc32(texts), texts)


def _cache_files(folder: Path) -> list[Path]:
    with suppress(FileNotFoundError), os.scandir(folder) as entries:
        return [Path(entry.path) for entry in entries if _CACHE_FILE.fullmatch(entry.name)]
    return []


def _read(files: Iterable[Path]) -> dict[str, bytes]:
    """The lines by key; those of other versions are left alone."""
    lines: dict[str, bytes] = {}
    for path in (file for file in files if file.suffix == _SUFFIX):
        with suppress(OSError):  # merged by another process, or not for us to read
            for line in path.read_bytes().splitlines(keepends=True):
                if line[_CHECK] == b"%08x" % zlib.crc32(memoryview(line)[_TEXTS]):
                    lines[line[_KEY].decode("ascii", "replace")] = line
    return lines


def _update(folder: Path, files: list[Path], known: dict[str, bytes], lines: dict[str, bytes], new: list[str]) -> None:
    """Write what is new as one more file; or all as one if there are many files or many useless lines."""
    merge = len(files) >= _MOST_FILES or len(known) > 2 * len(lines) + 100
    if not new and not merge:
        return
    folder.mkdir(exist_ok=True)
    content = b"".join(lines.values() if merge else (lines[key] for key in new))
    write_atomically(folder / f"{secrets.token_hex(8)}{_SUFFIX}", content)
    for path in files if merge else ():
        path.unlink(missing_ok=True)
