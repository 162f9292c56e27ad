"""Where runs come from: what their specs and provenance share is said once, what differs run by run."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from focalcal.analysis.evidence import RunEvidence

Facts = dict[str, str]


@dataclass(frozen=True)
class Origins:
    """Facts by their path, `spec.training.optimizer.lr`: those of all runs, and those of each run by key."""

    shared: Facts
    own: dict[str, Facts]


def origins(runs: Iterable[RunEvidence]) -> Origins:
    """Of one run alone, everything is its own."""
    facts = {run.key: _facts(run) for run in runs}
    if len(facts) < 2:
        return Origins({}, facts)
    first = next(iter(facts.values()))
    shared = {path: text for path, text in first.items() if all(one.get(path) == text for one in facts.values())}
    own = {key: {path: text for path, text in one.items() if path not in shared} for key, one in facts.items()}
    return Origins(shared, own)


def _facts(run: RunEvidence) -> Facts:
    parts = {"spec": run.spec, "provenance": run.record.get("provenance", {})}
    found = {path: _shown(value) for name, part in parts.items() for path, value in _leaves(name, part)}
    return found | {name: _shown(run.record[name]) for name in ("epochs", "seconds") if name in run.record}


def _leaves(path: str, value: Any) -> Iterator[tuple[str, Any]]:
    """Every value that is not a mapping, with its path; an empty mapping is left out."""
    if isinstance(value, Mapping):
        for name, one in value.items():
            yield from _leaves(f"{path}.{name}", one)
    else:
        yield path, value


def _shown(value: Any) -> str:
    if value is None:
        return "none"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, float):
        return f"{value:.6g}"
    if isinstance(value, list | tuple):
        return ", ".join(map(_shown, value)) or "none"
    return str(value)
