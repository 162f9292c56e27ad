"""The runs of several stores as one, and what in them cannot be used or does not agree."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from focalcal.results.diagnostics import Problem
from focalcal.results.run import Run
from focalcal.results.store import Store


@dataclass(frozen=True)
class Disagreement:
    """Two stores that hold one run with different metrics; `where` they differ first."""

    key: str
    name: str
    used: Path
    other: Path
    where: str

    def __str__(self) -> str:
        """One line."""
        return (
            f"{self.name} ({self.key[:12]}): {self.used} and {self.other} hold different results ({self.where}); "
            "the first is used"
        )


@dataclass(frozen=True)
class Failure:
    """A spec whose last attempt failed and that no store has a run of."""

    key: str
    kind: str
    message: str

    def __str__(self) -> str:
        """One line."""
        return f"{self.key[:12]}  failed ({self.kind}): {' '.join(self.message.split())}"


StoreFinding = Problem | Disagreement | Failure


def runs_of(stores: Iterable[Store]) -> tuple[list[Run], list[StoreFinding]]:
    """Each run once, that with most evaluations; where stores differ in a metric the first one's is taken, and said.

    Seconds and provenance differ between repetitions and are no disagreement. Damaged folders and failures are said,
    and runs of a spec that this version does not understand, which are left out.
    """
    found: dict[str, Run] = {}
    findings: list[StoreFinding] = []
    failed: dict[str, Failure] = {}
    for store in stores:
        runs, problems = store.survey()
        for run in runs:
            if (fault := _strange(run)) is not None:
                findings.append(Problem(run.path, "left out", fault))
                continue
            first = found.setdefault(run.key, run)
            if first is run:
                continue
            where = _differs(first.record["metrics"], run.record["metrics"])
            if where:
                findings.append(Disagreement(run.key, run.spec.name, first.path, run.path, where))
            elif len(run.evaluations) > len(first.evaluations):
                found[run.key] = run
        findings += [problem for problem in problems if problem.kind != "set aside"]
        for one in store.failures():
            failed.setdefault(one["key"], Failure(one["key"], str(one["kind"]), str(one["message"])))
    return list(found.values()), [*findings, *(failure for key, failure in failed.items() if key not in found)]


def _strange(run: Run) -> str | None:
    try:
        run.spec  # noqa: B018, made when it is asked for
    except (TypeError, ValueError) as error:
        return f"its spec cannot be understood: {error}"
    return None


def _differs(one: dict[str, dict[str, Any]], other: dict[str, dict[str, Any]]) -> str:
    """Where two records disagree first, "test ece 0.1 and 0.2", or nothing; NaN agrees with NaN.

    Splits that one of them lacks are evaluations that were not made there.
    """
    for split in (split for split in one if split in other):
        for name in dict.fromkeys([*one[split], *other[split]]):
            values = [record[split].get(name) for record in (one, other)]
            if repr(values[0]) != repr(values[1]):
                return f"{split} {name} {values[0]} and {values[1]}"
    return ""
