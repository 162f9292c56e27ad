"""What runs are called beside each other, by what tells them apart; and what their specs and provenance share."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, NamedTuple

from focalcal.lab.store import Spec

if TYPE_CHECKING:
    from focalcal.lab.evidence.evidence import RunEvidence

Facts = dict[str, Any]


class Label(NamedTuple):
    """What a run is called beside others, its seed apart."""

    setting: str
    objective: str


Labels = Mapping[str, tuple[str, str]]  # what a study calls settings and objectives, by key; "" where it does not
NO_LABELS: Labels = MappingProxyType({})


def run_labels(specs: Sequence[Spec], given: Labels = NO_LABELS) -> dict[str, Label]:
    """By key, what tells the runs apart; `given` are the labels of a study, which stand in place of the names.

    setting    data set and network, `digits/mlp`. Where an objective was trained there in several ways, each way is a
               setting, named by what differs: `digits/mlp lr=0.1`. A way of its own for each objective is not named
    objective  its name, with those of its options that differ among its runs in the setting: `fcl` is one objective
               over settings that each have a point of their own, and `fcl lam=0.5`, `fcl lam=1` are two of a sweep.
               Two versions of somebody's own code are told apart by its hash, `mine:Loss code=1f3a9c20`
    """
    called: dict[str, Label] = {}
    meanings: dict[tuple[str, str], str] = {}
    for spec in specs:
        plain = Label(f"{spec.data_set}/{spec.model}", spec.objective)
        called[spec.key] = Label(*(own or name for own, name in zip(given.get(spec.key, plain), plain, strict=True)))
        for kind, name, meant in zip(Label._fields, called[spec.key], plain, strict=True):
            if (other := meanings.setdefault((kind, name), meant)) != meant:
                raise ValueError(
                    f"label must name one {kind}, got {name!r} for {other} and {meant}; rename one of them"
                )
    places: dict[str, list[Spec]] = {}
    for spec in specs:
        places.setdefault(called[spec.key].setting, []).append(spec)
    settings = {key: name for place, own in places.items() for key, name in _settings(place, own, called).items()}
    points: dict[tuple[str, str], list[dict[str, Any]]] = {}
    for spec in specs:
        points.setdefault((settings[spec.key], called[spec.key].objective), []).append(_point(spec))
    labels: dict[str, Label] = {}
    for spec in specs:
        setting, objective = settings[spec.key], called[spec.key].objective
        shown = [
            f"{name}={_value_text(value)}"
            for name, value in _point(spec).items()
            if any(name not in point or point[name] != value for point in points[setting, objective])
        ]
        labels[spec.key] = Label(setting, " ".join([objective, *shown]))
    return labels


def _point(spec: Spec) -> dict[str, Any]:
    """The objective's options, and the version of its code if it is somebody's own."""
    code = spec.training.get("sources", {}).get("objective")
    return {**dict(spec.objective_options), **({"code": code[:8]} if code else {})}


def _settings(place: str, specs: Sequence[Spec], called: Mapping[str, Label]) -> dict[str, str]:
    """By key, for the runs of one data set and network."""
    ways = {spec.key: dict(_leaves("", {**spec.training, **spec.protocol.as_dict()})) for spec in specs}
    of_point: dict[str, list[dict[str, Any]]] = {}
    for spec in specs:
        ways[spec.key].pop(".sources.objective", None)  # of the point, not of how it was trained
        of_point.setdefault(f"{called[spec.key].objective} {_point(spec)}", []).append(ways[spec.key])
    if all(way == own[0] for own in of_point.values() for way in own):
        return dict.fromkeys(ways, place)
    paths = dict.fromkeys(path for way in ways.values() for path in way)
    differing = [path for path in paths if len({repr(way.get(path)) for way in ways.values()}) > 1]
    short = {path: _short(path) for path in differing}
    names = {path: name if list(short.values()).count(name) == 1 else path[1:] for path, name in short.items()}
    return {
        key: " ".join([place, *(f"{name}={_value_text(way.get(path))}" for path, name in names.items())])
        for key, way in ways.items()
    }


def _short(path: str) -> str:
    """`lr` of `.optimizer.lr`, but `schedule` of `.schedule.kind`."""
    *_, parent, last = path.split(".")
    return parent if parent and last in ("kind", "name") else last


def _value_text(value: Any) -> str:
    """Short where that says it all: two points must not look alike. Without spaces, which part options."""
    if isinstance(value, list | tuple):
        return ",".join(map(_value_text, value)) or "none"
    if isinstance(value, bool) or not isinstance(value, int | float):
        return "none" if value is None else str(value)
    return f"{value:g}" if float(f"{value:g}") == value else repr(value)


def cell_names(specs: Sequence[Spec], given: Labels = NO_LABELS) -> dict[str, str]:
    """By key, what tells a run from the others: `digits/small_cnn fcl seed 0`; `given` as of `run_labels`."""
    labels = run_labels(specs, given)
    return {spec.key: f"{' '.join(labels[spec.key])} seed {spec.seed}" for spec in specs}


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
