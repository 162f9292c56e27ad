"""Results as plain JSON, the files that hold them, and how far a result is from what a file says."""

from __future__ import annotations

import enum
import json
import math
import warnings
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, fields, is_dataclass
from pathlib import Path
from typing import Any

import numpy as np

FOLDER = Path(__file__).parent / "files"
DIGITS = 12
CLOSED = 1e-10  # a formula in float64: only the order of its sums is free
SINGLE = 1e-6  # float32 somewhere on the way


@dataclass(frozen=True)
class Case:
    """What is computed, and how close to the file it has to be: |found - wanted| <= rtol |wanted| + atol."""

    run: Callable[[], Any]
    rtol: float = CLOSED
    atol: float = 1e-12

    def value(self) -> Any:
        """The result as JSON has it; with the texts of its warnings where there are any."""
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            found = plain(self.run())
        said = sorted({str(one.message) for one in caught})
        return {"warnings": said, "value": found} if said else found


def plain(value: Any) -> Any:
    """Numbers, texts, lists and objects; NaN and infinities as text."""
    if isinstance(value, enum.Enum):
        return plain(value.value)
    if value is None or isinstance(value, (str, bool, np.bool_, int, np.integer)):
        return value.item() if isinstance(value, np.generic) else value
    if isinstance(value, (float, np.floating)):
        return float(f"{float(value):.{DIGITS}g}") if math.isfinite(value) else str(float(value))
    if isinstance(value, Mapping):
        return {str(name): plain(one) for name, one in value.items()}
    if isinstance(value, (list, tuple)) and not hasattr(value, "_fields"):
        return [plain(one) for one in value]
    if hasattr(value, "_fields"):  # a named tuple
        return {name: plain(getattr(value, name)) for name in value._fields}
    if is_dataclass(value):
        return {f.name: plain(getattr(value, f.name)) for f in fields(value) if not f.name.startswith("_")}
    return plain(np.asarray(value).tolist())


def differences(found: Any, wanted: Any, rtol: float, atol: float, at: str = "") -> Iterator[str]:
    """One line for each place where they differ."""
    if isinstance(wanted, dict) and isinstance(found, dict):
        if list(found) != list(wanted):
            yield f"{at}: has {list(found)}, not {list(wanted)}"
            return
        for name in wanted:
            yield from differences(found[name], wanted[name], rtol, atol, f"{at}.{name}")
    elif isinstance(wanted, list) and isinstance(found, list):
        if len(found) != len(wanted):
            yield f"{at}: {len(found)} entries, not {len(wanted)}"
            return
        for row, (one, other) in enumerate(zip(found, wanted, strict=True)):
            yield from differences(one, other, rtol, atol, f"{at}[{row}]")
    elif not _equal(found, wanted, rtol, atol):
        yield f"{at}: {found!r}, not {wanted!r}"


def _equal(found: Any, wanted: Any, rtol: float, atol: float) -> bool:
    numbers = all(isinstance(one, (int, float)) and not isinstance(one, bool) for one in (found, wanted))
    if numbers and float in (type(found), type(wanted)):
        return abs(found - wanted) <= rtol * abs(wanted) + atol
    return type(found) is type(wanted) and found == wanted


def stored(name: str) -> dict[str, Any]:
    """The content of a golden file."""
    content: dict[str, Any] = json.loads((FOLDER / f"{name}.json").read_text())
    return content


def store(name: str, values: Mapping[str, Any]) -> None:
    """One line per case, so that a change shows which."""
    FOLDER.mkdir(exist_ok=True)
    lines = [f"{json.dumps(case)}: {json.dumps(value, allow_nan=False)}" for case, value in values.items()]
    (FOLDER / f"{name}.json").write_text("{\n" + ",\n".join(lines) + "\n}\n")
