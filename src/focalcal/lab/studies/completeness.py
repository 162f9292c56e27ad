"""Whether the cells of a study are whole: stored, with finite losses, every metric and every evaluation."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any, Literal

from focalcal.lab.data.corruptions import CORRUPTIONS
from focalcal.lab.store import Evaluations, Run, Spec, Store
from focalcal.lab.store.diagnostics import RunProblem
from focalcal.lab.store.spec import NOTHING_MORE
from focalcal.lab.studies.evaluate import WEIGHTS, NoWeightsError, without_weights
from focalcal.lab.studies.spec_builder import has_validation, is_multilabel
from focalcal.metrics import table

METRICS = tuple(name for name, metric in table.METRICS.items() if metric.in_summary)
MULTILABEL_METRICS = tuple(name for name in METRICS if name in table.MULTILABEL_METRICS)
DETECTION = ("auroc", "confidence")
Stored = Mapping[str, Run | RunProblem]  # by key, what a store has of cells: whole runs, and what is wrong with others


@dataclass(frozen=True)
class CellGap:
    """One thing that a cell lacks, or that is not as it should be. `name` is the cell's, `message` says what.

    not run          there is no run of it
    failed           the last attempt had no result
    damaged          there is a run that cannot be used
    not evaluated    it lacks evaluations
    without weights  likewise, and they cannot be computed any more
    incomplete       it lacks epochs, predictions or metrics, or some are not finite
    """

    kind: Literal["not run", "failed", "damaged", "not evaluated", "without weights", "incomplete"]
    key: str
    name: str
    message: str

    def __str__(self) -> str:
        """The message, one line that does not say of which cell."""
        return self.message


def examine_cells(specs: Iterable[Spec], store: Store) -> dict[str, Run | RunProblem]:
    """What the store has of each cell; one that was not run is not in it. Every file of a run is compared once."""
    stored: dict[str, Run | RunProblem] = {}
    for spec in dict.fromkeys(specs):
        try:
            stored[spec.key] = store.run(spec.key)
        except RunProblem as problem:
            stored[spec.key] = problem
        except ValueError:  # there is no such run
            continue
    return stored


def is_complete(run: Run | RunProblem | None, evaluations: Evaluations) -> bool:
    """Whether there is nothing left to train or to evaluate."""
    return isinstance(run, Run) and not evaluations.missing_from(run.evaluations)


def find_gaps(
    specs: Iterable[Spec], store: Store, evaluations: Evaluations = NOTHING_MORE, *, stored: Stored | None = None
) -> list[CellGap]:
    """What keeps cells from being whole.

    A cell must be stored; have a record of every epoch with a finite training loss; have predictions and every
    metric, each of them finite, of the test split and of the validation split if there is one; and the evaluations.

    Args:
        specs: the cells.
        store: which is looked at.
        evaluations: that each must have.
        stored: what `examine_cells` found, if the store was looked at before.

    Returns:
        The gaps, in the order of the cells; none of a study that is finished.

    >>> from tempfile import TemporaryDirectory
    >>> from focalcal.lab.studies import load_study
    >>> with TemporaryDirectory() as folder:
    ...     cells = load_study("digits", seeds=1).specs()
    ...     {gap.kind for gap in find_gaps(cells, Store(folder))}
    {'not run'}
    """
    cells = list(dict.fromkeys(specs))
    there = examine_cells(cells, store) if stored is None else stored
    absent = any(not isinstance(there.get(spec.key), Run) for spec in cells)
    failed = {failure["key"]: failure for failure in store.failures()} if absent else {}
    gaps: list[CellGap] = []
    for spec in cells:
        run, failure = there.get(spec.key), failed.get(spec.key)
        gap = partial(CellGap, key=spec.key, name=spec.name)
        if isinstance(run, Run):
            gaps += _gaps_of_run(spec, run, evaluations, gap)
        elif failure is not None:
            gaps.append(gap("failed", message=f"{failure['kind']}: {failure['message']}"))
        elif run is not None:
            gaps.append(gap("damaged", message=f"stored, but {run.problem.kind}: {run.problem.message}"))
        else:
            gaps.append(gap("not run", message="not run"))
    return gaps


def _gaps_of_run(spec: Spec, run: Run, evaluations: Evaluations, gap: Callable[..., CellGap]) -> Iterator[CellGap]:
    lacking = evaluations.missing_from(run.evaluations)
    for message in _epoch_faults(spec, run):
        yield gap("incomplete", message=message)
    if lacking and WEIGHTS in run.files:
        yield gap("not evaluated", message=f"not evaluated yet: {', '.join(lacking)}")
    elif lacking:
        yield gap("without weights", message=str(NoWeightsError(spec.key, spec.name, without_weights(lacking))))
    made = [alone for evaluation, alone in evaluations.apart().items() if evaluation not in lacking]
    metrics: Mapping[str, Mapping[str, Any]] = run.record["metrics"]
    for split, wanted in _expected_metrics(spec, run, made).items():
        if split not in run.splits:
            yield gap("incomplete", message=f"no predictions of {split}")
        if split not in metrics:
            yield gap("incomplete", message=f"no metrics of {split}")
            continue
        if absent := [name for name in wanted if name not in metrics[split]]:
            yield gap("incomplete", message=f"{split} has no {', '.join(absent)}")
        there = {name: metrics[split][name] for name in wanted if name in metrics[split]}
        if strange := [f"{name} is {value}" for name, value in there.items() if not _is_finite(value)]:
            yield gap("incomplete", message=f"on {split} {', '.join(strange)}")


def _epoch_faults(spec: Spec, run: Run) -> Iterator[str]:
    epochs, trained = run.epochs(), spec.training["epochs"]
    if len(epochs) != trained:
        yield f"records of {len(epochs)} epochs instead of {trained}"
    for record in epochs:
        if not _is_finite(loss := record.get("train", {}).get("loss")):
            yield f"the training loss of epoch {record.get('epoch')} is {loss}"


def _expected_metrics(spec: Spec, run: Run, evaluations: Iterable[Evaluations]) -> dict[str, tuple[str, ...]]:
    """The metrics that each split must have; a shift may have labels that are no classes."""
    names: tuple[str, ...] = MULTILABEL_METRICS if is_multilabel(spec.model) else METRICS
    counts = run.record["provenance"].get("data", {}).get("counts", {})
    held_out = counts["val"] if "val" in counts else has_validation(spec.data_set, spec.training["data_options"])
    splits = {"val": names, "test": names} if held_out else {"test": names}
    for evaluation in evaluations:
        for shift in evaluation.shifts:
            if shift == "cifar10c":  # the same classes, so that errors can be counted
                corrupted = [
                    f"cifar10c/{corruption}/{severity}"
                    for corruption in CORRUPTIONS
                    for severity in evaluation.severities
                ]
                splits |= dict.fromkeys(corrupted, (*names, *DETECTION))
            else:
                splits[shift] = DETECTION
    return splits


def _is_finite(value: Any) -> bool:
    return isinstance(value, int | float) and math.isfinite(value)
