"""The compiled kernel, loaded when it is first asked for. Optional: `available()` is False where it was not built.

`FOCALCAL_NATIVE=0` in the environment turns it off; `FOCALCAL_INSTRUCTION_SET` holds it to `baseline`, `avx2` or
`avx512`, where it would use the best set that the processor has. Both are read when the kernel is first asked for.
Nothing here imports torch: `scores`, `softmax` and `focalcal.theory` hand it arrays, `losses.native_engine`
tensors.
"""

from __future__ import annotations

import os
import sys
import threading
import warnings
from contextlib import contextmanager
from contextvars import ContextVar
from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator

_built: Any = None  # the compiled module, once looked for and there
_looked = False
_lock = threading.Lock()
_most_threads: ContextVar[int | None] = ContextVar("most_threads", default=None)


class NativeKernelWarning(UserWarning):
    """The compiled kernel is missing, so torch and NumPy do its work."""


def available() -> bool:
    """True if the kernel can be used; the first call looks for it, and says once if it is missing."""
    global _built, _looked
    if not _looked:
        with _lock:
            if not _looked:
                _built = _look()
                _looked = True  # last: another thread must not see it before the module
    return _built is not None


def _look() -> Any:
    if os.environ.get("FOCALCAL_NATIVE") == "0":
        return None
    try:
        return import_module("focalcal._native._kernel")
    except ImportError as error:
        warnings.warn(
            f"focalcal's compiled kernel is missing ({error}); losses, metrics and minimisers are right but slower "
            "without it. Install a C compiler and reinstall focalcal, or set FOCALCAL_NATIVE=0 to silence this.",
            NativeKernelWarning,
            stacklevel=3,
        )
        return None


def kernel() -> Any:
    """The compiled module."""
    if _built is None and not available():
        raise RuntimeError("the native kernel is not here; focalcal works without it")
    return _built


def instruction_sets() -> tuple[str, ...]:
    """The instruction sets that the kernel can use on this processor, best last."""
    if not available():
        return ()
    names: tuple[str, ...] = _built.instruction_sets()
    return names


def threads() -> int:
    """How many threads a long pass may use: torch's number where torch is loaded, else OMP_NUM_THREADS, else one a CPU.

    `limit_threads` sets an upper bound.
    """
    most = _most_threads.get()
    return _usual_threads() if most is None else min(most, _usual_threads())


@contextmanager
def limit_threads(most: int) -> Iterator[None]:
    """At most so many threads for what the `with` block, in this thread, asks of the kernel."""
    token = _most_threads.set(most)
    try:
        yield
    finally:
        _most_threads.reset(token)


def _usual_threads() -> int:
    asked_of_torch = getattr(sys.modules.get("torch"), "get_num_threads", None)
    if asked_of_torch is not None:
        return int(asked_of_torch())
    first = os.environ.get("OMP_NUM_THREADS", "").split(",")[0].strip()
    if first.isdecimal() and int(first) > 0:
        return int(first)
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
