"""The key of a run, from the text of what was run."""

from __future__ import annotations

import hashlib
import json

SCHEMA = 1  # raised when the meaning of a spec's field changes, so that old runs are never taken for new ones


def stored_key(text: str | bytes) -> str:
    """The key that follows from JSON text of the schema and a spec's fields, as a run's `spec.json` has them."""
    values = json.loads(text, parse_int=float)
    canonical = json.dumps(values, sort_keys=True, separators=(",", ":"), allow_nan=False)
    return hashlib.sha256(canonical.encode()).hexdigest()[:32]
