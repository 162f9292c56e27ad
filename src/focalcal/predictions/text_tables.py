"""Tables as text, row by row: .csv, .tsv and JSON lines, compressed or not, read by pyarrow in blocks."""

from __future__ import annotations

import codecs
import os
import re
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from itertools import islice
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

from focalcal.core.extras import required
from focalcal.predictions import text_dialect
from focalcal.predictions.columns import check_width
from focalcal.predictions.header import KEY, Header, Names, NoRowsError, PredictionsFileError, check_unpacked_size
from focalcal.predictions.locations import Source, compression_of, opened, suffix_of

MARK = f"# {KEY}:"
MISSING = ("", "NA", "N/A", "n/a", "#N/A", "NaN", "nan", "NULL", "null", "None")  # in the place of a number
_BLOCK = 1 << 24  # bytes read at once; a line must fit
_LONGEST_HEAD = 1 << 26
_NO_NUMBER = re.compile(  # in Arrow's words, which are the only place that has the row
    r"In CSV column #(?P<column>\d+): Row #(?P<row>\d+): CSV conversion error to \w+: invalid value '(?P<value>.*)'",
    re.S,
)


def _arrow(module: str = "") -> Any:
    return required(f"pyarrow{module}", purpose="Reading or writing predictions as .csv or .parquet")


class _TextSource:
    """The bytes of a text in UTF-8, as often as they are asked for."""

    def __init__(self, source: Source, encoding: str | None, stack: ExitStack) -> None:
        self.place, self._compression = source, compression_of(source)
        with opened(source) as file:
            self.size: int = file.size()
        with self.stream() as stream:
            start = stream.read(1 << 20)
        ours = start.startswith((MARK.encode(), codecs.BOM_UTF8 + MARK.encode()))
        self.encoding = "utf-8" if ours else text_dialect.found_encoding(start, encoding)
        if self.encoding.lower().replace("_", "-") not in ("utf-8", "utf8", "utf-8-sig"):
            self._transcode(Path(stack.enter_context(TemporaryDirectory(prefix="focalcal-")), "rows"))

    def stream(self) -> Any:
        """From the first byte."""
        file = opened(self.place)
        return file if self._compression is None else _arrow().CompressedInputStream(file, self._compression)

    def _transcode(self, target: Path) -> None:
        decoder = codecs.getincrementaldecoder(self.encoding)()
        with self.stream() as stream, target.open("wb") as out:
            while data := stream.read(_BLOCK):
                out.write(decoder.decode(data).encode())
                check_unpacked_size(out.tell(), self.size)
            out.write(decoder.decode(b"", final=True).encode())
        self.place, self._compression = target, None

    def checked(self, unpacked: int) -> None:
        """Refuse a text that unpacks to far more than a file of its size should."""
        if self._compression is not None:
            check_unpacked_size(unpacked, self.size)

    def start(self, enough: Any) -> Any:
        """What `enough(bytes, whole=...)` makes of the first megabyte, or of as much as it needs."""
        with self.stream() as stream:
            content, asked = b"", 1 << 20
            while len(content) < _LONGEST_HEAD:
                more = stream.read(asked)
                content += more
                if (found := enough(content, whole=len(more) < asked)) is not None:
                    return found
                asked = max(asked, len(content))
        raise PredictionsFileError(f"the first line must be shorter than {_LONGEST_HEAD:,} bytes, got a longer one")


class CsvTable:
    """Rows of cells between commas, or what is found or stated to stand between them."""

    def __init__(self, source: Source, names: Names, stack: ExitStack) -> None:
        self._names, self._text = names, _TextSource(source, names.encoding, stack)
        self.size = self._text.size
        head = self._text.start(text_dialect.head_of)
        self._head: text_dialect.Head = head
        stated = next((line for line in head.comments if line.startswith(MARK)), None)
        self.header = None if stated is None else Header.parse(stated.removeprefix(MARK))
        self._usual = "\t" if suffix_of(source) == ".tsv" else ","
        self.delimiter = self._usual
        if self.header is None:
            self.delimiter = text_dialect.found_delimiter(head, names.delimiter, self._usual)
        rows = text_dialect.cells([head.names], self.delimiter)
        self.columns = [name.strip() for name in rows[0]] if rows else []
        if not self.columns:
            raise NoRowsError("the file must begin with the names of its columns, got nothing; make it again")
        if self.header is not None:
            self._check_last_line()

    def _check_last_line(self) -> None:
        """Refuse a file of ours that is cut off inside its last line."""
        if isinstance(self._text.place, Path) and compression_of(self._text.place) is None:
            with self._text.place.open("rb") as handle:
                handle.seek(-1, os.SEEK_END)
                if handle.read(1) != b"\n":
                    raise PredictionsFileError(
                        "the last line must be whole, got no line end; it may be cut off: make it again"
                    )

    def floating(self, labels: str) -> list[str]:
        """The columns of floating-point numbers in the first lines, if `labels` is text."""
        reader = _arrow(".csv")
        content = "".join(self._head.lines).encode()
        decimal = self.decimal_sign([name for name in self.columns if name != labels])

        def schema(**only: Any) -> Any:
            names = reader.ReadOptions(column_names=self.columns)
            options = reader.ConvertOptions(decimal_point=decimal, **only)
            return reader.read_csv(_arrow().BufferReader(content), names, self._parsing(), options).schema

        if not _is_text(schema(include_columns=[labels]).field(labels).type):
            return []
        check_width(len(self.columns))
        return [field.name for field in schema() if _arrow(".types").is_floating(field.type)]

    def _parsing(self) -> Any:
        return _arrow(".csv").ParseOptions(delimiter=self.delimiter, newlines_in_values=True)

    def decimal_sign(self, columns: Sequence[str]) -> str:
        """The sign in numbers of these columns."""
        if self.header is not None:
            return "."
        wanted = set(columns)
        places = [at for at, name in enumerate(self.columns) if name in wanted]
        rows = text_dialect.cells(self._head.lines, self.delimiter)
        cells = [[row[at] for at in places if at < len(row)] for row in rows]
        return text_dialect.found_decimal(cells, self._names.decimal)

    def batches(
        self,
        columns: Sequence[str],
        types: dict[str, Any],
        *,
        numbers: Sequence[str],
        null_values: Sequence[str] | None = (),
    ) -> Iterator[Any]:
        """Arrow's batches; a cell that is no number, or too large for one, is named by its row, from 0, and column."""
        decimal = self.decimal_sign(numbers)
        self._say(decimal)
        arrow, reader = _arrow(), _arrow(".csv")
        types = {name: kind for name, kind in types.items() if kind is not None}
        reading = (
            reader.ReadOptions(column_names=self.columns, block_size=_BLOCK, use_threads=False),
            self._parsing(),
        )
        nulls = None if null_values is None else list(null_values)
        converting = reader.ConvertOptions(
            include_columns=list(columns), column_types=types, null_values=nulls, decimal_point=decimal
        )
        try:
            with self._rows() as rows, self._rows() as again:
                first_row, unpacked, texts = 0, 0, None
                for number, batch in enumerate(reader.open_csv(rows, *reading, converting)):
                    self._text.checked(unpacked := unpacked + batch.nbytes)
                    floats = [field.name for field in batch.schema if _arrow(".types").is_floating(field.type)]
                    if texts is None and any(np.isinf(batch.column(name)).any() for name in floats):
                        kinds = dict.fromkeys(floats, arrow.string())
                        as_text = reader.ConvertOptions(include_columns=floats, column_types=kinds)
                        texts = islice(reader.open_csv(again, *reading, as_text), number, None)  # from here on in step
                    if texts is not None:
                        _check_range(batch, next(texts), first_row)
                    first_row += batch.num_rows
                    yield batch
        except arrow.ArrowInvalid as error:
            if "Empty CSV file" in str(error):
                return
            if "invalid UTF8" in str(error):
                raise PredictionsFileError(
                    f"the text must be in {self._text.encoding.upper()}, as its first lines are, got other bytes below "
                    "them; say its encoding, e.g. encoding='cp1252', or of a command --encoding cp1252"
                ) from error
            cell = _NO_NUMBER.search(str(error))
            if cell is None:
                raise
            raise no_number(
                self.columns[int(cell["column"])], int(cell["row"]) - 1, cell["value"], commas=decimal == "."
            ) from error

    def _rows(self) -> Any:
        stream = self._text.stream()
        stream.read(self._head.length)
        return stream

    def _say(self, decimal: str) -> None:
        names = self._names
        found = {
            "encoding": self._text.encoding not in ("utf-8", "utf-8-sig") and names.encoding is None,
            "delimiter": self.delimiter not in (self._usual, names.delimiter),
            "decimal": decimal not in (".", names.decimal),
        }
        text_dialect.say_dialect(
            self._text.encoding, self.delimiter, decimal, found=[name for name, told in found.items() if told]
        )


class JsonLinesTable:
    """One object per line; its keys are the columns, which the first lines say."""

    header = None

    def __init__(self, source: Source, names: Names, stack: ExitStack) -> None:
        self._text, self._decimal = _TextSource(source, names.encoding or "utf-8", stack), names.decimal
        self.size = self._text.size
        self._schema = self._text.start(self._first_schema)
        self.columns: list[str] = self._schema.names

    def _first_schema(self, content: bytes, *, whole: bool) -> Any:
        end = len(content) if whole else content.rfind(b"\n") + 1
        if not end:
            return None
        if not content[:end].strip():
            raise NoRowsError("the file must hold at least one row, got none; make it again")
        return self._read(content[:end].removeprefix(codecs.BOM_UTF8), 0).schema

    def _read(self, block: bytes, first_row: int, schema: Any = None) -> Any:
        arrow, reader = _arrow(), _arrow(".json")
        parsing = reader.ParseOptions(
            explicit_schema=schema, unexpected_field_behavior="infer" if schema is None else "ignore"
        )
        reading = reader.ReadOptions(use_threads=False, block_size=max(len(block), 1))
        try:
            return reader.read_json(arrow.BufferReader(block), reading, parsing)
        except (arrow.ArrowInvalid, arrow.ArrowNotImplementedError) as error:
            reason = " ".join(str(error).split())[:300]
            raise PredictionsFileError(
                f"each line must be a JSON object, and a key hold values of one kind, got ({reason}) in the lines from "
                f"row {first_row} on; fix the line"
            ) from error

    def floating(self, labels: str) -> list[str]:
        """The columns of floating-point numbers, if `labels` is text."""
        return floating_columns(self._schema, labels)

    def decimal_sign(self, columns: Sequence[str]) -> str:
        """The sign in numbers that are text."""
        return "." if self._decimal is None else self._decimal

    def batches(
        self,
        columns: Sequence[str],
        types: dict[str, Any],
        *,
        numbers: Sequence[str],
        null_values: Sequence[str] | None = (),
    ) -> Iterator[Any]:
        """Arrow's batches, with numbers as float64 whatever the first lines have, and lists of them."""
        del null_values  # JSON says null
        arrow, kinds, fields = _arrow(), _arrow(".types"), []
        for name in columns:
            found = self._schema.field(name).type
            if name in numbers and kinds.is_integer(found):
                found = arrow.float64()
            elif name in numbers and kinds.is_list(found) and kinds.is_integer(found.value_type):
                found = arrow.list_(arrow.float64())
            fields.append(arrow.field(name, found))
        schema, first_row, unpacked = arrow.schema(fields), 0, 0
        with self._text.stream() as stream:
            rest = stream.read(3).removeprefix(codecs.BOM_UTF8)
            while data := stream.read(_BLOCK):
                self._text.checked(unpacked := unpacked + len(data))
                rest += data
                end = rest.rfind(b"\n") + 1
                if len(rest) > _LONGEST_HEAD and not end:
                    raise PredictionsFileError(f"a line must be shorter than {_LONGEST_HEAD:,} bytes, got a longer one")
                if rest[:end].strip():
                    table = self._read(rest[:end], first_row, schema)
                    first_row += table.num_rows
                    yield from table.to_batches()
                rest = rest[end:]
            if rest.strip():
                yield from self._read(rest, first_row, schema).to_batches()


def no_number(column: str, row: int, value: str, *, commas: bool = False) -> PredictionsFileError:
    """The error for a cell that holds none, with what it may be."""
    remedy = "fill it in, or leave the row out (drop_missing=True, of a command --drop-missing)"
    if "%" in value:
        remedy = 'read percentages with scale="percent"'
    elif commas and re.fullmatch(r"\s*[-+]?\d*,\d+\s*", value):
        remedy = "say decimal=',', of a command --decimal comma, if all numbers have a decimal comma, or fix the cell"
    elif value.strip() not in MISSING:
        remedy = "fill it in, or leave the row out"
    return PredictionsFileError(
        f"column {column!r} must hold a number in every row, got {value[:50]!r} in row {row}; {remedy}"
    )


def _check_range(batch: Any, text: Any, first_row: int) -> None:
    """Refuse digits that Arrow reads as an infinity, as it does -1e400; `text` are the cells of floating columns."""
    for name in text.schema.names:
        has_digits = _arrow(".compute").match_substring_regex(text.column(name), "[0-9]")
        overflows = np.isinf(batch.column(name)) & np.asarray(has_digits)
        if overflows.any():
            at = int(overflows.argmax())
            raise PredictionsFileError(
                f"column {name!r} must hold numbers within the range of {batch.column(name).type}, got "
                f"{text.column(name)[at].as_py()[:50]!r} in row {first_row + at}; fix it, or write -inf for the logit "
                "of an impossible class"
            )


def floating_columns(schema: Any, labels: str) -> list[str]:
    """The columns of floating-point numbers, if `labels` is text."""
    types = _arrow(".types")
    kind = schema.field(labels).type
    if not _is_text(kind.value_type if types.is_dictionary(kind) else kind):
        return []
    return [field.name for field in schema if types.is_floating(field.type)]


def _is_text(kind: Any) -> bool:
    types = _arrow(".types")
    return bool(types.is_string(kind) or types.is_large_string(kind))
