"""Docstrings as Markdown has them: doctests and indented formulas as code blocks."""

import re
from typing import Any

from griffe import Extension, Object

_EXAMPLE = re.compile(r"^>>> .*(?:\n.+)*", re.MULTILINE)  # Markdown takes >>> for quotations
_LINE_BEFORE_FORMULA = re.compile(r"^(?!\w[\w ]*:$)(\S.*)\n(?=    \S)", re.MULTILINE)  # but for "Args:" and its like


class CodeBlocks(Extension):
    """Fences examples, and sets formulas apart."""

    def on_object(self, *, obj: Object, **_: Any) -> None:
        """Rewrite the docstring, if there is one."""
        if obj.docstring:
            text = _LINE_BEFORE_FORMULA.sub(r"\1\n\n", obj.docstring.value)
            obj.docstring.value = _EXAMPLE.sub(lambda match: f"```pycon\n{match[0]}\n```", text)
