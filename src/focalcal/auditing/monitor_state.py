"""The state of a monitor as a file: JSON with a schema number, written whole or not at all."""

from __future__ import annotations

import json
import math
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from focalcal import __version__
from focalcal.auditing.monitor_rows import BINS, PARTITION, PERIODS, Piece
from focalcal.core.atomic import write_atomically

if TYPE_CHECKING:
    from focalcal.auditing.monitoring import Monitor

SCHEMA = 1
_KIND = "focalcal monitor"


class MonitorError(ValueError):
    """A state that cannot be used, or a partition that does not belong to it; the state is as it was."""


@dataclass(frozen=True)
class Settings:
    """What a monitor is told once; see `Monitor`. The last five are found from the first rows.

    n_classes  0 for confidences alone
    column     the class that is followed; None for the predicted one
    """

    alpha: float
    within: float
    period: str | None
    event: Any
    run_length: float
    model: str | None
    n_classes: int | None = None
    classes: tuple[str, ...] | None = None
    column: int | None = None
    groups: tuple[str, ...] | None = None
    baseline_end: str | None = None

    def comparable(self) -> dict[str, Any]:
        """What monitors must agree in to be merged."""
        return asdict(self) | {"groups": self.groups or (), "event": None}


def write_state(path: Path, monitor: Monitor, read: bytes | None) -> bytes:
    """The bytes that were written; `read` are those that the file had, None if there was none."""
    state = {
        "kind": _KIND,
        "schema": SCHEMA,
        "version": __version__,
        "settings": asdict(monitor.settings),
        "baseline": None if monitor.baseline is None else _written(monitor.baseline),
        "partitions": [_written(piece) for piece in monitor.pieces],
        "scored": [_written(piece) for piece in monitor.scored],
    }
    content = json.dumps(state, allow_nan=False, separators=(",", ":")).encode() + b"\n"
    if (path.read_bytes() if path.exists() else None) != read:
        raise MonitorError(f"{path} was written by another process after it was read here; run the command again")
    write_atomically(path, content)
    return content


def read_state(path: Path) -> tuple[bytes, Settings, Piece | None, list[Piece], list[Piece]]:
    """The file's bytes, and what is in it."""
    content = path.read_bytes()
    try:
        state = json.loads(content)
    except ValueError:
        raise _unusable(path, "no whole JSON, so it was cut off or is another file") from None
    if not isinstance(state, dict) or state.get("kind") != _KIND:
        raise _unusable(path, "JSON of something else")
    if state.get("schema") != SCHEMA:
        raise MonitorError(f"{path} must have schema {SCHEMA}, got {str(state.get('schema'))[:40]}, written by "
                           f"focalcal {str(state.get('version'))[:40]}; use that version of focalcal")  # fmt: skip
    try:
        about: dict[str, Any] = state["settings"]
        fields: dict[str, Any] = {name: tuple(v) if isinstance(v, list) else v for name, v in about.items()}
        settings = Settings(**fields)
        baseline = None if state["baseline"] is None else _read_piece(state["baseline"])
        pieces, scored = ([_read_piece(each) for each in state[name]] for name in ("partitions", "scored"))
        _check(settings, [*pieces, *scored])
    except (KeyError, TypeError, ValueError, AttributeError, IndexError) as error:
        raise _unusable(path, f"{type(error).__name__}: {error}"[:200]) from None
    return content, settings, baseline, pieces, scored


def _unusable(path: Path, got: str) -> MonitorError:
    return MonitorError(f"{path} must be a state that a monitor wrote, got {got}; restore it from a copy, or name "
                        "another file to begin anew")  # fmt: skip


def _check(settings: Settings, pieces: list[Piece]) -> None:
    if not (0 < settings.alpha < 1 and 0 <= settings.within < 1 and settings.run_length > 1):
        raise ValueError("alpha, within or run_length out of range")
    if settings.period not in (None, PARTITION, *PERIODS):
        raise ValueError(f"period {settings.period!r}")
    for piece in pieces:
        if settings.period == PARTITION:
            int(piece.period)
        elif np.isnat(np.datetime64(piece.period)):
            raise ValueError(f"period {piece.period!r}")


def _written(piece: Piece) -> dict[str, Any]:
    """Bins with rows alone: [bin, rows, score, score^2, outcome]."""
    sums = {
        group: [[int(at), *(_number(value) for value in each[:, at])] for at in np.flatnonzero(each[0])]
        for group, each in piece.sums.items()
    }
    return {
        "period": piece.period,
        "look": piece.look,
        "rows": piece.rows,
        "digest": piece.digest,
        "ids": "".join(piece.smallest),
        "sums": sums,
        "shifted": piece.shifted,
    }


def _number(value: float) -> float:
    return int(value) if float(value).is_integer() else float(value)


def _read_piece(stored: dict[str, Any]) -> Piece:
    sums = {}
    for group, bins in stored["sums"].items():
        sums[group] = np.zeros((4, BINS))
        for at, *values in bins:
            if not (0 <= at < BINS and len(values) == 4 and all(0 <= value < math.inf for value in values)):
                raise ValueError(f"sums of bin {at!r}")
            sums[group][:, at] = values
    ids, look = stored["ids"], stored["look"]
    if not (look is None or (isinstance(look, int) and look > 0)) or not isinstance(stored["period"], str):
        raise ValueError(f"look {look!r} or period {stored['period']!r}")
    smallest = tuple(ids[at : at + 16] for at in range(0, len(ids), 16))
    shifted = stored["shifted"]
    if shifted is not None:
        rate, low, high = map(float, shifted)
        shifted = rate, low, high
    return Piece(stored["period"], int(stored["rows"]), str(stored["digest"]), sums, smallest, look, shifted)
