"""Where runs come from: what their specs and provenance share is said once, what differs run by run."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from focalcal.analysis.evidence import RunEvidence

Facts = dict[str, Any]


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
    shared = {
        path: value
        for path, value in first.items()
        if all(path in others and others[path] == value for others in facts.values())
    }
    own = {key: {path: value for path, value in leaves.items() if path not in shared} for key, leaves in facts.items()}
    return Origins(shared, own)


def _facts(run: RunEvidence) -> Facts:
    parts = {"spec": run.spec, "provenance": run.record.get("provenance", {})}
    found = dict(leaf for name, part in parts.items() for leaf in _leaves(name, part))
    return found | {name: run.record[name] for name in ("epochs", "seconds") if name in run.record}


def _leaves(path: str, value: Any) -> Iterator[tuple[str, Any]]:
    """Every value that is not a mapping, with its path; an empty mapping is left out."""
    if isinstance(value, Mapping):
        for name, part in value.items():
            yield from _leaves(f"{path}.{name}", part)
    else:
        yield path, value
