"""What paired comparisons cannot show, in sentences for people."""

from __future__ import annotations

from collections.abc import Sequence

from focalcal.analysis.comparisons import Family, FamilyNote, out_of_reach


def limits_of_comparisons(families: Sequence[Family], alpha: float = 0.05) -> list[str]:
    """How far the numbers of seeds reach, and which tests were not made."""
    return [
        f"n = {limit.n}: p >= {limit.floor:.3g}, {limit.floor_adjusted:.3g} after Holm's correction, whatever the "
        f"effect: {limit.count} of {limit.comparisons} comparisons cannot be significant at {alpha:g}"
        for limit in out_of_reach(families)
    ] + [
        f"{family.setting}, {family.candidate} against {family.baseline}: {sentence}"
        for family in families
        for sentence in note_sentences(family.notes)
    ]


def note_sentences(notes: Sequence[FamilyNote]) -> list[str]:
    """One sentence per note, or one for all where every metric has too few seeds in the same way."""
    alike = {(note.kind, note.seeds) for note in notes}
    if len(notes) > 1 and len(alike) == 1 and notes[0].kind != "not measured":
        return [_sentence(notes[0], "every metric")]
    return [_sentence(note, note.metric) for note in notes]


def _sentence(note: FamilyNote, metric: str) -> str:
    seeds = ", ".join(map(str, note.seeds))
    match note.kind:
        case "not measured":
            return f"no {metric} of {' and '.join(note.objectives)}"
        case "not finite":
            return f"{metric} of seed {seeds} is not finite; the pair is left out"
        case "too few":
            common = f"seed {seeds} alone" if seeds else "none"
            return (
                f"{metric} has too few common seeds for a test, {common}; two are needed, and {note.seeds_needed} for "
                f"significance at {note.alpha:g}"
            )
