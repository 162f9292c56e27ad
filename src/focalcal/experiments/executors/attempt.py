"""One attempt at a cell, in whatever process it runs: a failure is a value, not an exception."""

from __future__ import annotations

import time
import traceback
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from focalcal.experiments.events import Progress
from focalcal.results import Evaluations, Spec
from focalcal.results.spec import NOTHING_MORE
from focalcal.results.store import Store

Work = Callable[..., object]
"""work(spec, store, report=..., **options), like `run_spec`: takes the store's claim, so that of two processes one
works, and adds the run, or the `evaluations` among the options, unless they are there by then."""

ONE_THREAD = dict.fromkeys(("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS"), "1")
WAITS = "another process works on it"
_ALLOCATORS_SAY = ("can't allocate memory", "not enough memory", "out of memory")  # torch raises a bare RuntimeError


@dataclass(frozen=True)
class Failure:
    """Why a cell has no result; see `events.Failed` for the kinds."""

    kind: str
    message: str
    details: Mapping[str, Any] = field(default_factory=dict)


HELD = Failure("held", WAITS)  # no failure: to be tried again when the other has ended


def attempt(
    work: Work, spec: Spec, store: Store, report: Callable[[Progress], None], options: Mapping[str, Any]
) -> Failure | None:
    """Run the cell and see its result stored; None if it is, `HELD` if another process works on it."""
    if not store.is_free(spec):
        return HELD
    try:
        work(spec, store, report=report, **options)
    except (Exception, SystemExit) as error:  # KeyboardInterrupt is how a cluster cancels a cell: not a failure
        return failure_of(error)
    if not store.has(spec, options.get("evaluations")):
        name = getattr(work, "__qualname__", repr(work))
        return Failure("error", f"{name} returned, but the store has no run of this spec; it must call store.add")
    return None


def cell_options(options: Mapping[str, Any], evaluations: Evaluations) -> dict[str, Any]:
    """The options of a cell; work that knows of no evaluations is not asked for any."""
    return {**options, **({} if evaluations == NOTHING_MORE else {"evaluations": evaluations})}


def throttle(send: Callable[[Progress], None], *, seconds: float) -> Callable[[Progress], None]:
    """`send`, skipping what comes sooner than `seconds` after what was sent; the last step is always told."""
    last = -seconds

    def report(progress: Progress) -> None:
        nonlocal last
        now = time.monotonic()
        if now - last >= seconds or progress.done >= progress.of:
            last = now
            send(progress)

    return report


def training_work() -> Work:
    """`run_spec`, imported where it runs: a process that only starts others need not wait for torch."""
    from focalcal.experiments.run import run_spec

    return run_spec


def failure_of(error: BaseException) -> Failure:
    """The kind, message and traceback of an exception, and what a non-finite loss says about its batch."""
    message = "".join(traceback.format_exception_only(error)).strip()
    details = {"traceback": "".join(traceback.format_exception(error))}
    if _is_out_of_memory(error):
        return Failure("out of memory", message, details)
    from focalcal.training.non_finite import NonFiniteLossError

    if isinstance(error, NonFiniteLossError):
        return Failure("non-finite loss", message, {**details, **error.record()})
    return Failure("error", message, details)


def _is_out_of_memory(error: BaseException) -> bool:
    if isinstance(error, RuntimeError):  # as is CUDA's OutOfMemoryError
        return any(words in str(error).lower() for words in _ALLOCATORS_SAY)
    return isinstance(error, MemoryError)
