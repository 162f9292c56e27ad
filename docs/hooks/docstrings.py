"""Docstrings as Markdown has them: doctests and indented formulas as code blocks."""

import re
from typing import Any

from griffe import Docstring, DocstringSection, Extension, Function, Object

_EXAMPLE = re.compile(r"^>>> .*(?:\n.+)*", re.MULTILINE)  # Markdown takes >>> for quotations
_SEVERAL = re.compile(r"^    (\w+(?:, \w+)+): (.*(?:\n        .+)*)", re.MULTILINE)  # arguments that share a line
_QUOTATION = re.compile(r"^(    \w+: )>", re.MULTILINE)  # of what begins with >=
_ARGUMENTS = re.compile(r"^Args:\n((?:    .+\n?)+)", re.MULTILINE)
_LINE_BEFORE_FORMULA = re.compile(r"^(?!\w[\w ]*:$)(\S.*)\n(?=    \S)", re.MULTILINE)  # but for "Args:" and its like


class CodeBlocks(Extension):
    """Fences examples, and sets formulas apart."""

    def on_object(self, *, obj: Object, **_: Any) -> None:
        """Rewrite the docstring, if there is one."""
        if obj.docstring:
            text = _SEVERAL.sub(_one_each, obj.docstring.value).replace("(*b", r"(\*b")
            text = _LINE_BEFORE_FORMULA.sub(r"\1\n\n", _QUOTATION.sub(r"\1\>", text))
            if obj.is_class and "Described" in map(str, obj.bases):  # its signature is not in the source
                text = _ARGUMENTS.sub(_as_list, text)
            text = text.replace("  # doctest: +SKIP", "")
            obj.docstring.value = _EXAMPLE.sub(lambda match: f"```pycon\n{match[0]}\n```", text)
        elif isinstance(obj, Function) and obj.name == "__init__":
            obj.docstring = _OfTheClass("", parent=obj)


class _OfTheClass(Docstring):
    """Takes no sections: griffe would list unpacked keywords once more, bare, below the class that describes them."""

    @property
    def parsed(self) -> list[DocstringSection]:  # type: ignore[override]
        """None."""
        return []


def _as_list(arguments: re.Match[str]) -> str:
    return "**Parameters**\n\n" + re.sub(r"^    (\w+): ", r"- `\1`: ", arguments[1], flags=re.MULTILINE)


def _one_each(entry: re.Match[str]) -> str:
    return "\n".join(f"    {name}: {entry[2]}" for name in entry[1].split(", "))
