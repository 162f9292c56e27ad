"""One stored run."""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from focalcal.lab.store.keys import ELSEWHERE, current_fields
from focalcal.lab.store.layout import EPOCHS, EVALUATIONS, RESULT, SPEC
from focalcal.lab.store.run_folder import check_content, read_epoch, read_number

if TYPE_CHECKING:
    from focalcal.lab.store.spec import Spec
    from focalcal.predictions import Predictions


class Run:
    """A run that is complete: what was run, what came out, and the predictions it came from. Read when asked for.

    `texts` are what `run_folder.examine` made of its folder, as text until something of it is asked for; `left_out`
    names evaluations that are not to be used.
    """

    def __init__(self, folder: str, texts: bytes, *, left_out: Collection[str] = ()) -> None:
        self._folder = folder
        self.texts = texts
        self._left_out = left_out

    @property
    def key(self) -> str:
        """The key of its spec: the name of its folder, unless an older version stored it."""
        return self.texts[:32].decode("ascii")

    @property
    def path(self) -> Path:
        """Its folder."""
        return Path(self._folder)

    @cached_property
    def spec(self) -> Spec:
        """What was run."""
        from focalcal.lab.store.spec import Spec  # costs what torch costs

        return Spec.from_dict(self._fields)

    @property
    def settings(self) -> Mapping[str, Any]:
        """The spec as plain values; quicker than `spec`, for whoever looks at thousands of runs."""
        return self._fields

    @property
    def trained_elsewhere(self) -> bool:
        """Whether `Store.record` stored it: then its network is not one that this package could build again."""
        training: dict[str, Any] = self._fields["training"]
        return ELSEWHERE.items() <= training.items()

    @property
    def glance(self) -> Mapping[str, Any]:
        """What a list shows: what was run, its seconds, and the metrics of the split `test`; made anew each time."""
        seen = json.loads(self.texts[33 : self.texts.index(b"\t", 33)].decode())  # a tenth of the text
        return {**seen, "test": {name: read_number(value) for name, value in (seen["test"] or {}).items()}}

    @property
    def evaluations(self) -> tuple[str, ...]:
        """What its network was evaluated on besides its own splits, by name: `svhn`, `cifar10c-5`, `saliency-8`."""
        return tuple(self._evaluations)

    @cached_property
    def record(self) -> Mapping[str, Any]:
        """What came out: {"metrics": {split: {metric: number}}, "provenance", "seconds", "epochs", "evaluations"}.

        `metrics` are those of the evaluations too; `evaluations` has provenance and seconds of each by its name.
        """
        stored = self._part(3)
        records = {name: evaluation["record"] for name, evaluation in self._own_folders.items()}
        metrics: dict[str, dict[str, float]] = {}
        for record in (stored, *records.values()):
            for split, values in record["metrics"].items():
                metrics.setdefault(split, {name: read_number(value) for name, value in values.items()})
        about = {
            evaluation: {name: value for name, value in record.items() if name != "metrics"}
            for evaluation, record in records.items()
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

    def metrics(self, split: str) -> dict[str, float]:
        """The metrics of a split by name; NaN where one could not be computed."""
        known = self.record["metrics"]
        _check_known(f"split with metrics of run {self.key[:12]}", split, known)
        return dict(known[split])

    def epochs(self) -> list[dict[str, Any]]:
        """The record of each epoch; none if none were stored."""
        if EPOCHS not in self.files:
            return []
        folder = self.path
        content = (folder / EPOCHS).read_bytes()
        check_content(folder, EPOCHS, content, self._manifest)
        return [read_epoch(folder, EPOCHS, line) for line in content.splitlines()]

    def predictions(self, split: str) -> Predictions:
        """The predictions of a split, if their file is still what was stored; else `RunProblem`."""
        from focalcal.predictions import Predictions  # costs what torch costs

        _check_known(f"split with predictions of run {self.key[:12]}", split, self._split_files)
        return Predictions.load(self.file(self._split_files[split]))

    def file(self, name: str) -> Path:
        """The path of one of its files, if its content is what was stored; else `RunProblem`."""
        _check_known(f"name of a file of run {self.key[:12]}", name, self._places)
        folder, within, manifest = self._places[name]
        check_content(folder, within, None, manifest)
        return folder / within

    def verify(self, evaluation: str | None = None, *, kept: bool = True) -> None:
        """Compare every file of the run, or of one of its evaluations, with its checksum; `RunProblem` if one differs.

        An evaluation that is damaged leaves the run as it is. Without `kept`, files that no number comes from, weights
        above all, are left to whoever reads them: they are large.
        """
        folder, manifest = self.path, self._manifest
        if evaluation is not None:
            folder = folder / EVALUATIONS / evaluation
            manifest = self._own_folders[evaluation]["manifest"] if evaluation in self._own_folders else {"files": {}}
        for name in manifest["files"]:
            if kept or "/" in name or name in (SPEC, RESULT, EPOCHS):
                check_content(folder, name, None, manifest)

    def __repr__(self) -> str:
        """The key and what was run."""
        return f"Run({self.key[:12]}, {self.spec.name})"

    @cached_property
    def _fields(self) -> dict[str, Any]:
        return current_fields(self._part(2))

    @cached_property
    def _manifest(self) -> dict[str, Any]:
        """`files`: size and checksum by name; `splits`: file by split. Without those of its evaluations."""
        return self._part(4)

    @cached_property
    def _evaluations(self) -> dict[str, dict[str, Any]]:
        """`record` and `manifest` of each evaluation by name; empty for one that an older version kept in the run."""
        return {name: value for name, value in self._part(5).items() if name not in self._left_out}

    @property
    def _own_folders(self) -> dict[str, dict[str, Any]]:
        """The evaluations that have a folder of their own; older versions' have none."""
        return {name: evaluation for name, evaluation in self._evaluations.items() if evaluation}

    @cached_property
    def _split_files(self) -> dict[str, str]:
        files: dict[str, str] = dict(self._manifest["splits"])
        for name, evaluation in self._own_folders.items():
            for split, file in evaluation["manifest"]["splits"].items():
                files.setdefault(split, f"{EVALUATIONS}/{name}/{file}")
        return files

    @cached_property
    def _places(self) -> dict[str, tuple[Path, str, dict[str, Any]]]:
        """By every name that a file has: the folder whose `files.json` lists it, its name there, and that list."""
        places = {file: (self.path, file, self._manifest) for file in self._manifest["files"]}
        for name, evaluation in self._own_folders.items():
            folder, manifest = self.path / EVALUATIONS / name, evaluation["manifest"]
            for file in manifest["files"]:
                places[f"{EVALUATIONS}/{name}/{file}"] = folder, file, manifest
                if file != RESULT and "/" not in file:
                    places[file] = folder, file, manifest
        return places

    def _part(self, number: int) -> dict[str, Any]:
        part: dict[str, Any] = json.loads(self.texts.split(b"\t")[number])
        return part


def _check_known(what: str, name: str, known: Mapping[str, Any]) -> None:
    if name not in known:
        raise ValueError(f"{what} must be among {', '.join(map(repr, known)) or 'none'}, got {name!r}")
