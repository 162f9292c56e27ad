"""Before outcomes are known: whether scores moved, what to expect if calibration holds, and later how right that was.

What each number assumes is in `ASSUMPTIONS` and printed beside it.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from focalcal.auditing.monitor_rows import ALL, Piece

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from focalcal.auditing.monitor import Monitor

ASSUMPTIONS = {
    "shift": "nothing: it compares scores alone, and says nothing of outcomes",
    "expected": "that the scores are calibrated for these rows, whatever their shift",
    "label shift": "that rows of each class look as they did in the baseline, and only how many there are has changed",
}


@dataclass(frozen=True)
class Forecast:
    """Of the rows of a period that were scored before their outcomes were known.

    shift     the Kolmogorov distance of their scores (at the bins' edges) from those of the reference: the baseline,
              or else the first period; with a 95 % band (Dvoretzky, Kiefer, Wolfowitz, Massart); None without reference
    expected  the rate of the event (or of right predictions) if the scores are calibrated, and the range that holds
              the rate among these rows with 95 %
    came      the rate among the rows of the period whose outcomes have come since, and how many there are
    """

    period: str
    rows: int
    shift: float | None
    shift_low: float | None
    shift_high: float | None
    expected: float
    low: float
    high: float
    came: float | None = None
    rows_came: int = 0

    @property
    def sentence(self) -> str:
        """In words, with what is assumed."""
        text = (
            f"{self.period}: {100 * self.expected:.1f} % expected ({100 * self.low:.1f} to {100 * self.high:.1f}, "
            f"{self.rows:,} rows; assumes {ASSUMPTIONS['expected']})"
        )
        if self.came is not None:
            text += f"; {100 * self.came:.1f} % came ({self.rows_came:,} rows)"
        if self.shift is not None:
            text += (
                f"; scores are {self.shift:.3f} from the reference ({self.shift_low:.3f} to {self.shift_high:.3f}; "
                f"assumes {ASSUMPTIONS['shift']})"
            )
        return f"{text}."


def forecasts_of(monitor: Monitor) -> tuple[Forecast, ...]:
    """One per period with rows that were scored without outcomes."""
    pieces = [*monitor.scored, *monitor.pieces]
    reference = None if monitor.baseline is None else monitor.baseline.sums[ALL]
    if reference is None and pieces:
        first = min((piece.period for piece in pieces), key=monitor._place)
        same = [piece for piece in monitor.pieces if piece.period == first] or [
            piece for piece in monitor.scored if piece.period == first
        ]
        reference = _total(same)
    periods = sorted({piece.period for piece in monitor.scored}, key=monitor._place)
    return tuple(
        _forecast(
            period,
            [piece for piece in monitor.scored if piece.period == period],
            [piece for piece in monitor.pieces if piece.period == period],
            reference,
        )
        for period in periods
    )


def _total(pieces: Sequence[Piece]) -> Any:
    return sum(piece.sums[ALL] for piece in pieces)


def _forecast(
    period: str, scored: Sequence[Piece], came: Sequence[Piece], reference: NDArray[np.float64] | None
) -> Forecast:
    rows, score, square, _ = _total(scored)
    n = rows.sum()
    expected = score.sum() / n
    half = 1.96 * math.sqrt(max(0.0, (score - square).sum())) / n
    shift, low, high = (None, None, None) if reference is None else _distance(reference[0], rows)
    outcome, known = None, 0
    if came:
        sums = _total(came)
        outcome, known = float(sums[3].sum() / sums[0].sum()), sum(piece.rows for piece in came)
    return Forecast(
        period, sum(piece.rows for piece in scored), shift, low, high, float(expected),
        max(0.0, float(expected - half)), min(1.0, float(expected + half)), outcome, known,
    )  # fmt: skip


def _distance(ours: NDArray[np.float64], theirs: NDArray[np.float64]) -> tuple[float, float, float]:
    """Of two distributions over bins, and its band: each distribution function is within its own of the truth."""
    distance = float(np.abs(np.cumsum(ours) / ours.sum() - np.cumsum(theirs) / theirs.sum()).max())
    band = sum(math.sqrt(math.log(4 / 0.05) / (2 * each.sum())) for each in (ours, theirs))
    return distance, max(0.0, distance - band), min(1.0, distance + band)
