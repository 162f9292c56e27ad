"""The key of a run, from the JSON of what was trained."""

from __future__ import annotations

import hashlib
import json
from typing import Any

SCHEMA = 2
"""The number of the meaning of a spec's fields, which is part of every key: raised when that changes."""
ELSEWHERE = {"trained": "elsewhere"}  # in the training of a run that was recorded: no recipe of ours has it


def key_of(values: Any) -> str:
    """32 hexadecimal digits of SHA-256 over the sorted JSON of these values, with every number a float."""
    numbers = json.loads(json.dumps(values), parse_int=float)
    canonical = json.dumps(numbers, sort_keys=True, separators=(",", ":"), allow_nan=False)
    return hashlib.sha256(canonical.encode()).hexdigest()[:32]


def spec_key(fields: dict[str, Any]) -> str:
    """The key of a spec, from its fields as `as_dict` gives them."""
    return key_of({"schema": SCHEMA, **fields})
