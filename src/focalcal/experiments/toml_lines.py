"""On which line of a TOML text each key stands, which `tomllib` does not tell."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping

Path = tuple[str | int, ...]
_BETWEEN = " \t\r\n"
_ENDS_VALUE = ",]}\n#"


def line_numbers(text: str) -> dict[Path, int]:
    """The line, from 1, of every table, key, inline key and list element of a text that `tomllib` accepts.

    >>> line_numbers('seeds = [0,\\n  1]\\n[[objectives]]\\nname = "ce"\\n')[("objectives", 0, "name")]
    4
    """
    return _Scan(text).found


def line_of(path: Path, lines: Mapping[Path, int]) -> int:
    """The line of the path or, for what is not written down, of the nearest thing around it; 1 for none at all."""
    while path and path not in lines:
        path = path[:-1]
    return lines.get(path, 1)


class _Scan:
    """One pass over the text, statement by statement."""

    def __init__(self, text: str) -> None:
        self.text, self.at = text.replace("\r\n", "\n"), 0
        self.found: dict[Path, int] = {}
        self._tables_in: dict[Path, int] = {}  # of each array of tables, how many there are so far
        table: Path = ()
        while self._skip(_BETWEEN):
            if self._peek("["):
                table = self._header()
            else:
                self._pair(table)

    def _peek(self, mark: str) -> bool:
        return self.text.startswith(mark, self.at)

    def _skip(self, characters: str) -> bool:
        """Past these characters and, if they include the line's end, past comments; whether anything is left."""
        while self.at < len(self.text):
            if self.text[self.at] in characters:
                self.at += 1
            elif self._peek("#") and "\n" in characters:
                end = self.text.find("\n", self.at)
                self.at = len(self.text) if end < 0 else end
            else:
                return True
        return False

    def _enter(self, path: Path, at: int) -> None:
        self.found.setdefault(path, self.text.count("\n", 0, at) + 1)

    def _header(self) -> Path:
        start, several = self.at, self._peek("[[")
        self.at += 2 if several else 1
        names = self._names()
        self.at = self.text.index("]", self.at) + (2 if several else 1)
        path = (*self._resolved(names[:-1]), names[-1])
        for depth in range(1, len(names)):  # [a.b] makes a, too
            self._enter(self._resolved(names[:depth]), start)
        if several:
            count = self._tables_in.get(path, 0)
            self._tables_in[path] = count + 1
            self._enter(path, start)
            path = (*path, count)
        else:
            path = self._resolved(names)
        self._enter(path, start)
        return path

    def _resolved(self, names: list[str]) -> Path:
        """The path of a table's name: in an array of tables it means the last one."""
        path: Path = ()
        for name in names:
            path = (*path, name)
            if path in self._tables_in:
                path = (*path, self._tables_in[path] - 1)
        return path

    def _names(self) -> list[str]:
        """A dotted key; the place is then before what follows it."""
        names = []
        while True:
            self._skip(" \t")
            start = self.at
            if self._peek('"') or self._peek("'"):
                self._string()
            else:
                while self.text[self.at] not in " \t.=]":
                    self.at += 1
            names.append(_plain_key(self.text[start : self.at]))
            self._skip(" \t")
            if not self._peek("."):
                return names
            self.at += 1

    def _pair(self, table: Path) -> None:
        start = self.at
        names = self._names()
        for depth in range(1, len(names) + 1):
            self._enter((*table, *names[:depth]), start)
        self.at = self.text.index("=", self.at) + 1
        self._skip(" \t")
        self._value((*table, *names))

    def _value(self, path: Path) -> None:
        if self._peek('"') or self._peek("'"):
            self._string()
        elif self._peek("["):
            self._members("]", path)
        elif self._peek("{"):
            self._members("}", path)
        else:
            while self.at < len(self.text) and self.text[self.at] not in _ENDS_VALUE:
                self.at += 1

    def _members(self, closing: str, path: Path) -> None:
        self.at += 1
        count = 0
        while self._skip(_BETWEEN + ",") and not self._peek(closing):
            if closing == "}":
                self._pair(path)
            else:
                self._enter((*path, count), self.at)
                self._value((*path, count))
                count += 1
        self.at += 1

    def _string(self) -> None:
        quote = self.text[self.at]
        mark = quote * 3 if self._peek(quote * 3) else quote
        self.at += len(mark)
        while not self._peek(mark):
            self.at += 2 if quote == '"' and self._peek("\\") else 1
        self.at += len(mark)
        while len(mark) == 3 and self._peek(quote):  # up to two quotes may stand before the closing three
            self.at += 1


def _plain_key(written: str) -> str:
    if written[0] not in "\"'":
        return written
    (key,) = tomllib.loads(f"{written} = 0")
    return key
