"""What a study would do, and how long: from stored runs that were timed. Where no run tells, nothing is guessed."""

from __future__ import annotations

import errno
import os
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from tempfile import TemporaryFile
from typing import Any, Literal

from focalcal.lab.store import Evaluations, Run, Spec, Store
from focalcal.lab.store.keys import key_of
from focalcal.lab.store.spec import NOTHING_MORE
from focalcal.lab.studies.completeness import examine_cells
from focalcal.lab.studies.evaluate import WEIGHTS
from focalcal.lab.studies.plugin_trial import try_plugins
from focalcal.lab.studies.study_file import Study, check_untuned, load_study

_NOT_TIMED = ("epochs", "schedule", "optimizer")  # of the training: counted apart, or without effect on an epoch's time


@dataclass(frozen=True)
class PlannedCell:
    """What is left to do for a cell, and about how many seconds that takes; None where no stored run tells."""

    spec: Spec
    state: Literal["done", "to train", "to evaluate", "without weights"]
    seconds: float | None


def plan_study(
    study: Study | str | os.PathLike[str],
    folder: str | os.PathLike[str],
    *,
    smoke: bool = False,
    data_dir: Path | None = None,
    device: str = "cpu",
    threads: int = 1,
) -> list[PlannedCell]:
    """What `run_study` would do with each cell of a study; nothing is trained or written.

    Refuses what would fail later: every plug-in of a cell that is to train is called once, and a store that could
    not be written to is an OSError.

    Args:
        study: as `run_study` takes it.
        folder: of the store, which need not be there.
        smoke: whether of its smallest size.
        data_dir: the folder of the data sets; None: where FOCALCAL_DATA points.
        device: where networks would compute.
        threads: how many a cell would use.

    Returns:
        One `PlannedCell` per cell, with what there is to do.

    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     plan = plan_study("digits", f"{folder}/runs", smoke=True)
    >>> len(plan), plan[0].spec.name
    (18, 'digits/small_cnn ce seed 0')
    """
    chosen = study if isinstance(study, Study) else load_study(study, data_dir=data_dir)
    check_untuned(chosen)
    place = Path(folder)
    store = Store(place, create=False) if place.exists() else None
    cells = plan_cells(chosen.specs(smoke), store, chosen.evaluations(smoke), device=device, threads=threads)
    if any(cell.state.startswith("to ") for cell in cells):
        if store is None:
            _check_can_be_made(place)
        else:
            store.check_writable()
    try_plugins([cell.spec for cell in cells if cell.state == "to train"], data_dir)
    return cells


def plan_cells(
    specs: Iterable[Spec],
    store: Store | None,
    evaluations: Evaluations = NOTHING_MORE,
    *,
    device: str = "cpu",
    threads: int = 1,
) -> list[PlannedCell]:
    """What is left to do for each cell; without a store everything is."""
    cells = list(specs)
    stored = {} if store is None else examine_cells(cells, store)
    costs = Costs(() if store is None else store.runs(), device=device, threads=threads)
    return [_plan_cell(spec, stored.get(spec.key), evaluations, costs) for spec in cells]


def _plan_cell(spec: Spec, run: object, evaluations: Evaluations, costs: Costs) -> PlannedCell:
    if not isinstance(run, Run):
        return PlannedCell(spec, "to train", _total([costs.training(spec), costs.evaluating(spec, evaluations.names)]))
    lacking = evaluations.missing_from(run.evaluations)
    if not lacking:
        return PlannedCell(spec, "done", 0.0)
    if WEIGHTS not in run.files:
        return PlannedCell(spec, "without weights", 0.0)
    return PlannedCell(spec, "to evaluate", costs.evaluating(spec, lacking))


def _check_can_be_made(folder: Path) -> None:
    """Raise OSError unless a folder could be made there; nothing is left behind."""
    parent = next(parent for parent in folder.absolute().parents if os.path.lexists(parent))
    try:
        if not parent.is_dir():
            raise NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR))
        TemporaryFile(dir=parent).close()
    except OSError as error:
        raise OSError(
            error.errno,
            f"the store {folder} must be a folder that can be made, got {error.strerror} for {parent}; name another",
        ) from None


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
        return median(epoch * settings["training"]["epochs"] + rest for epoch, rest in timed) if timed else None

    def evaluating(self, spec: Spec, names: Iterable[str]) -> float | None:
        """For these evaluations of the trained network; None if no run tells of one of them."""
        alike = _alike(spec.as_dict())
        timed = [self._evaluating.get((alike, name), []) for name in names]
        return _total([median(seconds) if seconds else None for seconds in timed])


def _total(seconds: Sequence[float | None]) -> float | None:
    """The sum; None if a part is not known."""
    known = [part for part in seconds if part is not None]
    return sum(known) if len(known) == len(seconds) else None


def _measured_on(provenance: Mapping[str, Any], device: str, threads: int) -> bool:
    machine = provenance.get("machine", {})
    kind = str(machine.get("device", "cpu")).split(":")[0]
    return kind == device.split(":")[0] and machine.get("threads", 1) == threads


def _elapsed(provenance: Mapping[str, Any]) -> float:
    """From loading the data to having predicted them."""
    return float(provenance.get("elapsed", 0.0))


def _alike(settings: Mapping[str, Any]) -> str:
    """What cells have in common whose epochs take equally long."""
    training = {name: value for name, value in settings["training"].items() if name not in _NOT_TIMED}
    optimizer = settings["training"].get("optimizer", {})
    kind = optimizer.get("name") if isinstance(optimizer, Mapping) else optimizer
    return key_of([settings["data_set"], settings["model"], kind, training, settings["protocol"]])
