"""Paired comparisons: every test, how many are better, worse and indistinguishable, and what they cannot show."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

from focalcal.lab.evidence.comparisons import Family, FamilyNote, all_comparisons, seeds_needed
from focalcal.lab.evidence.metric_names import PERCENT, as_shown, title, titled
from focalcal.pages.numbers import Rounded
from focalcal.pages.tables import CaptionedTable, Table
from focalcal.stats import verdict_counts

CANNOT_SHOW = "cannot show"


@dataclass(frozen=True)
class PairedTests:
    """Families of tests, which print as their tables and what they cannot show."""

    families: tuple[Family, ...]
    alpha: float

    @property
    def made(self) -> bool:
        """Whether any test was."""
        return any(family.comparisons for family in self.families)

    def record(self) -> list[dict[str, Any]]:
        """Every family and every number."""
        return [asdict(family) for family in self.families]

    def __str__(self) -> str:
        """Every test, the counts of verdicts, and whether any could have been significant."""
        table = comparison_table(self.families, alpha=self.alpha)
        verdicts = verdict_table(self.families, alpha=self.alpha)
        if table is None or verdicts is None:
            said = limits_of_comparisons(self.families, self.alpha)
            said = said or ["no setting has the candidate and another objective"]
            return "".join(f"{sentence}\n" for sentence in (*said, "no test could be made"))
        text = f"{table.text()}\n{verdicts.text()}"
        if not any(family.reachable for family in self.families):
            tests = max(len(family.comparisons) for family in self.families)
            needed = seeds_needed(tests, self.alpha)
            text += f"\nNo comparison can be significant: {tests} tests need {needed} seeds.\n"
        return text


def comparison_table(families: Sequence[Family], *, alpha: float = 0.05) -> CaptionedTable | None:
    """One row per test; significant ones in bold. None without a test."""
    tests = all_comparisons(families)
    if not tests:
        return None
    places = [family for family in families for _ in family.comparisons]
    candidate = places[0].candidate
    columns: dict[str, list[Any]] = {
        "setting": [family.setting for family in places],
        "baseline": [family.baseline for family in places],
        "metric": [titled(test.metric) for test in tests],
        "n": [test.test.n for test in tests],
        "difference": [_signed(test.metric, test.test.mean) for test in tests],
        "low": [_signed(test.metric, test.interval.low) for test in tests],
        "high": [_signed(test.metric, test.interval.high) for test in tests],
        "d_z": [Rounded(test.effect, ".2f") for test in tests],
        "p": [_p(test.test.p_value) for test in tests],
        "p_holm": [_p(test.p_adjusted) for test in tests],
        "verdict": [test.verdict if test.reachable else CANNOT_SHOW for test in tests],
    }
    level = f"{tests[0].interval.level:.0%}"
    headings = {"low": f"{level} from", "high": "to", "p_holm": "p (Holm)"}
    bold = {"verdict": [test.verdict != "indistinguishable" for test in tests]}
    small = any(test.test.n < 10 for test in tests)
    exact = "exact " * all(test.test.method == "enumerated" for test in tests)
    note = (
        f"Difference: {candidate} minus baseline, paired by seed; {exact}sign-flip test, two-sided; Holm's correction "
        f"over the metrics of each setting and baseline; alpha = {alpha:g}."
        + " The interval is the paired bootstrap's (BCa)"
        + ", which is too short with so few seeds: decide by the test." * small
        + "." * (not small)
        + "".join(f" {sentence}." for sentence in limits_of_comparisons(families, alpha))
    )
    return CaptionedTable(f"{candidate} against each baseline", Table(columns, headings=headings, bold=bold), note)


def verdict_table(families: Sequence[Family], *, alpha: float = 0.05) -> CaptionedTable | None:
    """One row per setting, and the total: counts of verdicts, and of tests that could not have been significant."""
    tested = [family for family in families if family.comparisons]
    if not tested:
        return None
    settings = list(dict.fromkeys(family.setting for family in tested))
    groups = {setting: [family for family in tested if family.setting == setting] for setting in settings}
    if len(settings) > 1:
        groups["all settings"] = tested
    columns: dict[str, list[Any]] = {"setting": list(groups)}
    counts = [verdict_counts(all_comparisons(group)) for group in groups.values()]
    columns |= {verdict: [count[verdict] for count in counts] for verdict in counts[0]}
    columns["cannot"] = [sum(not test.reachable for test in all_comparisons(group)) for group in groups.values()]
    columns["tests"] = [len(all_comparisons(group)) for group in groups.values()]
    metrics = ", ".join(dict.fromkeys(title(test.metric) for test in all_comparisons(tested)))
    return CaptionedTable(
        f"How often {tested[0].candidate} is better, worse and indistinguishable",
        Table(columns, headings={"cannot": "of these: cannot show"}),
        f"{metrics}; alpha = {alpha:g} after Holm's correction within each setting and baseline. "
        "Indistinguishable is not equal; a test that cannot show a difference has too few seeds to be significant "
        "whatever it finds.",
    )


def limits_of_comparisons(families: Sequence[Family], alpha: float = 0.05) -> list[str]:
    """How far the numbers of seeds reach, whatever the effect, and which tests were not made."""
    tests = all_comparisons(families)
    floors = Counter((test.test.n, test.test.floor, test.floor_adjusted) for test in tests if not test.reachable)
    return [
        f"n = {n}: p >= {floor:.3g}, {adjusted:.3g} after Holm's correction, whatever the effect: {count} of "
        f"{len(tests)} comparisons cannot be significant at {alpha:g}"
        for (n, floor, adjusted), count in sorted(floors.items())
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


def _signed(metric: str, value: float) -> Rounded:
    return Rounded(as_shown(metric, value), f"+.{3 if metric in PERCENT else 4}f")


def _p(value: float) -> Rounded:
    return Rounded(value, ".4f" if value >= 1e-4 else ".1e")
