"""What tables say of cells that are no better than a constant guess."""

from __future__ import annotations

from collections.abc import Collection

from focalcal.lab.evidence.contenders import MARGIN_POINTS, MARGIN_SHARE, ConstantGuess, constant_guesses
from focalcal.lab.evidence.evidence import Evidence

MARGIN = f"{100 * MARGIN_POINTS:g} points, or {100 * MARGIN_SHARE:g} % of it if that is more"
RULE = (
    f"best can only be objectives whose error exceeds the lowest of their setting by at most {MARGIN}, and is not that "
    "of a constant guess"
)
_MOST_NAMED = 6


def flag_note(evidence: Evidence, settings: Collection[str] | None = None) -> str:
    """A sentence for a table's note that names the cells, of `settings` if they are given; nothing without any."""
    guesses = [guess for guess in constant_guesses(evidence) if settings is None or guess.setting in settings]
    if not guesses:
        return ""
    if len(guesses) > _MOST_NAMED:
        return f" {len(guesses)} cells predict no better than a constant guess: see the overview."
    named = [f"{guess.objective} on {guess.setting}{_seeds(guess)}" for guess in guesses]
    return f" No better than a constant guess predicts: {', '.join(named)}."


def flag_column(evidence: Evidence) -> dict[str, list[str | None]]:
    """A column `flag` beside the cells of the evidence; no column if none is flagged."""
    marks = flag_marks(evidence)
    return {"flag": [marks.get(cell) for cell in evidence.cells]} if marks else {}


def flag_marks(evidence: Evidence) -> dict[tuple[str, str], str]:
    """By setting and objective, what a table says of the cells that are flagged."""
    return {
        (guess.setting, guess.objective): "constant guess"
        + ("" if len(guess.seeds) == guess.of else f", {len(guess.seeds)} of {guess.of}")
        for guess in constant_guesses(evidence)
    }


def _seeds(guess: ConstantGuess) -> str:
    if len(guess.seeds) == guess.of:
        return ""
    return f" (seed{'s' * (len(guess.seeds) > 1)} {', '.join(map(str, guess.seeds))})"
