"""The one error of a data set that is not there, cut off, tampered with, or not what it should be."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


class DataSetError(ValueError):
    """A data set's file or folder that cannot be used, by name, with what to do about it."""


class DataSetWarning(UserWarning):
    """What makes a division of one's own rows say less than it seems to."""


def problem(path: str | Path, rule: str, received: object, remedy: str) -> DataSetError:
    """The error: which file, what it must be, what there is, what to do."""
    return DataSetError(f"{path}: {rule}, got {received}; {remedy}")


_FETCH = "it is cut off, damaged or foreign: delete it and run `focalcal data get`"


@contextmanager
def reading(path: Path, what: str, remedy: str = _FETCH) -> Iterator[None]:
    """Turn whatever goes wrong while `path` is read into one error that names it.

    Broad on purpose: a damaged file makes unpicklers, image decoders and .mat readers raise nearly anything.
    """
    try:
        yield
    except (DataSetError, ModuleNotFoundError, MemoryError):
        raise
    except FileNotFoundError as error:
        raise problem(path, f"must be {what}", "nothing of that name", "run `focalcal data get`") from error
    except Exception as error:
        reason = " ".join(f"{type(error).__name__}: {error}".split())[:300]
        raise problem(path, f"must be {what}", reason, remedy) from error
