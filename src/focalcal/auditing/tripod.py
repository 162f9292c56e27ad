"""The items of TRIPOD+AI that concern calibration, with the numbers of an audit filled in, for a paper's supplement.

Collins et al. (2024), "TRIPOD+AI statement: updated guidance for reporting clinical prediction models that use
regression or machine learning methods", BMJ 385. What is asked is put into our own words; the numbers of items are
theirs. An audit knows the evaluation alone: what it cannot know stands in square brackets.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from focalcal.auditing.tables import metric_title, part_table, shown
from focalcal.core.display import percent, ratio

if TYPE_CHECKING:
    from focalcal.auditing.auditor import Audit
    from focalcal.auditing.event import Event
    from focalcal.metrics import Interval

_PERFORMANCE = (
    "observed_rate", "predicted_rate", "oe", "citl", "slope", "intercept", "ici", "e50", "e90", "auroc",
)  # fmt: skip


def tripod_report(audit: Audit) -> str:
    """Markdown, one heading per item; of an audit with an event."""
    if not audit.events:
        raise ValueError(
            "the report tripod is of the probability of an event, and this audit has none; name the class by event"
        )
    parts = ["# TRIPOD+AI: calibration of the evaluated model\n"]
    for event in audit.events:
        parts.append(f"Outcome: {event.name}.\n")
        parts += [f"## {item}\n\n{text}\n" for item, text in _items(audit, event)]
    return "\n".join(parts)


def _items(audit: Audit, event: Event) -> Iterator[tuple[str, str]]:
    found = event.calibration
    clusters = "[state whether rows come in clusters, such as hospitals]; rows were taken for independent."
    if found.clusters is not None:
        clusters = f"Intervals are over {found.clusters:,} clusters, whose rows were taken together."
    yield "12d Heterogeneity across clusters", clusters
    weighted = " Rows were weighted." if found.weighted else ""
    yield (
        "12e Measures and plots",
        "Calibration in the large as the ratio of observed and expected events (O/E) and as the intercept with the "
        "slope fixed at 1; weak calibration as slope and intercept of a logistic recalibration; moderate calibration "
        "by the flexible curve (logistic regression on a restricted cubic spline of the log odds) and its distances "
        "from the diagonal, ICI, E50 and E90; discrimination as the area under the ROC curve; overall performance as "
        f"Brier score and log score. All intervals are at 95 %.{weighted}",
    )
    fixes = audit.fixes
    tried = "No recalibration was tried."
    if fixes is not None:
        on = fixes.compared.said or "all rows"
        tried = f"{len(fixes.tried)} recalibration maps were compared on {on}, in five folds, by their log score."
    yield "12f Model updating", tried
    yield (
        "13 Class imbalance",
        f"The outcome occurs in {percent(found.observed_rate.estimate)} of rows; [what was done].",
    )
    yield "15 Model output", "Probabilities from 0 to 1; [thresholds, and how they were chosen]."
    yield (
        "21 Participants and outcome events",
        f"{found.rows:,} rows with {found.events:,} events in the evaluation; [those of the development].",
    )
    lines = [f"- {metric_title(name)}: {_interval(name, found.intervals[name])}" for name in _PERFORMANCE]
    lines += [
        f"- Brier score of the event: {_interval('score', found.brier)}",
        f"- Spiegelhalter's test: z = {found.spiegelhalter.z:.2f}, p = {found.spiegelhalter.p:.3g}",
    ]
    yield "23a Model performance", f"{found.sentence}\n\n" + "\n".join(lines) + _groups(event)
    between = "Not examined."
    if len(event.groups) > 1:
        off = [part.name for part in event.groups if part.off]
        between = f"Of {len(event.groups)} groups {len(off)} are off beyond chance" + (
            f": {', '.join(off)}." if off else "."
        )
    yield "23b Heterogeneity of performance", between
    updated = "The model was not updated."
    if fixes is not None and fixes.chosen is not None:
        updated = f"{fixes.sentence} The updated map: `{fixes.formula}`."
    yield "24 Results of model updating", updated


def _interval(name: str, found: Interval) -> str:
    value, low, high = (_text(name, each) for each in (found.estimate, found.low, found.high))
    return f"{value} (95 % interval {low} to {high})"


def _text(name: str, value: float) -> str:
    made = shown(name, value)
    return "undefined" if made is None else getattr(made, "text", ratio(value))


def _groups(event: Event) -> str:
    if not event.groups:
        return ""
    return "\n\nBy group, predicted and observed, the gap in points with intervals for all groups at once:\n\n" + (
        part_table(event.groups, event=True).markdown()
    )
