"""JSON on stdout, with null where JSON has no number."""

from __future__ import annotations

import json
import math
from typing import Any

import typer


def print_json(value: Any) -> None:
    """Indented; what JSON does not know is written as text."""
    typer.echo(json.dumps(without_odd_numbers(value), indent=2, allow_nan=False, default=str))


def without_odd_numbers(value: Any) -> Any:
    """The same with None for NaN and infinity."""
    if isinstance(value, dict):
        return {key: without_odd_numbers(one) for key, one in value.items()}
    if isinstance(value, list | tuple):
        return [without_odd_numbers(one) for one in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value
