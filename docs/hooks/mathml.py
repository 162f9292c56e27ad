"""Formulas as MathML, which browsers render themselves: no script, no font, no network."""

import html
import re
from typing import Any

from latex2mathml.converter import convert

_SPAN = re.compile(r'<(span|div) class="arithmatex">\\([(\[])(.*?)\\[)\]]</\1>', re.DOTALL)


def on_page_content(content: str, **_: Any) -> str:
    """Replace what pymdownx.arithmatex marks as TeX."""
    return _SPAN.sub(_mathml, content)


def _mathml(match: re.Match[str]) -> str:
    return convert(html.unescape(match[3]), display="block" if match[2] == "[" else "inline")
