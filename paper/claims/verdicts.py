"""Whether a claim of the paper holds in the runs at hand, all of it or a part: its parts, our answers, the verdict."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from paper.claims.queries import ClaimAnswer, Query

Verdict = Literal["holds", "partly", "does not hold", "not run"]


@dataclass(frozen=True)
class ClaimPart:
    """One thing that a claim says: it holds if our answer is from `least` to `most`.

    of       of how many the answer must count to be complete; None if it is no count
    printed  what the paper prints for it, "5 of 9" say, or ""
    """

    what: str
    ours: Query
    least: float
    most: float
    of: int | None = None
    printed: str = ""


@dataclass(frozen=True)
class JudgedPart:
    """A part with our answer, None if nothing of it was run."""

    part: ClaimPart
    answer: ClaimAnswer | None

    @property
    def verdict(self) -> Verdict:
        """Partly: of a count that is not complete and may still hold, or that should be all or none and is neither."""
        if self.answer is None:
            return "not run"
        least, most, value = self.part.least, self.part.most, self.answer.value
        if self.part.of is None or self.answer.of is None:
            return "holds" if least <= value <= most and not self.answer.ties else "does not hold"
        missing = self.part.of - self.answer.of
        if missing <= 0 and least <= value <= most:
            return "holds"
        every, never = least == self.part.of, most == 0
        agrees = (every and value > 0) or (never and value < self.answer.of)
        return "partly" if agrees or (missing > 0 and value <= most and value + missing >= least) else "does not hold"

    @property
    def text(self) -> str:
        """`FCL has the lowest ECE: 3 of 9 (paper: 5 of 9)`."""
        missing = 0 if self.part.of is None or self.answer is None else self.part.of - (self.answer.of or 0)
        ours = "not run" if self.answer is None else str(self.answer) + f", {missing} not run" * (missing > 0)
        return f"{self.part.what}: {ours}" + f" (paper: {self.part.printed})" * bool(self.part.printed)


@dataclass(frozen=True)
class Claim:
    """What the paper says, where, which study has the runs, and what it comes to."""

    says: str
    section: str
    study: str
    parts: tuple[ClaimPart, ...]


@dataclass(frozen=True)
class JudgedClaim:
    """A claim with its verdict in the runs at hand."""

    claim: Claim
    parts: tuple[JudgedPart, ...]

    @property
    def verdict(self) -> Verdict:
        """In a word: it holds if all of its parts do, and partly if some do."""
        verdicts = {part.verdict for part in self.parts}
        if len(verdicts) == 1:
            return verdicts.pop()
        return "partly" if verdicts & {"holds", "partly"} else "does not hold"
