"""Names from outside as names of files."""

from __future__ import annotations

import re
from collections.abc import Iterable

_LONGEST = 120


def as_file_name(*parts: str) -> str:
    """Letters, digits and a few signs that every file system takes; runs of others are a dash.

    >>> as_file_name("ece", "digits/small cnn")
    'ece-digits-small-cnn'
    """
    return "-".join(re.sub(r"[^A-Za-z0-9_.=]+", "-", part).strip("-.") or "unnamed" for part in parts)


def unused(name: str, taken: Iterable[str]) -> str:
    """The name, with a number if another has it: `a/b` and `a b` look alike in a file's name.

    >>> unused("a-b", ["A-b", "a-b-2"])
    'a-b-3'
    """
    wanted, number, others = name[:_LONGEST], 2, {one.lower() for one in taken}
    found = wanted
    while found.lower() in others:
        found, number = f"{wanted}-{number}", number + 1
    return found
