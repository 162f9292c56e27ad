"""One stored run."""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from focalcal.lab.store.keys import ELSEWHERE
from focalcal.lab.store.layout import EPOCHS, EVALUATIONS, epoch_file
from focalcal.lab.store.run_folder import Checksums, read_number

if TYPE_CHECKING:
    from focalcal.lab.store.spec import Spec
    from focalcal.predictions import Predictions

GLANCE = ("data_set", "model", "objective", "objective_options", "seed")  # of a spec, in a list of runs


class Run:
    """A run that is complete: what was run, what came out, and the predictions it came from. Read when asked for.

    A `Store` makes them, from the records of a folder or from the JSON of both, {"run", "evaluations"}: lists of
    thousands of runs need the `glance` alone.

    Args:
        folder: where its files are.
        records: its own record and, by name, those of its evaluations.
        checksums: what compares files with what was stored.
        glance: what a list shows, as JSON.

    >>> from tempfile import TemporaryDirectory
    >>> from focalcal import Predictions
    >>> from focalcal.lab.store import Store
    >>> with TemporaryDirectory() as folder:
    ...     test = Predictions(probs=[[0.8, 0.2], [0.3, 0.7]], labels=[0, 0], split="test")
    ...     run = Store(folder).record(name="my_loss", predictions=test, seed=0)
    ...     print(run.spec.name, round(run.metrics("test")["nll"], 4), run.predictions("test").labels)
    custom/custom my_loss seed 0 0.7136 [0 0]
    """

    def __init__(
        self,
        folder: str,
        records: str | dict[str, Any],
        checksums: Checksums,
        *,
        glance: str | None = None,
    ) -> None:
        self._folder, self._given, self._checksums, self._glance = folder, records, checksums, glance

    @property
    def key(self) -> str:
        """The key of its spec: the name of its folder."""
        return self._folder[-32:]

    @property
    def path(self) -> Path:
        """Its folder."""
        return Path(self._folder)

    @cached_property
    def spec(self) -> Spec:
        """What was run."""
        from focalcal.lab.store.spec import Spec  # costs what pydantic costs

        return Spec.from_dict(self.settings)

    @property
    def settings(self) -> Mapping[str, Any]:
        """The spec as plain values; quicker than `spec`, for whoever looks at thousands of runs."""
        fields: dict[str, Any] = self._own["spec"]
        return fields

    @property
    def trained_elsewhere(self) -> bool:
        """Whether `Store.record` stored it: then its network is not one that this package could build again."""
        training: dict[str, Any] = self.settings["training"]
        return ELSEWHERE.items() <= training.items()

    @property
    def glance(self) -> Mapping[str, Any]:
        """What a list shows: what was run, its seconds, and the metrics of the split `test`; made anew each time."""
        seen = json.loads(self._glance) if self._glance is not None else glance_of(self._own)
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
        metrics: dict[str, dict[str, float]] = {}
        for record in (self._own, *self._evaluations.values()):
            for split, values in record["metrics"].items():
                metrics.setdefault(split, {name: read_number(value) for name, value in values.items()})
        about = {name: _told(record, "metrics", "epochs") for name, record in self._evaluations.items()}
        return {**_told(self._own), "metrics": metrics, "evaluations": about}

    @property
    def splits(self) -> tuple[str, ...]:
        """The splits that there are predictions of."""
        return tuple(self._split_files)

    @property
    def files(self) -> tuple[str, ...]:
        """The files that are listed, `weights.pt` say; one that an evaluation added also by its name alone."""
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
        return [json.loads(line) for line in self.file(EPOCHS).read_bytes().splitlines()]

    def predictions(self, split: str) -> Predictions:
        """The predictions of a split, if their file is still what was stored; else `RunProblem`."""
        from focalcal.predictions import Predictions

        _check_known(f"split with predictions of run {self.key[:12]}", split, self._split_files)
        return Predictions.load(self.file(self._split_files[split]))

    def kept(self, rule: str, split: str = "test") -> Predictions:
        """The predictions of "val" or "test" after the epoch that a rule keeps, whichever the run was trained to keep.

        The rules are "last", "nll", "error" and "refined"; `record["kept"]` has their epochs, validation scores and
        temperatures.
        """
        from focalcal.predictions import Predictions

        known = self.record.get("kept")
        if not known:
            raise ValueError(
                f"run {self.key[:12]} was stored without what rules keep: it has no validation rows of one label, or "
                "is of an older version; train it again"
            )
        _check_known(f"rule of run {self.key[:12]}", rule, known)
        epoch = known[rule]["epoch"]
        if epoch == known[self.settings["training"].get("keep", "last")]["epoch"]:
            return self.predictions(split)
        return Predictions.load(self.file(epoch_file(epoch, split)))

    def file(self, name: str) -> Path:
        """The path of one of its files, if its content is what was stored; else `RunProblem`."""
        _check_known(f"name of a file of run {self.key[:12]}", name, self._places)
        folder, within, record = self._places[name]
        return self._checksums.check(folder, within, record)

    def verify(self, evaluation: str | None = None, *, kept: bool = True) -> None:
        """Compare every file of the run, or of one of its evaluations, with its checksum; `RunProblem` if one differs.

        An evaluation that is damaged leaves the run as it is. Without `kept`, files that no number comes from, weights
        above all, are left to whoever reads them: they are large.
        """
        folder = self.path if evaluation is None else self.path / EVALUATIONS / evaluation
        record = self._own if evaluation is None else self._evaluations[evaluation]
        for name in record["files"]:
            if kept or "/" in name or name == EPOCHS:
                self._checksums.check(folder, name, record)

    def __repr__(self) -> str:
        """The key and what was run."""
        return f"Run({self.key[:12]}, {self.spec.name})"

    @cached_property
    def _records(self) -> dict[str, Any]:
        records: dict[str, Any] = json.loads(self._given) if isinstance(self._given, str) else self._given
        return records

    @property
    def _own(self) -> dict[str, Any]:
        own: dict[str, Any] = self._records["run"]
        return own

    @property
    def _evaluations(self) -> dict[str, dict[str, Any]]:
        evaluations: dict[str, dict[str, Any]] = self._records["evaluations"]
        return evaluations

    @cached_property
    def _split_files(self) -> dict[str, str]:
        files: dict[str, str] = dict(self._own["splits"])
        for name, evaluation in self._evaluations.items():
            for split, file in evaluation["splits"].items():
                files.setdefault(split, f"{EVALUATIONS}/{name}/{file}")
        return files

    @cached_property
    def _places(self) -> dict[str, tuple[Path, str, dict[str, Any]]]:
        """By every name that a file has: the folder whose record lists it, its name there, and that record."""
        places = {file: (self.path, file, self._own) for file in self._own["files"]}
        for name, evaluation in self._evaluations.items():
            for file in evaluation["files"]:
                places[f"{EVALUATIONS}/{name}/{file}"] = self.path / EVALUATIONS / name, file, evaluation
                if "/" not in file:
                    places[file] = places[f"{EVALUATIONS}/{name}/{file}"]
        return places


def glance_of(record: Mapping[str, Any]) -> dict[str, Any]:
    """What a list shows of a run with this record, as plain values."""
    named = {name: record["spec"][name] for name in GLANCE}
    return {**named, "seconds": record["seconds"], "test": record["metrics"].get("test")}


_OF_THE_FOLDER = ("schema", "key", "spec", "evaluation", "splits", "files", "sha256")  # in a record


def _told(record: Mapping[str, Any], *less: str) -> dict[str, Any]:
    """What was stored as a run's or an evaluation's record."""
    return {name: value for name, value in record.items() if name not in (*_OF_THE_FOLDER, *less)}


def _check_known(what: str, name: str, known: Mapping[str, Any]) -> None:
    if name not in known:
        raise ValueError(f"{what} must be among {', '.join(map(repr, known)) or 'none'}, got {name!r}")
