"""One stored run."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from focalcal.results.layout import EPOCHS, EVALUATIONS, RESULT, SPEC
from focalcal.results.run_folder import Entry, changed, read_checked, read_number, sha256
from focalcal.results.run_json import checked_epoch

if TYPE_CHECKING:
    from focalcal.predictions import Predictions
    from focalcal.results.spec import Spec


class Run:
    """A run that is complete: what was run, what came out, and the predictions it came from. Read when asked for."""

    def __init__(self, entry: Entry) -> None:
        self._entry = entry

    @property
    def key(self) -> str:
        """The key of its spec."""
        return self._entry.key

    @property
    def path(self) -> Path:
        """Its folder."""
        return self._entry.path

    @cached_property
    def spec(self) -> Spec:
        """What was run."""
        from focalcal.results.spec import Spec  # costs what torch costs

        return Spec.from_dict(self._entry.spec)

    @property
    def settings(self) -> Mapping[str, Any]:
        """The spec as plain values; quicker than `spec`, for whoever looks at thousands of runs."""
        return self._entry.spec

    @property
    def glance(self) -> Mapping[str, Any]:
        """What a list shows: what was run, its seconds, and the metrics of the split `test`; made anew each time."""
        seen = self._entry.glance()
        return {**seen, "test": {name: read_number(value) for name, value in (seen["test"] or {}).items()}}

    @property
    def evaluations(self) -> tuple[str, ...]:
        """What its network was evaluated on besides its own splits, by name: `svhn`, `cifar10c-5`, `saliency-8`."""
        return tuple(self._entry.evaluations)

    @cached_property
    def record(self) -> Mapping[str, Any]:
        """What came out: {"metrics": {split: {metric: number}}, "provenance", "seconds", "epochs", "evaluations"}.

        `metrics` are those of the evaluations too; `evaluations` has provenance and seconds of each by its name.
        """
        stored = self._entry.record
        metrics: dict[str, dict[str, float]] = {}
        for record in (stored, *(one["record"] for one in self._added.values())):
            for split, values in record["metrics"].items():
                metrics.setdefault(split, {name: read_number(value) for name, value in values.items()})
        about = {
            evaluation: {name: value for name, value in one["record"].items() if name != "metrics"}
            for evaluation, one in self._added.items()
        }
        return {**stored, "metrics": metrics, "evaluations": about}

    @property
    def splits(self) -> tuple[str, ...]:
        """The splits that there are predictions of."""
        return tuple(self._split_files)

    @property
    def files(self) -> tuple[str, ...]:
        """The files of its folder, `weights.pt` say; one that an evaluation added also by its name alone."""
        return tuple(self._places)

    @property
    def _added(self) -> dict[str, dict[str, Any]]:
        """Record and manifest of the evaluations that have a folder of their own; older versions' have none."""
        return {name: one for name, one in self._entry.evaluations.items() if one}

    @cached_property
    def _split_files(self) -> dict[str, str]:
        found: dict[str, str] = dict(self._entry.manifest["splits"])
        for evaluation, one in self._added.items():
            for split, file in one["manifest"]["splits"].items():
                found.setdefault(split, f"{EVALUATIONS}/{evaluation}/{file}")
        return found

    @cached_property
    def _places(self) -> dict[str, tuple[Path, str, str]]:
        """By every name that a file has: the folder whose `files.json` lists it, its name there, its checksum."""
        found = {name: (self.path, name, stated["sha256"]) for name, stated in self._entry.manifest["files"].items()}
        for evaluation, one in self._added.items():
            folder = self.path / EVALUATIONS / evaluation
            for name, stated in one["manifest"]["files"].items():
                place = folder, name, stated["sha256"]
                found[f"{EVALUATIONS}/{evaluation}/{name}"] = place
                if name != RESULT and "/" not in name:
                    found[name] = place
        return found

    def metrics(self, split: str) -> dict[str, float]:
        """The metrics of a split by name; NaN where one could not be computed."""
        known = self.record["metrics"]
        if split not in known:
            raise ValueError(
                f"split must be one that run {self.key[:12]} has metrics of, {_listed(known)}, got {split!r}"
            )
        return dict(known[split])

    def epochs(self) -> list[dict[str, Any]]:
        """The record of each epoch; none if none were stored."""
        if EPOCHS not in self.files:
            return []
        lines = read_checked(self._entry, EPOCHS).splitlines()
        return [checked_epoch(self.path, EPOCHS, line) for line in lines]

    def predictions(self, split: str) -> Predictions:
        """The predictions of a split, if their file is still what was stored; else `RunProblem`."""
        from focalcal.predictions import Predictions  # costs what torch costs

        known = self._split_files
        if split not in known:
            raise ValueError(
                f"split must be one that run {self.key[:12]} has predictions of, {_listed(known)}, got {split!r}"
            )
        return Predictions.load(self.file(known[split]))

    def file(self, name: str) -> Path:
        """The path of one of its files, if its content is what was stored; else `RunProblem`."""
        if name not in self._places:
            raise ValueError(f"name must be a file of run {self.key[:12]}, {_listed(self._places)}, got {name!r}")
        folder, within, stated = self._places[name]
        _compare(folder, within, stated)
        return folder / within

    def verify(self, evaluation: str | None = None, *, kept: bool = True) -> None:
        """Compare every file of the run, or of one of its evaluations, with its checksum; `RunProblem` if one differs.

        An evaluation that is damaged leaves the run as it is. Without `kept`, files that no number comes from, weights
        above all, are left to whoever reads them: they are large.
        """
        if evaluation is None:
            folder, listed = self.path, self._entry.manifest["files"]
        else:
            folder = self.path / EVALUATIONS / evaluation
            listed = self._added[evaluation]["manifest"]["files"] if evaluation in self._added else {}
        for name, stated in listed.items():
            if kept or "/" in name or name in (SPEC, RESULT, EPOCHS):
                _compare(folder, name, stated["sha256"])

    def __repr__(self) -> str:
        """The key and what was run."""
        return f"Run({self.key[:12]}, {self.spec.name})"


def _compare(folder: Path, name: str, stated: str) -> None:
    if sha256(folder / name) != stated:
        raise changed(folder, name)


def _listed(names: Mapping[str, Any]) -> str:
    return ", ".join(map(repr, names)) or "none"
