"""Predictions as .csv: a header line, a line a row, numbers with every digit that matters.

The first line of a file of ours is a comment, `# focalcal: {...}`, with what the columns do not say.
"""

from __future__ import annotations

import csv
import io
import os
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from itertools import chain, islice
from operator import itemgetter
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from focalcal.predictions.checks import text_fault
from focalcal.predictions.chunk import joined, rows_at_once
from focalcal.predictions.errors import PredictionsFileError, believable, problem
from focalcal.predictions.header import KEY, Header, Names
from focalcal.predictions.table import Layout, columns_of, layout, stored_columns

if TYPE_CHECKING:
    from focalcal.predictions.record import Predictions

_MARK = f"# {KEY}:"
_QUOTED = "\r\n"  # csv.writer quotes cells that have a character of its line end, and readers end lines at either
_BLOCK = 1024  # rows whose cells are Python objects at once: more keep the garbage collector busy


def write(handle: IO[bytes], predictions: Predictions, header: str) -> None:
    """The comment, the column names, the rows. 9 digits give a float32 back exactly, `repr` a float64."""
    text = io.TextIOWrapper(handle, encoding="utf-8", newline="", write_through=False)
    try:
        text.write(f"{_MARK} {header}\n")
        writer = csv.writer(_LineFeeds(text), lineterminator=_QUOTED)
        writer.writerow([column for column, _, _ in columns_of(predictions)])
        for part in predictions.batches(rows_at_once(predictions.n_classes)):
            writer.writerows(zip(*(_texts(values) for values in stored_columns(part)), strict=True))
        text.flush()
    finally:
        text.detach()


class _LineFeeds:
    """Ends lines with a line feed alone, so that a file cut by one byte shows it."""

    def __init__(self, text: io.TextIOWrapper) -> None:
        self.text = text

    def write(self, line: str) -> int:
        return self.text.write(line[: -len(_QUOTED)] + "\n")


def _texts(values: NDArray[Any]) -> list[Any]:
    return list(map("%.9g".__mod__, values.tolist())) if values.dtype == np.float32 else values.tolist()


class _Reader:
    """An open file behind its header: rows of cells and the line each ends on."""

    def __init__(self, path: Path, handle: IO[str], names: Names) -> None:
        self.path, self.size = path, os.fstat(handle.fileno()).st_size
        self.before, self.header, first = 0, None, handle.readline()
        comment = ""
        while first.startswith("#") or (first and not first.strip()):
            comment = first if first.startswith("#") else comment
            if first.startswith(_MARK):
                if self.header:
                    raise self.wrong(self.before + 1, f"must not be a second {_MARK!r}", "two headers")
                self.header = Header.parse(first[len(_MARK) :], path)
            self.before += 1
            first = handle.readline()
        self.cells = csv.reader(chain([first], handle), strict=True)
        columns = [name.strip() for name in next(self.cells, [])]
        self.width = len(columns)
        try:
            self.layout = layout(path, names, self.header, columns)
        except PredictionsFileError:
            if not comment.startswith(_MARK) and comment.count(",") == self.width - 1 > 0:
                rule, remedy = (
                    "the line of column names must not begin with '#'",
                    "take the '#' away, or quote the name",
                )
                raise problem(path, rule, repr(comment[:60].rstrip()), remedy) from None
            raise
        self.at = {name: k for k, name in enumerate(columns)}

    def rows(self) -> Iterator[tuple[int, list[str]]]:
        """(line, cells) of each row that is not blank."""
        for cells in self.cells:
            if not cells:
                continue
            line = self.before + self.cells.line_num
            if len(cells) != self.width:
                raise self.wrong(line, f"must have {self.width} cells, as the header", len(cells))
            yield line, cells

    def wrong(self, line: int, rule: str, found: object) -> Exception:
        """The error of a line."""
        return problem(self.path, f"line {line} {rule}", found, "mend the line, or make the file again")


def chunks(path: Path, names: Names, rows: int | None) -> Iterator[dict[str, Any]]:
    """The rows in order, at most `rows` at a time; all in one with None."""
    with open(path, encoding="utf-8-sig", newline="") as handle:
        reader = _Reader(path, handle, names)
        if reader.header:
            _ends_with_a_line(path)
        lines, count = reader.rows(), 0
        while parts := list(_blocks(reader, lines, rows)):
            count += sum(len(part["labels"]) for part in parts)
            yield joined(parts)
    stated = reader.header.rows if reader.header else max(1, count)
    if count != stated:
        raise problem(path, f"the file must hold {stated} row(s)", count, "it may be cut off: make it again")


def _blocks(reader: _Reader, lines: Iterator[Any], rows: int | None) -> Iterator[dict[str, Any]]:
    """The next rows, in blocks."""
    left, count, widest = sys.maxsize if rows is None else rows, 0, Counter[str]()
    while left and (block := list(islice(lines, min(left, _BLOCK)))):
        fields = _fields(reader, block)
        left, count = left - len(block), count + len(block)
        for name in ("ids", "groups"):  # joined, all are as wide as the widest
            widest[name] = max(widest[name], fields[name].itemsize if name in fields else 0)
        believable(reader.path, count * widest.total(), reader.size)
        yield fields


def _ends_with_a_line(path: Path) -> None:
    with open(path, "rb") as handle:
        handle.seek(-1, os.SEEK_END)
        if handle.read(1) not in (b"\n", b"\r"):
            raise problem(path, "the last line must be whole", "no line end", "it may be cut off: make it again")


def _fields(reader: _Reader, block: list[tuple[int, list[str]]]) -> dict[str, Any]:
    found: Layout = reader.layout
    header = reader.header
    labels = _numbers(reader, block, found.labels, int, np.int64)
    fields = {
        found.kind: _numbers(reader, block, found.scores, float, np.float64),
        "labels": labels if found.multilabel else labels[:, 0],
        "multilabel": found.multilabel,
        "header": header,
        "text": True,
    }
    if found.posterior is not None:
        fields["posterior"] = _numbers(reader, block, found.posterior, float, np.float64)
    for name, column in (("ids", found.ids), ("groups", found.groups)):
        if column is not None:
            if header and getattr(header, name) == "int":
                fields[name] = _numbers(reader, block, [column], int, np.int64)[:, 0]
            else:
                fields[name] = _names(reader, block, column)
    return fields


def _names(reader: _Reader, block: list[tuple[int, list[str]]], column: str) -> NDArray[Any]:
    """Cells as text."""
    texts = [cells[reader.at[column]] for _, cells in block]
    if fault := text_fault(texts):
        at, rule, found = fault
        raise reader.wrong(block[at][0], f"must {rule} under {column!r}", found)
    return np.array(texts, dtype=np.str_)


def _numbers(
    reader: _Reader, block: list[tuple[int, list[str]]], columns: list[str], number: Callable[[str], Any], dtype: Any
) -> NDArray[Any]:
    """Cells as numbers, (rows, columns)."""
    at = [reader.at[column] for column in columns]
    pick = itemgetter(*at) if len(at) > 1 else lambda cells: (cells[at[0]],)
    texts = [pick(cells) for _, cells in block]
    try:
        flat = np.fromiter(map(number, chain.from_iterable(texts)), dtype, len(texts) * len(at))
        if all(map(_plain, map("".join, texts))):
            return flat.reshape(len(texts), len(at))
    except (ValueError, OverflowError):
        pass
    kind = "a number" if number is float else "an integer of 64 bits"
    for (line, _), cells in zip(block, texts, strict=True):
        for column, text in zip(columns, cells, strict=True):
            if not _is(number, dtype, text):
                raise reader.wrong(line, f"must have {kind} under {column!r}", repr(text[:60]))
    raise AssertionError("every cell is a number by itself")


def _is(number: Callable[[str], Any], dtype: Any, text: str) -> bool:
    try:
        np.array(number(text), dtype)
    except (ValueError, OverflowError):
        return False
    return _plain(text)


def _plain(text: str) -> bool:
    """Whether a number is written as everyone writes it: Python also takes 1_000 and the digits of other scripts."""
    return text.isascii() and "_" not in text
