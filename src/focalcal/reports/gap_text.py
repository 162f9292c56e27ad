"""What a study and its runs lack, in sentences for people."""

from __future__ import annotations

import math
from collections.abc import Iterable

from focalcal.analysis.evidence import EvidenceNote
from focalcal.analysis.gaps import EvidenceGap, whole_metrics

_NOTES = {
    "not read": "its predictions were not read",
    "no predictions": "no reliability bins and no temperature: there are no predictions of the test split",
    "several labels": "no temperature: the labels are several yes-or-no questions, not classes",
    "no logits": "no temperature: probabilities were stored without their logits",
    "no validation logits": "no temperature: there are no logits of a validation split to fit it on",
}


def gap_sentences(gaps: Iterable[EvidenceGap]) -> list[str]:
    """Each once."""
    return list(dict.fromkeys(map(gap_sentence, gaps)))


def gap_sentence(gap: EvidenceGap) -> str:
    """One line."""
    run = f"{gap.name} ({(gap.key or '')[:12]})"
    match gap.kind:
        case "no runs":
            return "There is no whole run of this study." if gap.of_study else "The store holds no whole run."
        case "stored":
            return f"{gap.name}: {gap.finding}" if gap.name else str(gap.finding)
        case "not run":
            return f"{run}: not run"
        case "unreadable":
            return f"{run}: {gap.detail}"
        case "not finite":
            shown = ", ".join(f"{name} is {value}" for name, value in whole_metrics(gap).items())
            return f"{run}: on {gap.split} {shown}; {_consequence(gap)}"
        case "no seed":
            seeds = ", ".join(map(str, gap.seeds))
            return f"{gap.name} {', '.join(gap.objectives)}: no seed {seeds}, which others have"
        case "one seed":
            who = "every objective has" if gap.all_of_setting else f"{', '.join(gap.objectives)}: there is"
            return f"{gap.name}, {who} one seed only: no spread, and no test"


def note_text(note: EvidenceNote) -> str:
    """What a run says of itself."""
    return f"no temperature: {note.detail}" if note.kind == "not fitted" else _NOTES.get(note.kind, note.detail)


def _consequence(gap: EvidenceGap) -> str:
    if all(math.isnan(value) for _, value in gap.numbers):
        return "means and tests leave it out"
    return "means are then infinite, and tests leave the pair out"
