"""Before outcomes are known: whether scores moved, what to expect if calibration holds, and later how right that was.

What each number assumes is in `ASSUMPTIONS` and printed beside it.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from focalcal.auditing.monitor_rows import ALL, Piece
from focalcal.predictions import Predictions

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from numpy.typing import NDArray

    from focalcal.auditing.monitoring import Monitor
    from focalcal.posthoc.label_shift import LabelShift

ASSUMPTIONS = {
    "shift": "nothing: it compares scores alone, and says nothing of outcomes",
    "expected": "that outcomes are as far from the scores as in the baseline, or else not at all, whatever the shift",
    "label shift": "that rows of each class look as they did in the baseline, and only how many there are has changed",
}


@dataclass(frozen=True)
class Forecast:
    """Of the rows of a period that were scored before their outcomes were known.

    shift     the Kolmogorov distance of their scores (at the bins' edges) from those of the reference: the baseline,
              or else the first period; with a 95 % band (Dvoretzky, Kiefer, Wolfowitz, Massart); None without reference
    expected  the rate of the event (or of right predictions) if outcomes are as far from the scores, bin by bin, as in
              the baseline, or not at all without one; and the range that holds the rate among these rows with 95 %
    shifted   the rate if only the classes' frequencies have changed, with its interval; None without a source
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
    shifted: float | None = None
    shifted_low: float | None = None
    shifted_high: float | None = None

    @property
    def sentence(self) -> str:
        """In words, with what is assumed."""
        text = (
            f"{self.period}: {100 * self.expected:.1f} % expected ({100 * self.low:.1f} to {100 * self.high:.1f}, "
            f"{self.rows:,} rows; assumes {ASSUMPTIONS['expected']})"
        )
        if self.shifted is not None:
            text += (
                f"; {100 * self.shifted:.1f} % by label shift ({100 * (self.shifted_low or 0):.1f} to "
                f"{100 * (self.shifted_high or 0):.1f}; assumes {ASSUMPTIONS['label shift']})"
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
            None if monitor.baseline is None else monitor.baseline.sums[ALL],
        )
        for period in periods
    )


def _total(pieces: Sequence[Piece]) -> Any:
    return sum(piece.sums[ALL] for piece in pieces)


def _forecast(
    period: str,
    scored: Sequence[Piece],
    came: Sequence[Piece],
    reference: NDArray[np.float64] | None,
    baseline: NDArray[np.float64] | None,
) -> Forecast:
    rows, score, square, _ = _total(scored)
    n = rows.sum()
    expected, variance = score, max(0.0, (score - square).sum())
    if baseline is not None:
        known = np.maximum(baseline[0], 1e-300)
        expected = np.clip(score + rows * (baseline[3] - baseline[1]) / known, 0, rows)
        spread = baseline[3] * (1 - baseline[3] / known) / known  # of one outcome of the bin, in the baseline
        variance = (expected * (1 - expected / np.maximum(rows, 1e-300)) + rows**2 * spread / known).sum()
    rate, half = expected.sum() / n, 1.96 * math.sqrt(variance) / n
    shift, low, high = (None, None, None) if reference is None else _distance(reference[0], rows)
    outcome, counted = None, 0
    if came:
        sums = _total(came)
        outcome, counted = float(sums[3].sum() / sums[0].sum()), sum(piece.rows for piece in came)
    estimates = [piece.shifted for piece in scored if piece.shifted is not None]
    shifted = np.mean(estimates, 0).tolist() if estimates else (None, None, None)
    return Forecast(
        period, sum(piece.rows for piece in scored), shift, low, high, float(rate),
        max(0.0, float(rate - half)), min(1.0, float(rate + half)), outcome, counted, *shifted,
    )  # fmt: skip


class Sample:
    """At most so many rows of batches that pass by, each as likely as any other within a factor of two."""

    most = 20_000

    def __init__(self) -> None:
        """Empty."""
        self._parts: list[Predictions] = []
        self._share, self._draws = 1.0, np.random.default_rng(0)

    def seen(self, batches: Iterable[Predictions]) -> Iterator[Predictions]:
        """The batches themselves, of which rows are kept."""
        for batch in batches:
            self._keep(batch, self._share)
            while sum(part.n for part in self._parts) > self.most:
                self._share /= 2
                parts, self._parts = self._parts, []
                for part in parts:
                    self._keep(part, 0.5)
            yield batch

    def _keep(self, rows: Predictions, share: float) -> None:
        chosen = np.flatnonzero(self._draws.random(rows.n) < share)
        if len(chosen):
            self._parts.append(rows[chosen])

    def rows(self) -> Predictions:
        """Those that were kept."""
        return Predictions.concatenate(self._parts)


def shifted_rate(
    source: Predictions, scored: Predictions, event: int | None
) -> tuple[LabelShift, tuple[float, float, float]]:
    """The label shift from one to the other, and the rate of the event, or of right predictions, that it implies."""
    from focalcal.posthoc.label_shift import label_shift

    if scored.top1 or source.top1:
        raise ValueError(
            "a label shift needs the probabilities of all classes, got confidences alone; leave source out"
        )
    shift = label_shift(source.probs, source.labels, scored.probs)
    if event is not None:
        return shift, (float(shift.target[event]), float(shift.low[event]), float(shift.high[event]))
    probs = scored.probs
    corrected = np.take_along_axis(np.asarray(shift.correct(probs)), probs.argmax(1)[:, None], 1)[:, 0]
    rate, half = float(corrected.mean()), 1.96 * float(np.sqrt((corrected * (1 - corrected)).sum())) / len(corrected)
    return shift, (rate, max(0.0, rate - half), min(1.0, rate + half))


def _distance(ours: NDArray[np.float64], theirs: NDArray[np.float64]) -> tuple[float, float, float]:
    """Of two distributions over bins, and its band: each distribution function is within its own of the truth."""
    distance = float(np.abs(np.cumsum(ours) / ours.sum() - np.cumsum(theirs) / theirs.sum()).max())
    band = sum(math.sqrt(math.log(4 / 0.05) / (2 * each.sum())) for each in (ours, theirs))
    return distance, max(0.0, distance - band), min(1.0, distance + band)
