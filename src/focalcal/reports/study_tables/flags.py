"""What tables say of cells that are no better than a constant guess."""

from __future__ import annotations

from collections.abc import Collection

from focalcal.analysis.contenders import MARGIN_POINTS, MARGIN_SHARE, ConstantGuess, constant_guesses
from focalcal.analysis.evidence import Evidence

MARGIN = f"{100 * MARGIN_POINTS:g} points, or {100 * MARGIN_SHARE:g} % of it if that is more"
RULE = (
    f"best can only be objectives whose error exceeds the lowest of their setting by at most {MARGIN}, and is not that "
    "of a constant guess"
)
_MOST_NAMED = 6


def flag_note(evidence: Evidence, settings: Collection[str] | None = None) -> str:
    """A sentence for a table's note that names the cells, of `settings` if they are given; nothing without any."""
    found = [one for one in constant_guesses(evidence) if settings is None or one.setting in settings]
    if not found:
        return ""
    if len(found) > _MOST_NAMED:
        return f" {len(found)} cells predict no better than a constant guess: see the overview."
    named = [f"{one.objective} on {one.setting}" + _some(one.seeds, one.of) for one in found]
    return f" No better than a constant guess predicts: {', '.join(named)}."


def flag_column(evidence: Evidence, cells: Collection[tuple[str, str]]) -> dict[str, list[str | None]]:
    """A column `flag` beside these cells of setting and objective; no column if none is flagged."""
    marks = {(guess.setting, guess.objective): mark(guess) for guess in constant_guesses(evidence)}
    column = [marks.get(cell) for cell in cells]
    return {"flag": column} if any(column) else {}


def mark(guess: ConstantGuess) -> str:
    """What a table says of the cell."""
    some = "" if len(guess.seeds) == guess.of else f", {len(guess.seeds)} of {guess.of}"
    return f"constant guess{some}"


def _some(seeds: tuple[int, ...], of: int) -> str:
    return "" if len(seeds) == of else f" (seed{'s' * (len(seeds) > 1)} {', '.join(map(str, seeds))})"
