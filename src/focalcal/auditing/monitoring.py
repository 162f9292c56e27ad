"""`Monitor`: does it still hold? Calibration over time, with a bounded probability of ever raising a false alarm."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from focalcal.auditing.monitor_evidence import Allowed, allowed_by, evidence_of
from focalcal.auditing.monitor_forecast import Sample, shifted_rate
from focalcal.auditing.monitor_rows import ALL, BINS, PARTITION, PERIODS, Piece, period_end, period_of, pieces_of
from focalcal.auditing.monitor_state import MonitorError, Settings, read_state, write_state
from focalcal.auditing.monitor_verdict import MonitorVerdict
from focalcal.auditing.periods import are_months
from focalcal.core.checks import finite_at_least, one_of, share, shown
from focalcal.predictions import Predictions
from focalcal.stats.e_process import calibrated

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from focalcal.posthoc.label_shift import LabelShift

BASELINE_SHARE = 0.2  # of alpha, for what finite rows leave open about the baseline
OTHER = "(other groups)"


@dataclass(frozen=True)
class Update:
    """What came of a partition.

    rows      that were counted
    repeated  periods of it that had been counted before, and were not again
    waiting   periods whose outcomes are not mature yet, and rows in them
    label_shift  the classes' frequencies among rows without outcomes, if there was a source to compare with
    """

    rows: int
    repeated: tuple[str, ...] = ()
    waiting: tuple[str, ...] = ()
    rows_waiting: int = 0
    label_shift: LabelShift | None = None
    pieces: int = 0


class Monitor:
    """Rows as they come, and whether their probabilities still hold.

    The groups of the first rows (the baseline's if there is one) are followed beside all rows, and alpha is shared: a
    half for all rows, the rest in equal parts for the groups and for rows of any other group together.

    Args:
        alpha: the probability of ever raising an alarm, however often one looks, although all holds.
        within: how far outcomes may be from the scores before it matters, 0.02 for two points.
        period: "hour", "day", "week", "month", "quarter" or "year", by the times of the rows; by default the day, or
            the month where the first rows name months alone; "partition" makes every partition a period.
        event: the class whose probability is followed, an index or a name; by default the second one of two classes,
            and whether the predicted class is right of more.
        baseline: `Predictions` that say what "still" means: as far off as these. Without, "holds" means calibrated.
        run_length: how many periods pass on average, at least, before the e-detector points at a break that is none.
        model: a name; a partition or state of another name is refused.

    >>> draws = np.random.default_rng(0)
    >>> monitor = Monitor(alpha=0.05)
    >>> for day in range(20):
    ...     p = draws.random(1000)
    ...     y = draws.random(1000) < (p if day < 12 else p**1.5)
    ...     _ = monitor.update(Predictions(probs=p, labels=y.astype(int), split="live"))
    >>> verdict = monitor.look()
    >>> verdict.alarm, verdict.broke.period
    (True, '13')
    """

    def __init__(
        self,
        *,
        alpha: float = 0.05,
        within: float = 0.0,
        period: str | None = None,
        event: Any = None,
        baseline: Predictions | None = None,
        run_length: float = 1000.0,
        model: str | None = None,
    ) -> None:
        """An empty monitor; `Monitor.load` reads one."""
        if not share("alpha", alpha) > 0:
            raise ValueError(f"alpha must be between 0 and 1, got {alpha}; 0.05 is usual")
        if finite_at_least("run_length", run_length, 1.0) <= 1:
            raise ValueError(f"run_length must be above 1, got {run_length}; 1000 periods are usual")
        share("within", within)
        if period is not None:
            one_of("period", period, (*PERIODS, PARTITION))
        self.settings = Settings(float(alpha), float(within), period, event, float(run_length), model)
        self.pieces: list[Piece] = []
        self.scored: list[Piece] = []
        self.baseline: Piece | None = None
        self._read: bytes | None = None  # the state file as it was read
        if baseline is not None:
            if not isinstance(baseline, Predictions):
                raise TypeError(f"baseline must be Predictions, got {shown(baseline)}; make them of scores and labels")
            self.set_baseline([baseline])

    @property
    def looks(self) -> int:
        """How often one has looked."""
        return max((piece.look or 0 for piece in self.pieces), default=0)

    def set_baseline(self, batches: Iterable[Predictions], *, top1: bool = False) -> int:
        """Say what "still" means, before any partition is counted; the number of its rows."""
        if self.pieces or self.scored or self.baseline is not None:
            raise MonitorError("baseline must be given before the first partition, got a monitor that has begun; begin "
                               "another state for another baseline")  # fmt: skip
        last: list[np.datetime64] = []

        def seen() -> Iterable[Predictions]:
            for batch in batches:
                self._adopt(batch, top1)
                if batch.times is not None:
                    last.append(batch.times.max())
                yield batch

        rows = iter(seen())
        first = next(rows)  # says which event is followed
        (self.baseline,) = pieces_of(
            chain([first], rows), event=self._event, period=PARTITION, at="baseline", top1=top1
        )
        piece = self.baseline
        groups = tuple(sorted(set(piece.sums) - {ALL}))
        self.settings = replace(self.settings, groups=groups, baseline_end=str(max(last)) if last else None)
        return piece.rows

    def update(
        self,
        predictions: Predictions | Iterable[Predictions],
        *,
        at: str | None = None,
        mature: np.timedelta64 | None = None,
        as_of: Any = None,
        top1: bool = False,
        labelled: bool = True,
        source: Predictions | None = None,
    ) -> Update:
        """Count the rows of a partition: `Predictions`, or batches of one. Nothing is tested before `look`.

        at        the period that all rows are of (an ISO date or month), where they have no times
        mature    how long outcomes take to be known: periods that ended later than this before `as_of` wait
        as_of     the date that maturity is judged at; by default now
        top1      whether the rows are confidences and correctness, as two columns and labels 0 and 1
        labelled  False for rows whose outcomes are unknown: they serve forecasts alone, and their labels are ignored
        source    labelled rows of before, such as the baseline's: for rows without outcomes the label shift between
                  them is estimated as well (`focalcal.label_shift`)

        A partition (or the part of it in a period) that was counted before is not counted again; one that shares ids
        with another is refused, and nothing of it is counted.
        """
        begun = self.settings
        try:
            if source is None or labelled:
                return self._update(predictions, at, mature, as_of, top1, labelled)
            kept = Sample()
            batches = [predictions] if isinstance(predictions, Predictions) else predictions
            done = self._update(kept.seen(batches), at, mature, as_of, top1, labelled)
            if not done.rows:
                return done
            shift, shifted = shifted_rate(source, kept.rows(), self._event)
            self.scored = [
                replace(piece, shifted=shifted) if number >= len(self.scored) - done.pieces else piece
                for number, piece in enumerate(self.scored)
            ]
            return replace(done, label_shift=shift)
        except BaseException:
            self.settings = begun
            raise

    def _update(
        self, predictions: Any, at: str | None, mature: np.timedelta64 | None, as_of: Any, top1: bool, labelled: bool
    ) -> Update:
        batches = self._adopting([predictions] if isinstance(predictions, Predictions) else predictions, top1)
        first = next(batches, None)
        if first is None:
            raise ValueError("predictions must hold at least one row, got none")
        if self.settings.period is None:
            self.settings = replace(self.settings, period=_usual_period(first.times, at))
        period = self.settings.period
        assert period is not None
        name = str(self._next_number()) if period == PARTITION else None if at is None else _checked_period(at, period)
        if period == PARTITION and at is not None:
            raise MonitorError(f"at names a period of time, got {shown(at)} for a monitor whose partitions are its "
                               "periods; begin one with period='day'")  # fmt: skip

        made = pieces_of(
            chain([first], batches), event=self._event, period=period, at=name, top1=top1, labelled=labelled
        )
        if self.settings.groups is None and labelled:
            names = {group for piece in made for group in piece.sums} - {ALL}
            self.settings = replace(self.settings, groups=tuple(sorted(names)))
        return self._add(made, mature, as_of, labelled)

    def _add(self, made: Sequence[Piece], mature: np.timedelta64 | None, as_of: Any, labelled: bool) -> Update:
        kept = self.pieces if labelled else self.scored
        known = {(piece.digest, None if self.settings.period == PARTITION else piece.period) for piece in kept}
        new, repeated, waiting = [], [], []
        for piece in made:
            if (piece.digest, None if self.settings.period == PARTITION else piece.period) in known:
                repeated.append(piece.period)
                continue
            self._check_time(piece)
            if mature is not None and labelled and not self._is_mature(piece, mature, as_of):
                waiting.append(piece)
                continue
            for other in kept:
                if other.period == piece.period and set(other.smallest) & set(piece.smallest):
                    raise MonitorError(f"partitions must not overlap, got rows of {piece.period} whose ids were "
                                       "counted before with other content; leave these rows out")  # fmt: skip
            new.append(piece)
        kept += new
        return Update(
            sum(piece.rows for piece in new),
            tuple(repeated),
            tuple(piece.period for piece in waiting),
            sum(piece.rows for piece in waiting),
            pieces=len(new),
        )

    def _check_time(self, piece: Piece) -> None:
        end = self.settings.baseline_end
        if (
            end is not None
            and self.settings.period != PARTITION
            and piece.period < period_of(end, self.settings.period)
        ):
            raise MonitorError(f"periods must not go back behind the baseline, whose rows end at {end}, got rows of "
                               f"{piece.period}; leave them out")  # fmt: skip

    def _is_mature(self, piece: Piece, mature: np.timedelta64, as_of: Any) -> bool:
        if self.settings.period in (None, PARTITION):
            raise MonitorError("mature needs periods of time, got partitions without times; name the column of times")
        now = np.datetime64("now", "us") if as_of is None else np.datetime64(as_of).astype("datetime64[us]")
        return bool(period_end(piece.period, self.settings.period) <= now - mature)

    def look(self) -> MonitorVerdict:
        """Test everything that was counted. Bets of new periods are settled by this, so a look is part of the state."""
        if not self.pieces:
            raise MonitorError("a look needs rows with outcomes, got none; update the monitor first")
        at = self.looks + 1
        self.pieces = [piece.counted(at) for piece in self.pieces]
        order = {name: place for place, name in enumerate(sorted({p.period for p in self.pieces}, key=self._place))}
        test = self.settings.alpha * (1 - BASELINE_SHARE if self.baseline is not None else 1)
        groups = self.settings.groups or ()
        streams = [ALL, *groups, OTHER] if groups else [ALL]
        pieces = [self._grouped(piece) for piece in self.pieces] if groups else self.pieces
        found = [
            evidence_of(
                name,
                pieces,
                order,
                self._allowed(name, len(streams)),
                level=test * (1 if not groups else 0.5 if name == ALL else 0.5 / (len(groups) + 1)),
                run_length=self.settings.run_length,
            )
            for name in streams
        ]
        kept = tuple(each for each in found if each.rows or each.name == ALL)
        return MonitorVerdict.of(self, kept, order)

    def _grouped(self, piece: Piece) -> Piece:
        """With those groups together that were not there at the beginning."""
        known = {ALL, *(self.settings.groups or ())}
        sums = {name: each for name, each in piece.sums.items() if name in known}
        others = [each for name, each in piece.sums.items() if name not in known]
        return replace(piece, sums=sums | ({OTHER: np.sum(others, 0)} if others else {}))

    def _allowed(self, name: str, streams: int) -> Allowed:
        within = self.settings.within
        if self.baseline is None:
            return Allowed(calibrated(BINS, within))
        sums = self.baseline.sums.get(ALL if name == OTHER else name)
        return allowed_by(
            np.zeros((4, BINS)) if sums is None else sums, self.settings.alpha * BASELINE_SHARE / streams, within
        )

    def merge(self, *others: Monitor) -> int:
        """Count the partitions of other monitors of the same model, each content once; the number of rows added.

        This monitor's looks go on; those of the others are forgotten, and their rows are new at the next look.
        """
        added = 0
        for other in others:
            same = other.settings.comparable() == self.settings.comparable()
            if not same or (other.baseline and other.baseline.digest) != (self.baseline and self.baseline.digest):
                raise MonitorError(f"monitors must be of the same model, settings and baseline to be merged, got "
                                   f"{self._difference(other)}")  # fmt: skip
        for other in others:
            for labelled, pieces in ((True, other.pieces), (False, other.scored)):
                for piece in pieces:
                    new = replace(piece, look=None)
                    if self.settings.period == PARTITION:
                        new = replace(new, period=str(self._next_number()))
                    added += self._add([new], None, None, labelled).rows
        return added

    def _difference(self, other: Monitor) -> str:
        for name, mine in self.settings.comparable().items():
            if (its := other.settings.comparable()[name]) != mine:
                return f"{name} {shown(mine)} and {shown(its)}; monitor each by itself"
        return "different baselines; begin each with the same one"

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the state, whole or not at all; a file that another process has changed since `load` is not replaced.

        JSON, about a kilobyte for each partition, period and group.
        """
        self._read = write_state(Path(path), self, self._read)

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Monitor:
        """Read what `save` wrote."""
        monitor = cls()
        monitor._read, monitor.settings, monitor.baseline, monitor.pieces, monitor.scored = read_state(Path(path))
        return monitor

    def check(self, **wanted: Any) -> None:
        """Refuse settings other than those that the monitor began with; None is no wish."""
        stored = self.settings
        for name, value in wanted.items():
            if value is not None and value != getattr(stored, name):
                raise MonitorError(f"{name} must be what the state began with, {shown(getattr(stored, name))}, got "
                                   f"{shown(value)}; begin another state for another {name}")  # fmt: skip

    @property
    def _event(self) -> int | None:
        return self.settings.column

    def _adopting(self, batches: Iterable[Predictions], top1: bool) -> Any:
        for batch in batches:
            self._adopt(batch, top1)
            yield batch

    def _adopt(self, batch: Predictions, top1: bool) -> None:
        """Take the first rows' classes for those of the monitor, and refuse rows of others."""
        if batch.weights is not None:
            raise ValueError("weights must not be given to a monitor, whose bound is for rows that count once each; "
                             "leave them out (Predictions.load(path, weights=False))")  # fmt: skip
        top1 = top1 or batch.top1
        names = None if batch.classes is None or top1 else tuple(map(str, batch.classes))
        n_classes = 0 if top1 else batch.n_classes
        if self.settings.n_classes is None:
            column = _column(self.settings.event, names, n_classes)
            self.settings = replace(self.settings, n_classes=n_classes, classes=names, column=column)
        elif n_classes != self.settings.n_classes:
            said = ["confidences alone" if each == 0 else f"{each} classes" for each in
                    (self.settings.n_classes, n_classes)]  # fmt: skip
            raise MonitorError(f"rows must be of the model that the monitor began with, {said[0]}, got {said[1]}; "
                               "begin another state for another model")  # fmt: skip
        elif names is not None and self.settings.classes is not None and names != self.settings.classes:
            raise MonitorError(f"classes must be those that the monitor began with, {shown(self.settings.classes)}, "
                               f"got {shown(names)}; begin another state for another model")  # fmt: skip

    def _next_number(self) -> int:
        return 1 + max((int(piece.period) for piece in (*self.pieces, *self.scored)), default=0)

    def _place(self, name: str) -> Any:
        return int(name) if self.settings.period == PARTITION else name


def _column(event: Any, names: tuple[str, ...] | None, n_classes: int) -> int | None:
    if event is None:
        return 1 if n_classes == 2 else None
    if names is not None and str(event) in names:
        return names.index(str(event))
    if str(event).isdecimal() and int(event) < n_classes:
        return int(event)
    known = names or tuple(map(str, range(n_classes)))
    raise ValueError(f"event must be one of the classes {', '.join(known[:10])}, got {shown(event)}")


def _usual_period(times: NDArray[np.datetime64] | None, at: str | None) -> str:
    """The month where rows name several months and no other days, else the day; the partition where nothing is said."""
    if times is None:
        return PARTITION if at is None else "day"
    return "month" if are_months(times) and len(np.unique(times)) > 1 else "day"


def _checked_period(at: str, period: str) -> str:
    try:
        if not np.isnat(np.datetime64(at)):
            return period_of(at, period)
    except ValueError:
        pass
    raise ValueError(f"at must be an ISO 8601 date, month or time, got {shown(at)}; for example 2026-03-01")
