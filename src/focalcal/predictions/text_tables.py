"""Tables as text, row by row: .csv, .tsv and JSON lines, compressed or not, read by pyarrow in blocks."""

from __future__ import annotations

import codecs
import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, suppress
from functools import cached_property
from itertools import islice
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

from focalcal.predictions import text_dialect
from focalcal.predictions.columns import check_width
from focalcal.predictions.header import KEY, Header, Names, NoRowsError, PredictionsFileError, check_unpacked_size
from focalcal.predictions.locations import Source, compression_of, opened, suffix_of
from focalcal.predictions.text_cells import arrow_module

MARK = f"# {KEY}:"
_BLOCK = 1 << 24  # bytes read at once; a line must fit
_MANY = 10_000  # columns, from which on Arrow takes 30 times the bytes of a block
_LONGEST_HEAD = 1 << 26


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
        return file if self._compression is None else arrow_module().CompressedInputStream(file, self._compression)

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

    text = True  # its numbers are

    def __init__(self, source: Source, names: Names, stack: ExitStack) -> None:
        self._names, self._text = names, _TextSource(source, names.encoding, stack)
        self.size = self._text.size
        head = self._text.start(text_dialect.head_of)
        self._head: text_dialect.Head = head
        stated = next((line for line in head.comments if line.startswith(MARK)), None)
        self.header = None if stated is None else Header.parse(stated.removeprefix(MARK))
        self._usual = "\t" if suffix_of(source) == ".tsv" else ","
        self.delimiter, self.decimal = self._usual, "."
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

    def schema(self, columns: Sequence[str]) -> Any:
        """What Arrow takes the first lines of some columns for."""
        check_width(len(columns))
        reader, content = arrow_module(".csv"), arrow_module().BufferReader("".join(self._head.lines).encode())
        options = reader.ConvertOptions(include_columns=list(columns), decimal_point=self._decimal_sign(columns))
        return reader.read_csv(content, reader.ReadOptions(column_names=self.columns), self._parsing, options).schema

    @cached_property
    def _parsing(self) -> Any:
        return arrow_module(".csv").ParseOptions(delimiter=self.delimiter, newlines_in_values=True)

    def _decimal_sign(self, columns: Sequence[str]) -> str:
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
        types: Mapping[str, Any],
        *,
        numbers: Mapping[str, Any],
        null_values: Sequence[str] | None = (),
        percent: bool = False,
        **_: Any,
    ) -> Iterator[Any]:
        """Arrow's batches, in which `numbers` are of these types, or from some batch on text for `numbers_of_text`.

        They are text where they may be percentages, and where Arrow meets a cell that is no number, or an infinity,
        which it makes of -1e400 as well. Other columns are of their `types`, or what Arrow finds.
        """
        arrow, types_ = arrow_module(), arrow_module(".types")
        self.decimal, done = self._decimal_sign(list(numbers)), 0
        self._say()
        floats = [name for name, kind in numbers.items() if types_.is_floating(kind)]
        if not percent:
            with suppress(arrow.ArrowInvalid):
                for batch in self._batches(columns, {**types, **numbers}, null_values):
                    if any(np.isinf(batch.column(name)).any() for name in floats):
                        break
                    done += 1
                    yield batch
                else:
                    return
        try:
            texts = {**types, **dict.fromkeys(numbers, arrow.string())}
            yield from islice(self._batches(columns, texts, null_values), done, None)
        except arrow.ArrowInvalid as error:
            if "invalid UTF8" in str(error):
                raise PredictionsFileError(
                    f"the text must be in {self._text.encoding.upper()}, as its first lines are, got other bytes below "
                    "them; say its encoding, e.g. encoding='cp1252', or of a command --encoding cp1252"
                ) from error
            if "Empty CSV file" not in str(error):
                raise

    def _batches(self, columns: Sequence[str], types: Mapping[str, Any], nulls: Sequence[str] | None) -> Iterator[Any]:
        reader = arrow_module(".csv")
        block = _BLOCK if len(self.columns) < _MANY else min(_BLOCK, max(1 << 21, 32 * len(self.columns)))
        reading = reader.ReadOptions(column_names=self.columns, block_size=block, use_threads=False)
        converting = reader.ConvertOptions(
            include_columns=list(columns),
            column_types=types,
            null_values=None if nulls is None else list(nulls),
            decimal_point=self.decimal,
        )
        unpacked = 0
        with self._text.stream() as stream:
            stream.read(self._head.length)
            for batch in reader.open_csv(stream, reading, self._parsing, converting):
                self._text.checked(unpacked := unpacked + batch.nbytes)
                yield batch

    def _say(self) -> None:
        names = self._names
        found = {
            "encoding": self._text.encoding not in ("utf-8", "utf-8-sig") and names.encoding is None,
            "delimiter": self.delimiter not in (self._usual, names.delimiter),
            "decimal": self.decimal not in (".", names.decimal),
        }
        text_dialect.say_dialect(
            self._text.encoding, self.delimiter, self.decimal, found=[name for name, told in found.items() if told]
        )


class JsonLinesTable:
    """One object per line; its keys are the columns, which the first lines say."""

    header = None
    text = False

    def __init__(self, source: Source, names: Names, stack: ExitStack) -> None:
        self._text, self.decimal = _TextSource(source, names.encoding or "utf-8", stack), names.decimal or "."
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
        arrow, reader = arrow_module(), arrow_module(".json")
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

    def schema(self, columns: Sequence[str]) -> Any:
        """The types of the first lines."""
        return self._schema

    def batches(
        self, columns: Sequence[str], types: Mapping[str, Any], *, numbers: Mapping[str, Any], **_: Any
    ) -> Iterator[Any]:
        """Arrow's batches, with numbers as float64 whatever the first lines have, and lists of them."""
        arrow, kinds, fields = arrow_module(), arrow_module(".types"), []
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
