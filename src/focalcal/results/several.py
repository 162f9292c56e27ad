"""The runs of several stores as one, and sentences about what in them cannot be used or does not agree."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from focalcal.results.run import Run
from focalcal.results.store import Store


def runs_of(stores: Iterable[Store]) -> tuple[list[Run], list[str]]:
    """Each run once; where stores have the same key with other metrics, the first store's is taken, and said.

    Seconds and provenance differ between repetitions and are no disagreement. Damaged folders and failures are said.
    """
    found: dict[str, Run] = {}
    told: list[str] = []
    failed: dict[str, str] = {}
    for store in stores:
        runs, problems = store.survey()
        for run in runs:
            first = found.setdefault(run.key, run)
            if first is not run and (where := _differs(first.record["metrics"], run.record["metrics"])):
                told.append(
                    f"{run.spec.name} ({run.key[:12]}): {first.path} and {run.path} hold different results ({where}); "
                    "the first is used"
                )
        told += [str(problem) for problem in problems if problem.kind != "set aside"]
        for one in store.failures():
            message = " ".join(str(one["message"]).split())
            failed.setdefault(one["key"], f"{one['key'][:12]}  failed ({one['kind']}): {message}")
    return list(found.values()), told + [line for key, line in failed.items() if key not in found]


def _differs(one: dict[str, dict[str, Any]], other: dict[str, dict[str, Any]]) -> str:
    """Where two records disagree first, "test ece 0.1 and 0.2", or nothing; NaN agrees with NaN."""
    for split in dict.fromkeys([*one, *other]):
        for name in dict.fromkeys([*one.get(split, {}), *other.get(split, {})]):
            values = [record.get(split, {}).get(name) for record in (one, other)]
            if repr(values[0]) != repr(values[1]):
                return f"{split} {name} {values[0]} and {values[1]}"
    return ""
