"""JSON on stdout, with null where JSON has no number."""

from __future__ import annotations

import json
import math
from typing import Annotated, Any

import typer

Json = Annotated[bool, typer.Option("--json", help="Print JSON; null stands for NaN and infinity.")]


def print_json(value: Any) -> None:
    """See `json_text`."""
    typer.echo(json_text(value))


def json_text(value: Any) -> str:
    """Indented; what JSON does not know is written as text."""
    return json.dumps(without_odd_numbers(value), indent=2, allow_nan=False, default=str)


def without_odd_numbers(value: Any) -> Any:
    """The same with None for NaN and infinity, and 0 for -0."""
    if isinstance(value, dict):
        return {key: without_odd_numbers(inner) for key, inner in value.items()}
    if isinstance(value, list | tuple):
        return [without_odd_numbers(inner) for inner in value]
    if not isinstance(value, float):
        return value
    return value + 0.0 if math.isfinite(value) else None  # -0 is 0
