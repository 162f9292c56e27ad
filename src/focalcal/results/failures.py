"""Why runs failed: the last failure of each, as a small file."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from focalcal.core.atomic import write_atomically
from focalcal.results.diagnostics import Problem
from focalcal.results.keys import current_fields, current_key
from focalcal.results.layout import is_key, json_bytes

if TYPE_CHECKING:
    from focalcal.results.spec import Spec

_FIELDS = {"key", "spec", "kind", "message", "details", "time"}


def write(folder: Path, spec: Spec, kind: str, message: str, details: Mapping[str, Any]) -> None:
    """Keep a failure, whatever the details are: what JSON cannot say is kept as text."""
    from focalcal.core.primitives import text  # costs what torch costs, and readers need it not

    told = {
        "key": spec.key,
        "spec": spec.as_dict(),
        "kind": text("kind", kind),
        "message": str(message),
        "details": json.loads(json.dumps(dict(details), default=str), parse_constant=str),
        "time": datetime.now(UTC).isoformat(timespec="seconds"),
    }
    write_atomically(folder / f"{spec.key}.json", json_bytes(told))


def read(folder: Path) -> list[dict[str, Any]]:
    """Every failure that can be read, by key."""
    return [found for path in _paths(folder) if (found := _failure(path)) is not None]


def problems(folder: Path) -> list[Problem]:
    """Files that are not failures."""
    remedy = "must be a failure's record in JSON; delete it"
    return [Problem(path, "damaged", remedy) for path in _paths(folder) if path.exists() and _failure(path) is None]


def clear(folder: Path, key: str) -> None:
    """Forget the failure of a run."""
    with suppress(FileNotFoundError):
        (folder / f"{key}.json").unlink()


def _paths(folder: Path) -> list[Path]:
    with suppress(FileNotFoundError):
        return [folder / name for name in sorted(os.listdir(folder)) if not name.startswith(".")]
    return []


def _failure(path: Path) -> dict[str, Any] | None:
    """With the key that the spec has now, whatever version wrote it."""
    try:
        found = None if path.is_symlink() else json.loads(path.read_bytes())
        if not isinstance(found, dict) or not found.keys() >= _FIELDS or not is_key(path.stem):
            return None
        if found["key"] != path.stem or not isinstance(found["spec"], dict):
            return None
        return {**found, "key": current_key(found["spec"]), "spec": current_fields(found["spec"])}
    except (ValueError, RecursionError, OSError):
        return None
