"""What listings know already, so that they read each run once: a cache beside the runs.

A run is never changed once it is there. What was read of it stays true as long as its files have the same sizes and
times. The cache is a folder of files, each written whole by one process and then only removed, so that any number of
processes may read and write; what is lost is read again from the runs. Deleting the folder is safe.
"""

from __future__ import annotations

import hashlib
import os
import secrets
import zlib
from collections.abc import Collection, Iterable
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from focalcal.core.atomic import write_atomically
from focalcal.results.entry import Entry, State, examined, state_of, unreadable
from focalcal.results.layout import CACHE, RUNS
from focalcal.results.problems import Problem, RunProblem

_SUFFIX = ".v1"  # of the form of a line: key, state, CRC-32 of the texts, texts with tabs between
_KEY, _STATE, _CHECK, _TEXTS = slice(0, 32), slice(33, 57), slice(58, 66), slice(67, -1)  # of a line
_MOST_FILES = 8


class Listing(NamedTuple):
    """The runs of a store by key, in that order, and what in its folder is not a run that can be used."""

    entries: dict[str, Entry]
    problems: list[Problem]


def listing(store: Path, among: Collection[str] | None = None) -> Listing:
    """Every run, or those of these keys, from the cache where that holds, else from the folder; then it is updated."""
    files = _cache_files(store / CACHE)
    known = _read(files)
    entries: dict[str, Entry] = {}
    problems: list[Problem] = []
    lines: dict[str, bytes] = {}
    new: list[str] = []
    for name in _names(store / RUNS, among):
        folder = os.path.join(store, RUNS, name)  # not a Path: there are thousands
        try:
            state = state_of(folder)
            digest = _digest(state)
            old = known.get(name)
            if old is not None and old[_STATE] == digest:
                entries[name], lines[name] = Entry(name, folder, old[_TEXTS]), old
                continue
            entry = examined(folder, state)
        except (RunProblem, OSError) as error:
            if os.path.lexists(folder):  # else it was removed meanwhile
                known_as = error if isinstance(error, RunProblem) else unreadable(folder, error)
                problems.append(known_as.problem)
            continue
        entries[name], lines[name] = entry, _line(entry, digest)
        new.append(name)
    with suppress(OSError):  # a store that cannot be written to can be read all the same
        _update(store / CACHE, files, known, lines, new, tidy=among is None)
    return Listing(entries, problems)


def _names(runs: Path, among: Collection[str] | None) -> list[str]:
    try:
        found = os.listdir(runs)
        return sorted(found if among is None else set(found).intersection(among))
    except FileNotFoundError:
        return []


def _digest(state: State) -> bytes:
    text = repr(sorted(state.items())).encode(errors="surrogateescape")
    return hashlib.blake2b(text, digest_size=12).hexdigest().encode()


def _line(entry: Entry, digest: bytes) -> bytes:
    return b"%s %s %08x %s\n" % (entry.key.encode(), digest, zlib.crc32(entry.texts), entry.texts)


def _cache_files(folder: Path) -> list[Path]:
    with suppress(FileNotFoundError), os.scandir(folder) as names:
        return [Path(one.path) for one in names if one.name.endswith(_SUFFIX)]
    return []


def _read(files: Iterable[Path]) -> dict[str, bytes]:
    """The lines by key."""
    found: dict[str, bytes] = {}
    for path in files:
        with suppress(OSError):  # merged by another process, or not for us to read
            for line in path.read_bytes().splitlines(keepends=True):
                if line[_CHECK] == b"%08x" % zlib.crc32(memoryview(line)[_TEXTS]):
                    found[line[_KEY].decode("ascii", "replace")] = line
    return found


def _update(
    folder: Path, files: list[Path], known: dict[str, bytes], lines: dict[str, bytes], new: list[str], *, tidy: bool
) -> None:
    """Write what is new as one more file; or, to be tidy, all as one if there are many files or many useless lines."""
    merge = tidy and (len(files) >= _MOST_FILES or len(known) > 2 * len(lines) + 100)
    if not new and not merge:
        return
    folder.mkdir(exist_ok=True)
    content = b"".join(lines.values() if merge else (lines[key] for key in new))
    write_atomically(folder / f"{secrets.token_hex(8)}{_SUFFIX}", content)
    for path in files if merge else ():
        path.unlink(missing_ok=True)
