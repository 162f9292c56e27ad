"""What is known of a study: every number that its tables, figures and page show, from stored runs alone."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from focalcal.lab.evidence.gaps import (
    EvidenceGap,
    cells_not_run,
    gaps_of_stores,
    metrics_not_finite,
    nothing_stored,
    seeds_short,
)
from focalcal.lab.evidence.labels import NO_LABELS, Label, Labels, cell_names, run_labels
from focalcal.lab.evidence.run_details import RunDetails, run_details
from focalcal.lab.evidence.temperature_effect import EvidenceNote, FittedOn, Scaled, scaled
from focalcal.lab.objectives import ORDER, base_name, full_name, looks
from focalcal.lab.store import Run, Spec, Store
from focalcal.lab.store.merge import runs_of
from focalcal.metrics.reliability import Reliability, reliability
from focalcal.pages.palette import Look
from focalcal.predictions import Predictions


@dataclass(frozen=True, eq=False)
class RunEvidence:
    """One run.

    setting      data set and network, "digits/small_cnn", and how it was trained where that differs (`run_labels`)
    objective    its name, with the options that tell it from others of the same setting: "fcl lam=0.5"
    metrics      by split and name, as they were stored
    reliability  of the test split as it is; None where there is none, and `notes` say why
    scaled       None for several labels, or probabilities without logits, and `notes` say why
    details      what only pages show; None unless it was asked for
    constant_error  what predicting the commonest test label for every row would err; None if that is not known
    """

    key: str
    setting: str
    objective: str
    options: dict[str, Any]
    seed: int
    spec: dict[str, Any]
    record: Mapping[str, Any]
    metrics: dict[str, dict[str, float]]
    epochs: list[dict[str, Any]]
    reliability: Reliability | None
    scaled: Scaled | None
    notes: tuple[EvidenceNote, ...] = ()
    constant_error: float | None = None
    details: RunDetails | None = None

    @property
    def optimum(self) -> Scaled | None:
        """`scaled` if a finite T is best: one at a bound enters no mean."""
        return None if self.scaled is None or self.scaled.at_bound else self.scaled

    @property
    def name(self) -> str:
        """`digits/small_cnn fcl seed 0`."""
        return f"{self.setting} {self.objective} seed {self.seed}"


@dataclass(frozen=True, eq=False)
class Evidence:
    """The runs of a study, and what is missing of it. Settings and objectives in order of occurrence.

    candidate  the objective that the study is about, as it was named; `comparisons.candidate_of` says which one it is
    """

    title: str
    runs: tuple[RunEvidence, ...]
    missing: tuple[EvidenceGap, ...] = ()
    fitted_on: FittedOn = "halves"
    candidate: str | None = None

    @property
    def settings(self) -> tuple[str, ...]:
        """Data set and network, each once."""
        return tuple(dict.fromkeys(run.setting for run in self.runs))

    @property
    def objectives(self) -> tuple[str, ...]:
        """Each once, over all settings."""
        return tuple(dict.fromkeys(run.objective for run in self.runs))

    @property
    def losses(self) -> tuple[str, ...]:
        """The names of the losses, whatever the objectives are called, each once."""
        return tuple(dict.fromkeys(run.spec["objective"] for run in self.runs))

    def named(self, objective: str) -> list[str]:
        """The objectives that a name means: the one of that label, else every point of the loss of that name."""
        found = dict.fromkeys(run.objective for run in self.runs if run.spec["objective"] == objective)
        return [objective] if objective in self.objectives else list(found)

    @cached_property
    def looks(self) -> dict[str, Look]:
        """Of the objectives, in figures and on pages alike."""
        return looks({run.objective: run.spec["objective"] for run in self.runs})

    def full_name(self, objective: str) -> str:
        """What an objective is: of one with a label of the study, the label and the loss."""
        loss = next(run.spec["objective"] for run in self.runs if run.objective == objective)
        return full_name(objective) if base_name(objective) == loss else f"{objective}, {full_name(loss)}"

    def place(self, setting: str) -> str:
        """Data set and network of a setting, whatever it is called."""
        spec = next(run.spec for run in self.runs if run.setting == setting)
        return f"{spec['data_set']}/{spec['model']}"

    @cached_property
    def cells(self) -> dict[tuple[str, str], list[RunEvidence]]:
        """By setting and objective, the runs by seed; without empty cells."""
        cells: dict[tuple[str, str], list[RunEvidence]] = {
            (setting, objective): [] for setting in self.settings for objective in self.objectives
        }
        for run in sorted(self.runs, key=lambda run: run.seed):
            cells[run.setting, run.objective].append(run)
        return {cell: runs for cell, runs in cells.items() if runs}

    def of(self, setting: str, objective: str) -> list[RunEvidence]:
        """The runs of a cell by seed; none if there are none."""
        return list(self.cells.get((setting, objective), ()))

    def values(self, setting: str, metric: str, *, split: str = "test") -> dict[str, dict[int, float]]:
        """By objective and seed; NaN and infinity as they were stored, nothing where the metric was not measured."""
        by_objective = {
            objective: {
                run.seed: run.metrics[split][metric]
                for run in self.of(setting, objective)
                if metric in run.metrics.get(split, {})
            }
            for objective in self.objectives
        }
        return {objective: seeds for objective, seeds in by_objective.items() if seeds}


EvidenceCache = dict[tuple[str, Label, tuple[str, ...]], RunEvidence]  # by key, label and evaluations


def collected(
    stores: Sequence[Store], specs: Sequence[Spec] = (), labels: Labels = NO_LABELS
) -> tuple[list[Run], list[EvidenceGap]]:
    """The runs of stores that a study is about, in reading order, and why others of it cannot be shown.

    Those of `specs` if there are any, and the gaps of these alone.
    """
    runs, findings = runs_of(stores)
    names = cell_names(specs, labels) if specs else None
    if names is not None:
        runs = [run for run in runs if run.key in names]
    gaps = gaps_of_stores(findings, names)
    if not runs:
        gaps.insert(0, nothing_stored(of_study=bool(specs)))
    return reading_order(runs), gaps


def gather_metrics(runs: Iterable[Run], *, title: str, **options: Any) -> Evidence:
    """`gather` with the stored metrics, for tables that need no predictions: neither epochs, bins nor T.

    Of each test set the labels are read once, from the first run that has them.
    """
    return gather(runs, title=title, whole=False, **options)


def gather(
    runs: Iterable[Run],
    *,
    title: str,
    temperature: FittedOn = "halves",
    missing: Sequence[EvidenceGap] = (),
    known: Sequence[Spec] = (),
    candidate: str | None = None,
    labels: Labels = NO_LABELS,
    details: bool = False,
    whole: bool = True,
    cache: EvidenceCache | None = None,
) -> Evidence:
    """Read every run, and compute what the reports show: reliability bins and temperature scaling.

    `details` adds what only pages show (`RunDetails`); its bootstrap takes 0.3 s per run of 10,000 rows. Without
    `whole` this is `gather_metrics`.

    `candidate` names what the study is about, and `labels` are what a study calls its settings and objectives, by key.

    `known` are the cells that ought to be there: they set the order, and those without a run are named in `missing`,
    after what the caller knows to be missing. Runs with metrics that are not finite, damaged predictions or seeds that
    others have are kept, and named. What is in `cache` is not read again, and what is read is put there: a store that
    is filled while it is watched costs its new runs alone.
    """
    order = {spec.key: at for at, spec in enumerate(known)}
    stored = sorted({run.key: run for run in runs}.values(), key=lambda run: order.get(run.key, len(order)))
    specs = [*known, *(run.spec for run in stored if run.key not in order)]
    called = run_labels(specs, labels)
    objectives = dict.fromkeys(name for spec in specs for name in (called[spec.key].objective, spec.objective))
    if candidate is not None and objectives and candidate not in objectives:
        known_names = ", ".join(map(repr, objectives))
        raise ValueError(f"candidate must be one of {known_names}, got {candidate!r}; name an objective of the runs")
    constants: dict[str, float | None] = {}
    read: EvidenceCache = {} if cache is None else cache
    states = {run.key: (run.key, called[run.key], tuple(run.evaluations)) for run in stored}
    for run in stored:
        if (state := states[run.key]) not in read:
            read[state] = _read(run, called[run.key], temperature, constants, whole=whole, details=details)
    evidence = tuple(read[state] for state in states.values())
    _check_same_data(evidence)
    gaps = [*missing, *cells_not_run(known, {run.key for run in stored}, missing, labels)]
    gaps += [
        EvidenceGap("unreadable", note.text, run.key, run.name)
        for run in evidence
        for note in run.notes
        if note.kind == "unreadable"
    ]
    gaps += [*metrics_not_finite(evidence), *seeds_short(evidence, set(order))]
    return Evidence(title, evidence, tuple(dict.fromkeys(gaps)), temperature, candidate)


def _check_same_data(runs: Iterable[RunEvidence]) -> None:
    """Refuse to put runs of one setting side by side that saw different examples under the same name."""
    first: dict[str, tuple[str, RunEvidence]] = {}
    for run in runs:
        fingerprints = run.record.get("provenance", {}).get("data", {}).get("fingerprints", {})
        asked = [run.spec["training"].get("data_options"), run.spec["protocol"]]
        for split, fingerprint in fingerprints.items():
            # Objectives may hold out other rows of the training split, but are tested on the same.
            same = json.dumps([run.setting, split, None if split == "test" else asked], sort_keys=True)
            known, other = first.setdefault(same, (fingerprint, run))
            if known != fingerprint:
                raise ValueError(
                    f"runs must have seen the same data to be compared, got different {split} examples in "
                    f"{other.key[:12]} ({other.name}) and {run.key[:12]} ({run.name}); show the cells of one study "
                    "alone (--study), or remove the runs of the data that is out of date with `focalcal runs rm`"
                )


def reading_order(runs: Iterable[Run]) -> list[Run]:
    """By data set, network, objective (cross-entropy first, FCL last), options and seed: a store has no order."""

    def place(run: Run) -> tuple[Any, ...]:
        spec = run.settings
        name = spec["objective"]
        known = ORDER.index(name) if name in ORDER else len(ORDER)
        options = [_sortable(value) for value in spec["objective_options"].values()]
        return spec["data_set"], spec["model"], known, name, options, spec["seed"], run.key

    return sorted(runs, key=place)


def _sortable(value: Any) -> tuple[float, str]:
    return (value, "") if isinstance(value, int | float) else (float("inf"), str(value))


def _read(
    run: Run, label: Label, temperature: FittedOn, constants: dict[str, float | None], *, whole: bool, details: bool
) -> RunEvidence:
    """The evidence of a run; `constants` are errors of constant guesses by test set."""
    spec = dict(run.settings)
    faults: list[EvidenceNote] = []
    notes: list[EvidenceNote] = []
    epochs: list[dict[str, Any]] = []
    try:
        epochs = run.epochs() if whole else []
    except (OSError, ValueError) as error:
        faults.append(EvidenceNote("unreadable", f"its epochs cannot be read: {error}"))
    test = _predictions(run, "test", faults) if whole else None
    diagram, scaling = None, None
    if test is None:
        lacks = "no reliability bins and no temperature: there are no predictions of the test split"
        notes.append(EvidenceNote("no predictions", lacks if whole else "its predictions were not read"))
    else:
        validation = _predictions(run, "val", faults) if temperature == "validation" else None
        scaling, notes = scaled(test, validation, fitted_on=temperature, seed=spec["seed"])
        if not test.multilabel:
            diagram = reliability(test.probs, test.labels)
    return RunEvidence(
        key=run.key,
        setting=label.setting,
        objective=label.objective,
        options=dict(spec["objective_options"]),
        seed=int(spec["seed"]),
        spec=spec,
        record=run.record,
        metrics={split: dict(values) for split, values in run.record["metrics"].items()},
        epochs=epochs,
        reliability=diagram,
        scaled=scaling,
        notes=(*notes, *faults),
        constant_error=_constant_error(run, test, constants),
        details=run_details(test, spec) if details and test is not None else None,
    )


def _constant_error(run: Run, test: Predictions | None, known: dict[str, float | None]) -> float | None:
    """1 minus the share of the commonest test label; of runs with one test set, `known` has that of the first."""
    if test is not None:
        return None if test.multilabel else 1 - int(np.bincount(test.labels).max()) / len(test)
    spec = run.settings
    protocol = {name: spec["protocol"].get(name) for name in ("test_examples", "allow_partial")}
    rows = run.record["metrics"].get("test", {}).get("rows")
    data = [spec["data_set"], spec["training"].get("data_options"), spec["training"].get("fingerprint")]
    same = json.dumps([*data, protocol, rows], sort_keys=True)
    if same not in known:
        read = _predictions(run, "test", [])
        if read is None:
            return None  # another run may have them
        known[same] = _constant_error(run, read, known)
    return known[same]


def _predictions(run: Run, split: str, faults: list[EvidenceNote]) -> Predictions | None:
    if split not in run.splits:
        return None
    try:
        return run.predictions(split)
    except (OSError, ValueError) as error:  # changed, cut off, not readable
        faults.append(EvidenceNote("unreadable", f"its predictions of {split} cannot be read: {error}"))
        return None
