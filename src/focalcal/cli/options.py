"""What several commands read in the same way."""

from __future__ import annotations

from typing import Annotated, Any

import typer

Json = Annotated[bool, typer.Option("--json", help="Print JSON; null stands for NaN and infinity.")]


def given(**values: Any) -> dict[str, Any]:
    """Those of the options that were given."""
    return {name: value for name, value in values.items() if value is not None}


def column_names(text: str | None) -> str | list[str] | None:
    """The names with commas, or the prefix of 'p_*'."""
    if text and "," in text:
        return text.split(",")
    return text and text.removesuffix("*").removesuffix("_")


def name_values(flag: str, pairs: list[str] | None) -> dict[str, Any]:
    """NAME=VALUE, the value a number where it reads as one."""
    values: dict[str, Any] = {}
    for pair in pairs or []:
        name, equals, value = pair.partition("=")
        if not name or not equals or not value:
            raise ValueError(f"{flag} must be NAME=VALUE, got {pair!r}; for example {flag} epsilon=0.1")
        try:
            values[name] = float(value)
        except ValueError:
            values[name] = value
    return values
