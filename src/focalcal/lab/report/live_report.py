"""The page of a study whose cells are still being run: made anew from the store when that has more to show."""

from __future__ import annotations

import hashlib
import json
import os
import threading
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any, Literal

from focalcal.lab.evidence.evidence import EvidenceCache, collected, gather
from focalcal.lab.evidence.labels import NO_LABELS
from focalcal.lab.report.report_folder import PAGE, rendered_report
from focalcal.lab.store.diagnostics import RunFailure

if TYPE_CHECKING:
    from focalcal.lab.evidence.gaps import EvidenceGap
    from focalcal.lab.evidence.surface import Point
    from focalcal.lab.report.own_section import MakeSection
    from focalcal.lab.store import Run, Spec, Store

State = Literal["running", "finished", "interrupted", "watching"]
_SHORTEST = 1.0  # seconds between two looks at the store
_PAUSE = 5.0  # seconds between two versions of the page, so that it can be read
_COSTS = 10  # and so many times what the last one took to make
_RECENT = 10  # finished cells that tell how fast the next ones are
_LATE = 3  # times the usual wait without a finished cell, after which no time left is named


@dataclass(frozen=True)
class CellShare:
    """A cell that runs, and the share of it that is done."""

    name: str
    share: float
    note: str


@dataclass(frozen=True)
class Activity:
    """What the process that runs the cells knows, and the store does not. See `LiveReport`."""

    state: State
    running: tuple[CellShare, ...] = ()
    seconds_left: float | None = None


@dataclass(frozen=True)
class _Look:
    """What a store had at a moment."""

    runs: list[Run]
    gaps: list[EvidenceGap]

    @property
    def version(self) -> str:
        """Changes when the page would."""
        stored = sorted((run.key, run.evaluations) for run in self.runs)
        told = sorted(repr(gap) for gap in self.gaps)
        return hashlib.sha256(json.dumps([stored, told]).encode()).hexdigest()[:16]


class LiveReport:
    """Pages and progress of the runs in stores, for several threads.

    specs     the cells of the study; all runs if there are none
    told      what `gather` takes besides: temperature, candidate and labels, as the study says
    activity  what the process that runs the cells knows; without it the stores are watched alone, and the time left
              follows from when their last runs were finished

    A page is made when it is asked for, of what the stores then have: a run is read once. `version` names what the
    page would show. A new one is told of 5 seconds after the last at the earliest, and later where pages take long to
    make, until the study has ended.
    """

    def __init__(
        self,
        stores: Sequence[Store],
        *,
        specs: Sequence[Spec] = (),
        title: str | None = None,
        operating_points: Mapping[str, Point] | None = None,
        make_section: MakeSection | None = None,
        activity: Callable[[], Activity] = lambda: Activity("watching"),
        clock: Callable[[], float] = time.monotonic,
        **told: Any,
    ) -> None:
        self._stores, self._specs, self._activity, self._clock = list(stores), list(specs), activity, clock
        self._about: dict[str, Any] = {
            "title": title or f"Runs in {self._stores[0].path.name}",
            "known": self._specs,
            **told,
        }
        self._rendered: dict[str, Any] = {
            "operating_points": operating_points,
            "make_section": make_section,
            "with_figures": False,
        }
        self._looking, self._making = threading.Lock(), threading.Lock()
        self._look, self._looked = _Look([], []), -1e9
        self._told, self._told_at, self._pause = "", -1e9, _PAUSE
        self._page, self._version = b"", ""
        self._read: EvidenceCache = {}

    @property
    def folder(self) -> str:
        """Where the first store is."""
        return os.fspath(self._stores[0].path)

    def page(self) -> bytes:
        """HTML of what the stores have now."""
        with self._making:
            look = self._current()
            if self._version != look.version:
                began = self._clock()
                self._page, self._version = self._html(look), look.version
                self._pause = max(_PAUSE, _COSTS * (self._clock() - began))
            self._told, self._told_at = look.version, self._clock()
            return self._page

    def progress(self) -> dict[str, Any]:
        """What the page asks for every few seconds: numbers, names and the version, ready for JSON."""
        look, activity = self._current(), self._activity()
        failures = _failures(look.gaps)
        ended = activity.state in ("finished", "interrupted")
        if look.version != self._told and (ended or self._clock() - self._told_at >= self._pause):
            self._told = look.version
        cells = len(dict.fromkeys(self._specs)) or len(look.runs)
        left = activity.seconds_left
        if activity.state == "watching":
            left = seconds_left(_finished_at(look.runs), cells - len(look.runs) - len(failures))
        return {
            "version": self._told,
            "state": activity.state,
            "cells": cells,
            "done": len(look.runs),
            "failures": failures,
            "running": [asdict(cell) for cell in activity.running],
            "seconds_left": left,
            "store": self.folder,
        }

    def _current(self) -> _Look:
        """What the stores have, looked at again once a second at most, and less often where that takes long."""
        with self._looking:
            began = self._clock()
            if began >= self._looked:
                self._look = _Look(*collected(self._stores, self._specs, self._about.get("labels", NO_LABELS)))
                took = self._clock() - began
                self._looked = began + took + max(_SHORTEST, _COSTS * took)
            return self._look

    def _html(self, look: _Look) -> bytes:
        evidence = gather(look.runs, missing=look.gaps, details=True, cache=self._read, **self._about)
        return rendered_report(evidence, look.runs, live=look.version, **self._rendered)[PAGE]


def seconds_left(finished: Iterable[float], cells: int, now: float | None = None) -> float | None:
    """If `cells` more are finished as fast as the last ten were; None where that is not known.

    finished  when cells were finished, in seconds since 1970

    >>> seconds_left([100.0, 110.0, 120.0], 3, now=125.0)
    25.0
    """
    last = sorted(finished)[-_RECENT:]
    if cells <= 0 or len(last) < 2:
        return None
    each = (last[-1] - last[0]) / (len(last) - 1)
    since = (time.time() if now is None else now) - last[-1]
    return max(0.0, each * cells - since) if since <= _LATE * each + _SHORTEST else None


def _finished_at(runs: Iterable[Run]) -> list[float]:
    return [os.stat(run.path).st_mtime for run in runs if os.path.isdir(run.path)]


def _failures(gaps: Iterable[EvidenceGap]) -> list[dict[str, str]]:
    return [
        {"name": gap.about or gap.finding.key[:12], "message": f"{gap.finding.kind}: {gap.finding.message}"}
        for gap in gaps
        if isinstance(gap.finding, RunFailure)
    ]
