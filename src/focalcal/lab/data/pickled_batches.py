"""Pickles that hold a dict of images and labels, read without calling anything that they name.

Five names, with stand-ins for what they mean, are all that a pickle can use; any other is refused.
"""

from __future__ import annotations

import io
import pickle
from collections.abc import Callable
from functools import cache
from math import prod
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray


class _Array:
    """What NumPy's `_reconstruct` would make, and the state that its array is then given."""

    pixels: NDArray[Any] | None = None

    def __setstate__(self, state: Any) -> None:
        _, shape, dtype, fortran, raw = state
        content = raw.encode("latin1") if isinstance(raw, str) else raw
        known = isinstance(dtype, _Dtype) and isinstance(content, bytes) and isinstance(shape, tuple)
        if not known or any(type(n) is not int or n < 0 for n in shape) or prod(shape) != len(content):
            raise pickle.UnpicklingError("an array must be of bytes (uint8), as many as its shape says")
        self.pixels = np.frombuffer(content, np.uint8).reshape(shape, order="F" if fortran else "C")


class _Dtype:
    """uint8, whatever else is said of it."""

    def __init__(self, kind: Any, *_: Any) -> None:
        if kind not in ("u1", b"u1"):
            raise pickle.UnpicklingError(f"arrays must be uint8, got {str(kind)[:20]}")

    def __setstate__(self, state: Any) -> None:
        """Byte order and such, of which bytes have none."""


# Python's own reader, since that in C makes room for whatever a damaged file claims, as this one does for BYTEARRAY8.
class _Reader(pickle._Unpickler):
    dispatch: ClassVar = {
        code: load for code, load in pickle._Unpickler.dispatch.items() if code != pickle.BYTEARRAY8[0]
    }

    def __init__(self, content: bytes) -> None:
        super().__init__(io.BytesIO(content), encoding="latin1")
        encode = cache(lambda text, *_: text.encode("latin1"))  # each once: a pickle can ask for one a million times
        # New ones for every file, whose state it may set.
        self._names = {
            "numpy ndarray": object(),  # named as an argument
            "numpy dtype": lambda *arguments: _Dtype(*arguments),
            "_codecs encode": lambda *arguments: encode(*arguments),  # bytes, in a pickle that Python 2 can read
            "numpy.core.multiarray _reconstruct": lambda *_: _Array(),
            "numpy._core.multiarray _reconstruct": lambda *_: _Array(),
        }

    def find_class(self, module: str, name: str) -> Any:
        """The stand-in for a name."""
        if (known := self._names.get(f"{module} {name}")) is None:
            raise pickle.UnpicklingError(f"it asks for {module}.{name}, which such a file has no use for")
        return known


def read_pickle(content: bytes) -> dict[str, Any]:
    """The dict in a pickle: str keys; values are uint8 arrays, str, int, and lists of str and int."""
    batch = _Reader(content).load()
    if not isinstance(batch, dict):
        raise pickle.UnpicklingError(f"it must hold a dict, got {type(batch).__name__}")
    text = cache(lambda value: value.decode("latin1") if isinstance(value, bytes) else value)
    return {str(text(key)): _plain(value, text) for key, value in batch.items()}


def _plain(value: Any, text: Callable[[Any], Any]) -> Any:
    if isinstance(value, _Array) and value.pixels is not None:
        return value.pixels
    items = value if isinstance(value, list) else [value]
    if not all(type(item) in (int, str, bytes) for item in items):
        kinds = "arrays, text, whole numbers, and lists of text and whole numbers"
        raise pickle.UnpicklingError(f"it must hold {kinds} in one dict, got others in a {type(value).__name__}")
    return [text(item) for item in items] if isinstance(value, list) else text(value)
