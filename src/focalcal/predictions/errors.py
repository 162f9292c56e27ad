"""The one error of a file that cannot be read, and how everything that goes wrong becomes it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

# A reader believes a file that claims to unpack to so much, however small the file, or to so many times its size.
BELIEVED_BYTES = 256 << 20
BELIEVED_RATIO = 100
_OPENINGS = {b"PK\x03\x04": ".npz", b"PAR1": ".parquet"}


class PredictionsFileError(ValueError):
    """A file that is not there, is cut off or damaged, or does not say what is needed to read it."""


def problem(path: Path, rule: str, found: object, remedy: str) -> PredictionsFileError:
    """The error of a file: which, what it must be, what was found, what to do."""
    return PredictionsFileError(f"{path}: {rule}, got {found}; {remedy}")


def listed(found: Sequence[str]) -> str:
    """Names for an error message, not more than a reader wants to see."""
    shown = ", ".join(repr(str(name)[:60]) for name in found[:24])
    return f"{shown or 'nothing'}{f' and {len(found) - 24} more' if len(found) > 24 else ''}"


def believable(path: Path, claimed: int, size: int) -> None:
    """Refuse a file that claims to unpack to far more than its size can hold, before memory is asked for."""
    allowed = max(BELIEVED_BYTES, BELIEVED_RATIO * size)
    if not 0 <= claimed <= allowed:
        raise problem(
            path,
            f"a file of {size} bytes must unpack to at most {allowed}",
            claimed,
            "do not trust it; if you made it, save it uncompressed as .npz",
        )


def readable(path: Path) -> None:
    """Refuse a path that names no file with something in it."""
    if not path.exists():
        raise problem(path, "the file must exist", "nothing of that name", "check the path")
    if not path.is_file():
        raise problem(path, "the path must name a file", "a folder or a device", "name a file")
    if not path.stat().st_size:
        raise problem(path, "the file must hold predictions", "an empty file", "make it again")


@contextmanager
def reading(path: Path, start: int = 0) -> Iterator[None]:
    """Turn whatever goes wrong while a file is read, from row `start` on, into one error that names the file.

    Broad on purpose: a damaged file makes zip, NumPy, Arrow and JSON readers raise nearly anything.
    """
    try:
        yield
    except (PredictionsFileError, ModuleNotFoundError):
        raise
    except Exception as error:
        reason = " ".join(f"{type(error).__name__}: {error}".split())[:500]
        if start:
            reason += f" (rows counted from row {start} of the file)"
        rule = f"must be a whole {path.suffix} file of predictions"
        raise problem(path, rule, reason, _remedy(path, error)) from error


def _remedy(path: Path, error: Exception) -> str:
    if isinstance(error, MemoryError):
        return "if it is right but does not fit, use stream(path), or mmap=True with .npz"
    if "summing to 1" in str(error):
        return "if the digits were rounded, dtype='float32' allows sums within 1e-5; else make the file again"
    try:
        with open(path, "rb") as handle:
            opening = _OPENINGS.get(handle.read(4))
    except OSError:
        return "check that it can be read"
    if opening and opening != path.suffix.lower():
        return f"it begins like a {opening} file: rename it"
    return "it may be cut off, damaged or foreign: make it again, or see the documented layout"
