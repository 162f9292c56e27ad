"""Saving, loading and streaming: the way to the right format, and writes that are whole or nothing."""

from __future__ import annotations

import os
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch
from numpy.typing import NDArray

from focalcal.core.atomic import atomic_file
from focalcal.core.scores import as_tensor
from focalcal.predictions.chunk import joined
from focalcal.predictions.errors import problem, readable, reading
from focalcal.predictions.header import Header, Names, type_name

if TYPE_CHECKING:
    from focalcal.predictions.record import Predictions

FORMATS = {".npz": "npz", ".parquet": "parquet", ".csv": "csv"}  # modules of this package
UNKNOWN_SPLIT = "unknown"


def row_count(rows: Any) -> int:
    """A positive number of rows."""
    if isinstance(rows, bool) or not hasattr(rows, "__index__") or int(rows) < 1:
        raise ValueError(f"rows must be an integer >= 1, got {rows!r}")
    return int(rows)


def format_of(path: Path) -> Any:
    """The module that reads and writes the path's suffix."""
    if path.suffix.lower() not in FORMATS:
        raise problem(path, f"the suffix must be one of {', '.join(FORMATS)}", repr(path.suffix), "rename the file")
    return import_module(f"focalcal.predictions.{FORMATS[path.suffix.lower()]}")


def save(predictions: Predictions, path: str | os.PathLike[str]) -> None:
    """Write under a temporary name beside the target; rename when the bytes are on the disk."""
    path = Path(path)
    form = format_of(path)
    if not path.parent.is_dir():
        raise problem(path, "the folder must exist", f"no folder {path.parent}", "create it first")
    if path.is_dir():
        raise problem(path, "the path must name a file", "a folder", "add a file name")
    with atomic_file(path) as handle:
        form.write(handle, predictions, Header.of(predictions))


def load(cls: type[Predictions], path: str | os.PathLike[str], names: Names, *, mmap: bool) -> Predictions:
    """One `Predictions` from a file."""
    if not isinstance(mmap, bool):
        raise TypeError(f"mmap must be True or False, got {mmap!r}")
    path = Path(path)
    form = format_of(path)
    if mmap and (form.__name__.rpartition(".")[2] != "npz" or names.dtype is not None):
        raise problem(
            path,
            "mmap=True maps the arrays of a .npz as they are stored",
            f"{path.suffix} and dtype={names.dtype}",
            "use stream(path), or load without mmap",
        )
    with reading(path):
        readable(path)
        fields = form.mapped(path, names) if mmap else joined(list(form.chunks(path, names, None)))
        return _predictions(cls, fields, names)


def stream(cls: type[Predictions], path: str | os.PathLike[str], names: Names, rows: int) -> Iterator[Predictions]:
    """A file's rows as `Predictions` of at most `rows` rows."""
    path = Path(path)
    form = format_of(path)
    with reading(path):
        readable(path)

    def each() -> Iterator[Predictions]:
        chunks, start = form.chunks(path, names, rows), 0
        while True:
            with reading(path, start):
                fields = next(chunks, None)
                if fields is None:
                    return
                part = _predictions(cls, fields, names)
            start += part.n
            yield part

    return each()


def _predictions(cls: type[Predictions], fields: dict[str, Any], names: Names) -> Predictions:
    """Predictions of what a format read, in the width that the caller or the header asks for."""
    header, text = fields.pop("header"), fields.pop("text", False)
    kind = "logits" if "logits" in fields else "probs"
    for name, stated in ((kind, "dtype"), ("posterior", "posterior")):
        if fields.get(name) is None or fields[name].dtype.kind != "f":
            continue
        if header and not getattr(names, name):
            fields[name] = _narrowed(name, fields[name], getattr(header, stated), text=text)
        if names.dtype:
            fields[name] = as_tensor(name, fields[name]).to(getattr(torch, names.dtype))
    fields["split"] = header.split if header else UNKNOWN_SPLIT
    if names.split is not None:
        fields["split"] = names.split
    if names.multilabel is not None:
        fields["multilabel"] = names.multilabel
    made = cls(provenance=header.provenance if header else None, **fields)
    for name in ("ids", "groups"):
        if header and getattr(names, name) is None and getattr(made, name) is not None:
            found, stated = type_name(getattr(made, name)), getattr(header, name)
            if found != stated:
                raise ValueError(f"{name} must be stored as {stated}, as the header states, got {found}")
    return made


def _narrowed(name: str, values: NDArray[Any], width: str | None, *, text: bool) -> NDArray[Any] | torch.Tensor:
    """Stored scores in the width that the header states. Text has no width; arrays must have the right one."""
    storage = "float64" if width == "float64" else "float32"
    if text:
        values = values.astype(storage, copy=False)
    if values.dtype.name != storage:
        raise ValueError(f"{name} must be stored as {storage}, as the header states {width}, got {values.dtype}")
    return torch.from_numpy(values).to(getattr(torch, width)) if width in ("float16", "bfloat16") else values
