"""What a text table does not say of itself: its encoding, the character between columns, the decimal sign.

They are found in the first lines and said as an `InputWarning` where they are not the usual ones; where two readings
would both fit, and give other numbers, nothing is guessed: the caller is asked. Every later line is read strictly as
the first ones were, so that what does not fit them is an error, and never another number.
"""

from __future__ import annotations

import codecs
import csv
import re
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from focalcal.predictions.header import PredictionsFileError
from focalcal.predictions.reading_notes import say_found

DELIMITERS = {",": "comma", ";": "semicolon", "\t": "tab", "|": "bar"}
_LINES = 1000  # that are looked at
_DECIMAL_POINT = re.compile(r"[-+]?(\d+\.\d*|\.\d+)([eE][-+]?\d+)?\s*%?")
_DECIMAL_COMMA = re.compile(r"[-+]?\d*,\d+([eE][-+]?\d+)?\s*%?")
_COMMA_OF_EITHER = re.compile(r"[-+]?[1-9]\d{0,2},\d{3}")  # 1,234 is 1.234 or 1234
_BYTE_ORDER_MARKS = {
    codecs.BOM_UTF8: "utf-8-sig",
    codecs.BOM_UTF32_LE: "utf-32",  # begins as the next one does
    codecs.BOM_UTF16_LE: "utf-16",
    codecs.BOM_UTF16_BE: "utf-16",
}


class Head(NamedTuple):
    """The first lines of a table as text: what stands before the names of the columns, these, and whole lines below.

    `sep` is the character between columns that a line `sep=;`, which Excel writes and reads, says.
    """

    comments: list[str]
    names: str
    lines: list[str]
    sep: str | None
    length: int  # in bytes of UTF-8, up to the first row


def found_encoding(head: bytes, given: str | None) -> str:
    """The encoding of a text that begins so: as a byte order mark says, UTF-8 if it is such, else Windows-1252."""
    if given is not None:
        return given
    for mark, encoding in _BYTE_ORDER_MARKS.items():
        if head.startswith(mark):
            return encoding
    try:
        codecs.getincrementaldecoder("utf-8")().decode(head)
        return "utf-8"
    except UnicodeDecodeError:
        pass
    # Its five bytes without a meaning, control characters, and letters of UTF-8 are in no such text of Western Europe.
    if re.search(
        rb"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f\x81\x8d\x8f\x90\x9d]|[\xc2-\xdf][\x80-\xbf]|[\xe0-\xef][\x80-\xbf]{2}", head
    ):
        raise PredictionsFileError(
            "the text must be in UTF-8, got bytes that are neither that nor Windows-1252; say its encoding, e.g. "
            "encoding='utf-16', or of a command --encoding utf-16"
        )
    return "cp1252"


def head_of(content: bytes, *, whole: bool) -> Head | None:
    """The head in the first bytes, which are UTF-8; None if the names of the columns do not end in them."""
    comments: list[str] = []
    sep, start = None, 3 if content.startswith(codecs.BOM_UTF8) else 0
    while True:
        end = content.find(b"\n", start) + 1 or (len(content) if whole else 0)
        if start >= len(content) or not end:
            return Head(comments, "", [], sep, len(content)) if whole else None
        line = content[start:end].decode()
        if stated := re.fullmatch(r"sep=(.)\r?\n?", line):
            sep = stated[1]
        elif line.startswith("#"):
            comments.append(line)
        elif line.strip():
            break
        start = end
    below = content[end : len(content) if whole else content.rfind(b"\n") + 1][: 1 << 20]
    lines = below.decode(errors="replace").splitlines(keepends=True)
    return Head(comments, line, (lines if whole else lines[:-1])[:_LINES], sep, end)


def cells(lines: Iterable[str], delimiter: str) -> list[list[str]]:
    """The cells of each row that is not empty; none where one is longer than Python's reader takes."""
    try:
        return [row for row in csv.reader(lines, delimiter=delimiter) if row]
    except csv.Error:
        return []


def found_delimiter(head: Head, given: str | None, usual: str) -> str:
    """The character between the columns: the one that gives every line as many cells as there are names."""
    if given is not None or head.sep is not None:
        return given or head.sep or usual
    widths = {sep: len(row[0]) for sep in DELIMITERS if sep in head.names and (row := cells([head.names], sep))}
    possible = [sep for sep, width in widths.items() if width > 1]
    if len(possible) > 1 and head.lines:
        fitting = [
            sep for sep in possible if {len(row) for row in cells(head.lines[:-1] or head.lines, sep)} == {widths[sep]}
        ]
        possible = fitting or ([usual] if usual in possible else possible)
    if len(possible) > 1 and head.lines:
        names = " or ".join(f"{sep!r}" for sep in possible)
        raise PredictionsFileError(
            f"one character must stand between columns, got lines that fit {names}; say which, e.g. "
            f"delimiter={possible[0]!r}, or of a command --delimiter {DELIMITERS[possible[0]]}"
        )
    return usual if usual in possible or not possible else possible[0]


def found_decimal(rows: Sequence[Sequence[str]], given: str | None) -> str:
    """The decimal sign of numbers: a comma if some can be nothing else, and none has a point."""
    if given is not None:
        return given
    numbers = [cell.strip() for row in rows for cell in row]
    with_comma = [cell for cell in numbers if _DECIMAL_COMMA.fullmatch(cell)]
    if not with_comma or any(map(_DECIMAL_POINT.fullmatch, numbers)):
        return "."  # where there are both, the reader names the first cell that is no number
    unclear = next((cell for cell in with_comma if _COMMA_OF_EITHER.fullmatch(cell)), "")
    if not all(map(_COMMA_OF_EITHER.fullmatch, with_comma)):
        return ","
    raise PredictionsFileError(
        f"the comma in numbers must have one meaning, got {unclear!r}, which may be {unclear.replace(',', '.')} or "
        f"{unclear.replace(',', '')}; say decimal=',', or of a command --decimal comma, if it is the decimal sign, and "
        "else write thousands without it"
    )


def say_dialect(encoding: str, delimiter: str, decimal: str, *, found: Sequence[str]) -> None:
    """One warning of all that was found and not said."""
    said = {
        "encoding": f"its text as {'Windows-1252 (Western Europe)' if encoding == 'cp1252' else encoding.upper()}",
        "delimiter": f"its columns as separated by a {DELIMITERS.get(delimiter, repr(delimiter))}",
        "decimal": "the comma in its numbers as the decimal sign",
    }
    if not found:
        return
    say_found(
        f"a text table was read with {', '.join(said[name] for name in found)}; say "
        f"{', '.join(f'{name}=... (--{name})' for name in found)} if that is wrong"
    )
