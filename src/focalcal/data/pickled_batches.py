"""Pickles that hold a dict of images and labels, read without running any code of theirs.

A pickle can call whatever it names. This reader knows four names, and gives its own stand-ins for them: nothing of
NumPy, let alone of the operating system, is called with what the file says.
"""

from __future__ import annotations

import io
import pickle
import pickletools
import warnings
from math import prod
from typing import Any

import numpy as np


class _Array:
    """What `numpy.ndarray` becomes: filled by the pickle's state, bytes of type uint8 only."""

    array: Any = None

    def __setstate__(self, state: Any) -> None:
        _, shape, dtype, fortran, raw = state
        known = isinstance(raw, bytes) and isinstance(dtype, _Bytes) and isinstance(shape, tuple)
        if not known or any(type(n) is not int or n < 0 for n in shape) or prod(shape) != len(raw):
            raise pickle.UnpicklingError("an array must be of bytes (uint8), as many as its shape says")
        self.array = np.frombuffer(raw, np.uint8).reshape(shape, order="F" if fortran else "C")


class _Bytes:
    """What `numpy.dtype` becomes: uint8, whatever else its state says."""

    def __setstate__(self, state: Any) -> None:
        pass


class _MadeDtype:
    """Called as `numpy.dtype`. Stand-ins are objects without attributes, so that a pickle cannot set any on them."""

    __slots__ = ()

    def __call__(self, kind: Any, *rest: Any) -> _Bytes:
        if kind not in ("u1", b"u1"):
            raise pickle.UnpicklingError(f"arrays must be uint8, got {kind!r}")
        return _Bytes()


class _MadeArray:
    """Called as NumPy's `_reconstruct`."""

    __slots__ = ()

    def __call__(self, *arguments: Any) -> _Array:
        return _Array()


class _Encoded:
    """Called as `_codecs.encode`, which is how Python 3 writes bytes into pickles that Python 2 can read."""

    __slots__ = ()

    def __call__(self, text: Any, encoding: Any = "latin1") -> bytes:
        if not isinstance(text, str) or encoding not in ("latin1", b"latin1"):
            raise pickle.UnpicklingError(f"bytes must be written as latin1, got {encoding!r}")
        return text.encode("latin1")


_ALLOWED: dict[tuple[str, str], Any] = {
    ("numpy", "ndarray"): "ndarray",  # named as an argument, never called
    ("numpy", "dtype"): _MadeDtype(),
    ("_codecs", "encode"): _Encoded(),
    ("numpy.core.multiarray", "_reconstruct"): _MadeArray(),
    ("numpy._core.multiarray", "_reconstruct"): _MadeArray(),
}


# What such files are written with: no persistent ids, extensions, instances or byte arrays.
_OPCODES = frozenset(
    (
        *("PROTO", "FRAME", "MARK", "STOP", "GLOBAL", "STACK_GLOBAL", "REDUCE", "BUILD"),
        *("EMPTY_DICT", "DICT", "SETITEM", "SETITEMS", "EMPTY_LIST", "LIST", "APPEND", "APPENDS"),
        *("EMPTY_TUPLE", "TUPLE", "TUPLE1", "TUPLE2", "TUPLE3", "NONE", "NEWTRUE", "NEWFALSE"),
        *("INT", "BININT", "BININT1", "BININT2", "LONG", "LONG1", "STRING", "BINSTRING", "SHORT_BINSTRING"),
        *("UNICODE", "BINUNICODE", "SHORT_BINUNICODE", "BINUNICODE8", "BINBYTES", "SHORT_BINBYTES", "BINBYTES8"),
        *("PUT", "BINPUT", "LONG_BINPUT", "MEMOIZE", "GET", "BINGET", "LONG_BINGET"),
    )
)


class _Restricted(pickle.Unpickler):
    def find_class(self, module: str, name: str) -> Any:
        if (module, name) not in _ALLOWED:
            raise pickle.UnpicklingError(f"it asks for {module}.{name}, which such a file has no use for")
        return _ALLOWED[module, name]


def unpickled(content: bytes) -> dict[str, Any]:
    """The dict in a pickle: str keys; values are uint8 arrays, str, int, and lists of them."""
    _check_opcodes(content)
    found = _plain(_Restricted(io.BytesIO(content), encoding="bytes").load())
    if not isinstance(found, dict):
        raise pickle.UnpicklingError(f"it must hold a dict, got {type(found).__name__}")
    return found


def _check_opcodes(content: bytes) -> None:
    """Refuse a damaged pickle before it is run: the C reader allocates whatever size it claims."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # of escapes in damaged strings
        for opcode, argument, position in pickletools.genops(content):
            too_far = opcode.name in ("PUT", "LONG_BINPUT") and int(argument or 0) > len(content)
            if opcode.name not in _OPCODES or too_far:
                raise pickle.UnpicklingError(
                    f"it has {opcode.name} at byte {position}, which such a file has no use for"
                )


def _plain(value: Any) -> Any:
    if isinstance(value, _Array):
        return value.array
    if isinstance(value, bytes):
        return value.decode("latin1")
    if isinstance(value, dict):
        return {_plain(key): _plain(one) for key, one in value.items()}
    if isinstance(value, list):
        return [_plain(one) for one in value]
    if type(value) in (int, str):
        return value
    kinds = "arrays, text, whole numbers, lists and dicts"
    raise pickle.UnpicklingError(f"it must hold {kinds}, got {type(value).__name__}")
