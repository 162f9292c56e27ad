"""What runs are called beside each other, by what tells them apart; and what their specs and provenance share."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from focalcal.results import Spec

if TYPE_CHECKING:
    from focalcal.analysis.evidence import RunEvidence

ORDER = ("ce", "focal", "brier", "mmce", "ls", "flsd53", "dual_focal", "adafocal", "fcl")  # as the paper has them
Facts = dict[str, Any]


def objective_labels(specs: Sequence[Spec]) -> dict[str, str]:
    """By key: the objective, with those of its options that differ among the runs of it in one setting.

    So `fcl` is one objective over data sets that each have a point of their own, and `fcl lam=0.5`, `fcl lam=1` are two
    of a sweep. Runs that differ in their training or protocol alone get these differences named by a number, #2, ...
    """
    cells: dict[tuple[str, str, str], list[dict[str, Any]]] = {}
    for spec in specs:
        cells.setdefault((spec.data_set, spec.model, spec.objective), []).append(dict(spec.objective_options))
    labels: dict[str, str] = {}
    variants: dict[tuple[str, str, str], list[Any]] = {}
    for spec in specs:
        points = cells[spec.data_set, spec.model, spec.objective]
        shown = [
            f"{name}={_value_text(value)}"
            for name, value in dict(spec.objective_options).items()
            if any(name not in point or point[name] != value for point in points)
        ]
        label = spec.objective + (f" {' '.join(shown)}" if shown else "")
        known = variants.setdefault((spec.data_set, spec.model, label), [])
        how = (spec.training, spec.protocol)
        if how not in known:
            known.append(how)
        number = known.index(how) + 1
        labels[spec.key] = label if number == 1 else f"{label} #{number}"
    return labels


def _value_text(value: Any) -> str:
    """Short where that says it all: two points must not look alike."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return str(value)
    return f"{value:g}" if float(f"{value:g}") == value else repr(value)


def cell_names(specs: Sequence[Spec]) -> dict[str, str]:
    """By key, what tells a run from the others: `digits/small_cnn fcl seed 0`."""
    labels = objective_labels(specs)
    return {spec.key: f"{spec.data_set}/{spec.model} {labels[spec.key]} seed {spec.seed}" for spec in specs}


def origins(runs: Iterable[RunEvidence]) -> tuple[Facts, dict[str, Facts]]:
    """Facts of specs and provenance by path, `spec.training.optimizer.lr`: those of all runs, and by key the others.

    Of one run alone, everything is its own.
    """
    facts = {run.key: _facts(run) for run in runs}
    if len(facts) < 2:
        return {}, facts
    first = next(iter(facts.values()))
    shared = {
        path: value
        for path, value in first.items()
        if all(path in others and others[path] == value for others in facts.values())
    }
    own = {key: {path: value for path, value in leaves.items() if path not in shared} for key, leaves in facts.items()}
    return shared, own


def _facts(run: RunEvidence) -> Facts:
    parts = {"spec": run.spec, "provenance": run.record.get("provenance", {})}
    leaves = dict(leaf for name, part in parts.items() for leaf in _leaves(name, part))
    return leaves | {name: run.record[name] for name in ("epochs", "seconds") if name in run.record}


def _leaves(path: str, value: Any) -> Iterator[tuple[str, Any]]:
    """Every value that is not a mapping, with its path; an empty mapping is left out."""
    if isinstance(value, Mapping):
        for name, part in value.items():
            yield from _leaves(f"{path}.{name}", part)
    else:
        yield path, value
