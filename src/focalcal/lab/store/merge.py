"""The runs of several stores as one, and what in them cannot be used or does not agree."""

from __future__ import annotations

from collections.abc import Iterable

from focalcal.lab.store.diagnostics import Disagreement, RunFailure, StoreFinding, StoreProblem
from focalcal.lab.store.run import Run
from focalcal.lab.store.store import Store


def runs_of(stores: Iterable[Store]) -> tuple[list[Run], list[StoreFinding]]:
    """Each run once, that with most evaluations; where stores differ in a metric the first one's is taken, and said.

    Seconds and provenance differ between repetitions and are no disagreement. Damaged folders and failures are said,
    and runs of a spec that this version does not understand, which are left out.
    """
    chosen: dict[str, Run] = {}
    findings: list[StoreFinding] = []
    failed: dict[str, RunFailure] = {}
    for store in stores:
        runs, problems = store.survey()
        for run in runs:
            if (problem := _spec_problem(run)) is not None:
                findings.append(problem)
                continue
            first = chosen.setdefault(run.key, run)
            if first is run:
                continue
            if (difference := disagreement(first, run)) is not None:
                findings.append(difference)
            elif len(run.evaluations) > len(first.evaluations):
                chosen[run.key] = run
        findings += [problem for problem in problems if problem.kind != "set aside"]
        for failure in store.failures():
            key = failure["key"]
            failed.setdefault(key, RunFailure(key, str(failure["kind"]), str(failure["message"])))
    return list(chosen.values()), [*findings, *(failure for key, failure in failed.items() if key not in chosen)]


def _spec_problem(run: Run) -> StoreProblem | None:
    try:
        run.spec  # noqa: B018, made when it is asked for
    except (TypeError, ValueError) as error:
        return StoreProblem(run.path, "left out", f"its spec cannot be understood: {error}")
    return None


def disagreement(first: Run, other: Run) -> Disagreement | None:
    """The first metric in which two records of a run differ; NaN agrees with NaN.

    Splits that one of them lacks are evaluations that were not made there.
    """
    metrics = [run.record["metrics"] for run in (first, other)]
    for split in (split for split in metrics[0] if split in metrics[1]):
        for name in dict.fromkeys([*metrics[0][split], *metrics[1][split]]):
            values = metrics[0][split].get(name), metrics[1][split].get(name)
            if repr(values[0]) != repr(values[1]):
                return Disagreement(first.key, first.spec.name, first.path, other.path, split, name, values)
    return None
