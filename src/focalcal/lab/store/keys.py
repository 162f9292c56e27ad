"""The key of a run, from the text of what was trained; and what became of the keys of older versions.

SCHEMA is raised when the meaning of a spec's fields changes, so that a run is never taken for another:

1   the protocol held `shifts`, `severities`, `saliency` and `keep_weights` as well
2   the key is of the training alone; shifts and saliency are evaluations of the run

A run of schema 1 is read as one of schema 2: its key is computed without these four, and what they asked for counts as
evaluations that it has.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping
from typing import Any

SCHEMA = 2
"""The number of the meaning of a spec's fields, which is part of every key."""
OLDEST = 1  # that can be read
ELSEWHERE = {"trained": "elsewhere"}  # in the training of a run that was recorded: no recipe of ours has it
_MOVED = ("shifts", "severities", "saliency", "keep_weights")  # out of the protocol, with schema 2


def stored_key(text: str | bytes) -> str:
    """The key that follows from JSON text of the schema and a spec's fields, as a run's `spec.json` has them."""
    values = json.loads(text, parse_int=float)
    canonical = json.dumps(values, sort_keys=True, separators=(",", ":"), allow_nan=False)
    return hashlib.sha256(canonical.encode()).hexdigest()[:32]


def current_fields(values: Mapping[str, Any]) -> dict[str, Any]:
    """The fields of a spec of any schema as a spec has them now, without the schema's number."""
    fields = {name: value for name, value in values.items() if name != "schema"}
    if isinstance(protocol := fields.get("protocol"), Mapping):
        fields["protocol"] = {name: value for name, value in protocol.items() if name not in _MOVED}
    return fields


def current_key(values: Mapping[str, Any]) -> str:
    """The key of a spec of any schema, as it is computed now."""
    return stored_key(json.dumps({"schema": SCHEMA, **current_fields(values)}))


def evaluation_names(shifts: Iterable[str], severities: Iterable[int], saliency: int) -> tuple[str, ...]:
    """What evaluations are called: a severity of CIFAR-10-C is one of its own.

    >>> evaluation_names(["svhn", "cifar10c"], [1, 5], 8)
    ('svhn', 'cifar10c-1', 'cifar10c-5', 'saliency-8')
    """
    names: list[str] = []
    for shift in shifts:
        names += [f"{shift}-{severity}" for severity in severities] if shift == "cifar10c" else [shift]
    return (*names, *([f"saliency-{saliency}"] if saliency else []))


def old_evaluations(values: Mapping[str, Any]) -> tuple[str, ...]:
    """The evaluations that a run of schema 1 holds among its own predictions and files."""
    protocol = values.get("protocol")
    asked = {name: protocol[name] for name in _MOVED[:3] if name in protocol} if isinstance(protocol, Mapping) else {}
    return evaluation_names(**{"shifts": (), "severities": (), "saliency": 0, **asked})
