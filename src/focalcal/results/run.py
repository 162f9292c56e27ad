"""One stored run."""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from focalcal.results.entry import Entry, changed, read_checked, read_number, sha256
from focalcal.results.layout import EPOCHS

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

    @cached_property
    def record(self) -> Mapping[str, Any]:
        """What came out: {"metrics": {split: {metric: number}}, "provenance", "seconds", "epochs"}."""
        stored = self._entry.record
        metrics = {
            split: {name: read_number(value) for name, value in one.items()} for split, one in stored["metrics"].items()
        }
        return {**stored, "metrics": metrics}

    @property
    def splits(self) -> tuple[str, ...]:
        """The splits that there are predictions of."""
        return tuple(self._entry.manifest["splits"])

    @property
    def files(self) -> tuple[str, ...]:
        """The files of its folder, `weights.pt` say."""
        return tuple(self._entry.manifest["files"])

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
        return [json.loads(line) for line in read_checked(self._entry, EPOCHS).splitlines()]

    def predictions(self, split: str) -> Predictions:
        """The predictions of a split, if their file is still what was stored; else `RunProblem`."""
        from focalcal.predictions import Predictions  # costs what torch costs

        known = self._entry.manifest["splits"]
        if split not in known:
            raise ValueError(
                f"split must be one that run {self.key[:12]} has predictions of, {_listed(known)}, got {split!r}"
            )
        self.file(known[split])
        return Predictions.load(self.path / known[split])

    def file(self, name: str) -> Path:
        """The path of one of its files, if its content is what was stored; else `RunProblem`."""
        known = self._entry.manifest["files"]
        if name not in known:
            raise ValueError(f"name must be a file of run {self.key[:12]}, {_listed(known)}, got {name!r}")
        if sha256(self.path / name) != known[name]["sha256"]:
            raise changed(self.path, name)
        return self.path / name

    def verify(self) -> None:
        """Compare every file with its stored checksum; `RunProblem` for one that differs."""
        for name in self.files:
            self.file(name)

    def __repr__(self) -> str:
        """The key and what was run."""
        return f"Run({self.key[:12]}, {self.spec.name})"


def _listed(names: Mapping[str, Any]) -> str:
    return ", ".join(map(repr, names)) or "none"
