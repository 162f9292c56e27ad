"""How long cells take, from stored runs that were timed. Where no run tells, nothing is guessed."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from statistics import median
from typing import Any, Literal

from focalcal.experiments.evaluate import without_weights
from focalcal.results import Evaluations, Run, Spec, Store
from focalcal.results.evaluations import NOTHING_MORE

_NOT_TIMED = ("epochs", "schedule", "optimizer")  # of the training: counted apart, or without effect on an epoch's time


@dataclass(frozen=True)
class PlannedCell:
    """What is left to do for a cell, and about how many seconds that takes; None where no stored run tells."""

    spec: Spec
    state: Literal["done", "to train", "to evaluate", "without weights"]
    seconds: float | None


def planned(
    specs: Iterable[Spec],
    store: Store | None,
    evaluations: Evaluations = NOTHING_MORE,
    *,
    device: str = "cpu",
    threads: int = 1,
) -> list[PlannedCell]:
    """What a study would do with each of its cells."""
    costs = Costs(() if store is None else store.runs(), device=device, threads=threads)
    return [
        _planned(spec, store.run(spec.key) if store is not None and store.has(spec) else None, evaluations, costs)
        for spec in specs
    ]


def _planned(spec: Spec, run: Run | None, evaluations: Evaluations, costs: Costs) -> PlannedCell:
    if run is None:
        return PlannedCell(spec, "to train", _sum([costs.training(spec), costs.evaluating(spec, evaluations.names)]))
    lacking = evaluations.missing_from(run.evaluations)
    if not lacking:
        return PlannedCell(spec, "done", 0.0)
    if without_weights(run, lacking) is not None:
        return PlannedCell(spec, "without weights", 0.0)
    return PlannedCell(spec, "to evaluate", costs.evaluating(spec, lacking))


class Costs:
    """Seconds that runs like a cell have taken, on such a device with as many threads.

    Alike are runs of the same data set, network, examples and recipe, whatever their objective and seed. Those with
    another number of epochs count too: the time of the epochs is taken in proportion, that of the rest (loading,
    predicting, storing) as it is. Of several the median; of cells that are equal equal times. Other sizes tell nothing.
    """

    def __init__(self, runs: Iterable[Run], *, device: str = "cpu", threads: int = 1) -> None:
        self._epochs: dict[str, list[tuple[float, float]]] = defaultdict(list)  # seconds of an epoch, and of the rest
        self._evaluating: dict[tuple[str, str], list[float]] = defaultdict(list)
        for run in runs:
            provenance, alike = run.record.get("provenance", {}), _alike(run.settings)
            if _measured_on(provenance, device, threads):
                seconds, epochs = float(run.record["seconds"]), int(run.record["epochs"])
                if seconds > 0 and epochs:
                    rest = max(_elapsed(provenance) - seconds, 0.0)  # a resumed run's last attempt can be shorter
                    self._epochs[alike].append((seconds / epochs, rest))
            for name, made in run.record["evaluations"].items():
                if _measured_on(made["provenance"], device, threads):
                    self._evaluating[alike, name].append(float(made["seconds"]))

    def training(self, spec: Spec) -> float | None:
        """Until the run is stored; None if no run tells."""
        settings = spec.as_dict()
        timed = self._epochs.get(_alike(settings), [])
        return median(one * settings["training"]["epochs"] + rest for one, rest in timed) if timed else None

    def evaluating(self, spec: Spec, names: Iterable[str]) -> float | None:
        """For these evaluations of the trained network; None if no run tells of one of them."""
        alike = _alike(spec.as_dict())
        timed = [self._evaluating.get((alike, name), []) for name in names]
        return _sum([median(one) if one else None for one in timed])


def _sum(seconds: Iterable[float | None]) -> float | None:
    known = list(seconds)
    return None if None in known else sum(one for one in known if one is not None)


def _measured_on(provenance: Mapping[str, Any], device: str, threads: int) -> bool:
    machine = provenance.get("machine", {})
    kind = str(machine.get("device", "cpu")).split(":")[0]
    return kind == device.split(":")[0] and machine.get("threads", 1) == threads


def _elapsed(provenance: Mapping[str, Any]) -> float:
    """From loading the data to having predicted them; older runs have the times of both ends."""
    if "elapsed" in provenance:
        return float(provenance["elapsed"])
    if "started" not in provenance or "finished" not in provenance:
        return 0.0
    ends = (datetime.fromisoformat(provenance[name]) for name in ("finished", "started"))
    return (next(ends) - next(ends)).total_seconds()


def _alike(settings: Mapping[str, Any]) -> str:
    """What cells have in common whose epochs take equally long."""
    training = {name: value for name, value in settings["training"].items() if name not in _NOT_TIMED}
    optimizer = settings["training"].get("optimizer", {})
    kind = optimizer.get("name") if isinstance(optimizer, Mapping) else optimizer
    return repr([settings["data_set"], settings["model"], kind, _sorted(training), _sorted(settings["protocol"])])


def _sorted(value: Any) -> Any:
    """The same for equal values, whatever their order and whether 2 is written 2.0."""
    if isinstance(value, Mapping):
        return sorted((key, _sorted(one)) for key, one in value.items())
    if isinstance(value, list):
        return [_sorted(one) for one in value]
    return float(value) if isinstance(value, int) and not isinstance(value, bool) else value
