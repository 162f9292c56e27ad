"""The records of evaluation logs with the places they come from; nothing in a file is ever executed."""

from __future__ import annotations

import json
import os
import struct
import zipfile
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

from focalcal.predictions.header import PredictionsFileError, check_unpacked_size

SUFFIXES = (".jsonl", ".eval", ".json")
LOG_KEYS = (("doc_id", "resps"), ("custom_id", "response"))  # of lm-evaluation-harness and of batches
_ZSTD = 93  # the compression of a zip entry, which Python's zipfile does not know before 3.14


class Record(NamedTuple):
    """One record of a log, where it stands, and what the log says of its task."""

    value: dict[str, Any]
    path: Path
    line: int
    where: str
    about: str = ""


def is_log(path: str | os.PathLike[str], *, named: bool = False) -> bool:
    """Whether a path is that of an evaluation log, or a folder of some; `named` says that JSON lines are one."""
    path = Path(path)
    if path.is_dir():
        parts = sorted(each for each in path.iterdir() if not each.name.startswith("."))
        inner = [each for each in parts if each.suffix in SUFFIXES or (each / "per_instance_stats.json").exists()]
        return bool(inner) and (inner[0].is_dir() or is_log(inner[0], named=named))
    if path.suffix.lower() != ".jsonl" or named:
        return path.suffix.lower() in SUFFIXES
    with path.open("rb") as handle:
        try:
            first = json.loads(handle.readline(1 << 24))
        except ValueError:
            return False  # a table's reader says what is wrong
    return isinstance(first, dict) and any(set(keys) <= first.keys() for keys in LOG_KEYS)


def log_files(paths: Iterable[str | os.PathLike[str]]) -> list[Path]:
    """The files themselves; of a folder those of samples, or all of a run of HELM, in the order of their names."""
    files: list[Path] = []
    for given in map(Path, paths):
        if not given.is_dir():
            files.append(given)
            continue
        found = [given / "per_instance_stats.json"] if (given / "per_instance_stats.json").exists() else []
        for pattern in () if found else ("samples_*.jsonl", "*.jsonl", "*.eval", "*.json", "*/per_instance_stats.json"):
            if found := sorted(given.glob(pattern)):
                break
        if not found:
            raise PredictionsFileError(f"{given}: a folder must hold evaluation logs, got none; name the files")
        files += found
    if not files:
        raise PredictionsFileError("paths must name at least one evaluation log, got none")
    return files


def at_path(value: Any, path: str) -> Any:
    """What is at a path such as "scores.judge.value", keys and numbers of list entries; None if there is nothing."""
    for key in path.split("."):
        if isinstance(value, dict):
            value = value.get(key)
        elif isinstance(value, list) and key.isdigit() and int(key) < len(value):
            value = value[int(key)]
        else:
            return None
    return value


def records(path: Path) -> Iterator[Record]:
    """Every record of a file: a line, a sample of Inspect's, an instance of HELM's."""
    try:
        if path.suffix.lower() == ".eval":
            yield from _archive(path)
        elif path.suffix.lower() == ".json":
            yield from _document(path)
        else:
            yield from _lines(path)
    except OSError as error:
        raise PredictionsFileError(f"{path}: {error.strerror or error}; check the path and its permissions") from error
    except (zipfile.BadZipFile, UnicodeDecodeError, KeyError, struct.error) as error:
        raise PredictionsFileError(f"{path}: cannot be read as an evaluation log ({error!r}); make it again") from error


def _parsed(text: str | bytes, where: str) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as error:
        raise PredictionsFileError(f"{where}: must be JSON, got {error}; it may be cut off: make it again") from error


def _lines(path: Path) -> Iterator[Record]:
    with path.open(encoding="utf-8") as handle:
        for number, line in enumerate(handle, 1):
            if not line.strip():
                continue
            where = f"{path}, line {number}"
            value = _parsed(line, where)
            if not isinstance(value, dict):
                raise PredictionsFileError(f"{where}: a line must be an object, got {type(value).__name__}; fix it")
            yield Record(value, path, number, where)


def _document(path: Path) -> Iterator[Record]:
    """A log of Inspect's, or the statistics of a run of HELM's, whose name is in `run_spec.json` beside them."""
    document = _parsed(path.read_bytes(), str(path))
    if isinstance(document, dict) and {"eval", "samples"} <= document.keys():
        task = document["eval"]["task"]
        for row, sample in enumerate(document["samples"] or ()):
            yield Record(sample, path, row, f"{path}, sample {sample.get('id')!r}", task)
    elif isinstance(document, list) and all(isinstance(each, dict) and "stats" in each for each in document):
        spec = path.parent / "run_spec.json"
        name = _parsed(spec.read_bytes(), str(spec))["name"] if spec.exists() else path.parent.name
        for row, instance in enumerate(document):
            yield Record(instance, path, row, f"{path}, instance {instance.get('instance_id')!r}", name)
    else:
        raise PredictionsFileError(
            f"{path}: a .json must be a log of Inspect with its samples or HELM's per_instance_stats.json, got "
            f"{type(document).__name__}; JSON lines end in .jsonl"
        )


def _archive(path: Path) -> Iterator[Record]:
    """Inspect's own format: a zip with a JSON file per sample."""
    size = path.stat().st_size
    with zipfile.ZipFile(path) as archive, path.open("rb") as handle:
        check_unpacked_size(sum(each.file_size for each in archive.infolist()), size)
        task = _parsed(_entry(archive, handle, "header.json"), f"{path}, header.json")["eval"]["task"]
        for name in archive.namelist():
            if name.startswith("samples/"):
                sample = _parsed(_entry(archive, handle, name), f"{path}, {name}")
                yield Record(sample, path, 0, f"{path}, sample {sample.get('id')!r}", task)


def _entry(archive: zipfile.ZipFile, handle: Any, name: str) -> bytes:
    about = archive.getinfo(name)
    if about.compress_type != _ZSTD:
        return archive.read(name)
    import pyarrow

    handle.seek(about.header_offset + 26)  # the lengths of name and extra field, which the central directory may not be
    skipped = sum(struct.unpack("<HH", handle.read(4)))
    handle.seek(skipped, os.SEEK_CUR)
    packed = pyarrow.BufferReader(handle.read(about.compress_size))
    content: bytes = pyarrow.CompressedInputStream(packed, "zstd").read()
    return content
