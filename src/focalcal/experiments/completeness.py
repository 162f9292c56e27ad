"""Whether a finished study is whole: every cell, finite losses, whole metric records."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from focalcal.data.corruptions import CORRUPTIONS
from focalcal.experiments.evaluate import without_weights
from focalcal.experiments.spec_builder import has_validation, multilabel, recipe_of
from focalcal.metrics import table
from focalcal.results import Evaluations, Run, Spec, Store
from focalcal.results.diagnostics import RunProblem
from focalcal.results.evaluations import NOTHING_MORE
from focalcal.training.recipe import Recipe

METRICS = tuple(name for name, metric in table.METRICS.items() if metric.in_summary)
MULTILABEL_METRICS = tuple(name for name in METRICS if name in table.MULTILABEL_METRICS)
DETECTION = ("auroc", "confidence")


@dataclass(frozen=True)
class Gap:
    """A cell by its key, and what is not there or not as it should be."""

    key: str
    what: str

    def __str__(self) -> str:
        """One line."""
        return f"{self.key[:12]}  {self.what}"


def gaps(specs: Iterable[Spec], store: Store, evaluations: Evaluations = NOTHING_MORE) -> list[Gap]:
    """What is not whole, in the order of the cells; none of a study that is finished.

    A cell must be stored; have a record of every epoch with a finite training loss; have predictions and every metric,
    each of them finite, of the test split and of the validation split if there is one; and these evaluations.
    """
    failed = {failure["key"]: failure for failure in store.failures()}
    found: list[Gap] = []
    for spec in dict.fromkeys(specs):
        try:
            missing = list(_missing(spec, store.run(spec.key), evaluations))
        except RunProblem as error:
            missing = [f"stored, but {error.problem.kind}: {error.problem.message}"]
        except ValueError:  # there is no such run
            failure = failed.get(spec.key)
            missing = ["not run" if failure is None else f"failed ({failure['kind']}): {failure['message']}"]
        found += [Gap(spec.key, f"{spec.name}: {one}") for one in missing]
    return found


def _missing(spec: Spec, run: Run, evaluations: Evaluations) -> Iterator[str]:
    recipe = recipe_of(spec)
    yield from _epoch_gaps(run.epochs(), recipe.epochs)
    stored: Mapping[str, Mapping[str, Any]] = run.record["metrics"]
    if lacking := evaluations.missing_from(run.evaluations):
        yield without_weights(run, lacking) or f"not evaluated yet: {', '.join(lacking)}"
    there = [one for name, one in evaluations.apart().items() if name not in lacking]
    for split, names in _expected(recipe, there).items():
        if split not in run.splits:
            yield f"no predictions of {split}"
        if split not in stored:
            yield f"no metrics of {split}"
            continue
        yield from _metric_gaps(split, stored[split], names)


def _epoch_gaps(epochs: list[dict[str, Any]], wanted: int) -> Iterator[str]:
    if len(epochs) != wanted:
        yield f"records of {len(epochs)} epochs instead of {wanted}"
    for one in epochs:
        loss = one.get("train", {}).get("loss")
        if not _finite(loss):
            yield f"the training loss of epoch {one.get('epoch')} is {loss}"


def _metric_gaps(split: str, metrics: Mapping[str, Any], wanted: tuple[str, ...]) -> Iterator[str]:
    if absent := [name for name in wanted if name not in metrics]:
        yield f"{split} has no {', '.join(absent)}"
    for name in wanted:
        if name in metrics and not _finite(metrics[name]):
            yield f"{name} of {split} is {metrics[name]}"


def _expected(recipe: Recipe, evaluations: Iterable[Evaluations]) -> dict[str, tuple[str, ...]]:
    """The metrics that each split must have; a shift may have labels that are no classes."""
    names: tuple[str, ...] = MULTILABEL_METRICS if multilabel(recipe) else METRICS
    splits = {"val": names, "test": names} if has_validation(recipe) else {"test": names}
    for one in evaluations:
        for shift in one.shifts:
            if shift == "cifar10c":  # the same classes, so that errors can be counted
                corrupted = [f"cifar10c/{name}/{severity}" for name in CORRUPTIONS for severity in one.severities]
                splits |= dict.fromkeys(corrupted, (*names, *DETECTION))
            else:
                splits[shift] = DETECTION
    return splits


def _finite(value: Any) -> bool:
    return isinstance(value, int | float) and math.isfinite(value)
