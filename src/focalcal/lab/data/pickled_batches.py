"""Pickles that hold a dict of images and labels, read without Python's unpickler.

A pickle is a program, which can call whatever it names, and can make gigabytes of a few bytes by putting lists into
lists. This reader follows the opcodes that the official files have and refuses all others: it calls nothing, makes
uint8 arrays and texts alone, and keeps them in flat lists in one dict, so that memory grows with the file.
"""

from __future__ import annotations

import pickletools
import warnings
from functools import cache
from math import prod
from pickle import UnpicklingError
from typing import Any

import numpy as np
from numpy.typing import NDArray

_IGNORED = ("PROTO", "FRAME")
_VALUES = frozenset(
    (
        *("NONE", "NEWTRUE", "NEWFALSE", "INT", "BININT", "BININT1", "BININT2", "LONG", "LONG1"),
        *("STRING", "BINSTRING", "SHORT_BINSTRING", "UNICODE", "BINUNICODE", "SHORT_BINUNICODE", "BINUNICODE8"),
        *("BINBYTES", "SHORT_BINBYTES", "BINBYTES8"),
    )
)
_CONSTANTS = {"NEWTRUE": True, "NEWFALSE": False}  # NONE has no argument, which is None
_TUPLES = {"EMPTY_TUPLE": 0, "TUPLE1": 1, "TUPLE2": 2, "TUPLE3": 3}
_NAMES = {  # and what they stand for here
    "numpy ndarray": "array",  # named as an argument, never called
    "numpy dtype": "dtype",
    "_codecs encode": "encode",  # how Python 3 writes bytes into pickles that Python 2 can read
    "numpy.core.multiarray _reconstruct": "new array",
    "numpy._core.multiarray _reconstruct": "new array",
}


class _Name(str):
    """A name that the pickle uses, as opposed to a text that it holds."""

    __slots__ = ()


class _Dtype:
    """uint8, whatever else its state says."""


class _Array:
    """An array before, and after, its state is known."""

    array: NDArray[Any] | None = None


def read_pickle(content: bytes) -> dict[str, Any]:
    """The dict in a pickle: str keys; values are uint8 arrays, str, int, and lists of str and int."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # of escapes in damaged strings
        machine = _Machine()
        for opcode, argument, position in pickletools.genops(content):
            try:
                machine.follow(opcode.name, argument)
            except (UnpicklingError, AttributeError, LookupError, TypeError, ValueError) as error:
                reason = str(error) if isinstance(error, UnpicklingError) else f"no sense is in it ({error!r})"
                raise UnpicklingError(f"{opcode.name} at byte {position}: {reason}") from None
    content = machine.stack.pop()
    if not isinstance(content, dict):
        raise UnpicklingError(f"it must hold a dict, got {type(content).__name__}")
    return {key: value.array if isinstance(value, _Array) else value for key, value in content.items()}


class _Machine:
    """The stack, the marks in it and the memo of a pickle that is being read."""

    def __init__(self) -> None:
        self.stack: list[Any] = []
        self._marks: list[int] = []
        self._memo: dict[int, Any] = {}
        # Each text is converted once: a pickle can ask for it a million times.
        self._text = cache(lambda content: content.decode("latin1"))
        self._bytes = cache(lambda text: text.encode("latin1"))

    def follow(self, name: str, argument: Any) -> None:
        """One opcode."""
        stack, memo = self.stack, self._memo
        if name in _VALUES:
            stack.append(_CONSTANTS.get(name, argument))
        elif name in ("PUT", "BINPUT", "LONG_BINPUT"):
            memo[int(argument)] = stack[-1]
        elif name == "MEMOIZE":
            memo[len(memo)] = stack[-1]
        elif name in ("GET", "BINGET", "LONG_BINGET"):
            stack.append(memo[int(argument)])
        elif name == "MARK":
            self._marks.append(len(stack))
        elif name in _TUPLES:
            stack.append(tuple(stack.pop() for _ in range(_TUPLES[name]))[::-1])
        elif name == "TUPLE":
            stack.append(tuple(self._since_mark()))
        elif name in ("EMPTY_LIST", "LIST"):
            items = self._since_mark() if name == "LIST" else []
            stack.append([])
            self._append(items)
        elif name in ("APPEND", "APPENDS"):
            self._append([stack.pop()] if name == "APPEND" else self._since_mark())
        elif name in ("EMPTY_DICT", "DICT"):
            items = self._since_mark() if name == "DICT" else []
            stack.append({})
            self._set(items)
        elif name in ("SETITEM", "SETITEMS"):
            self._set([stack.pop(), stack.pop()][::-1] if name == "SETITEM" else self._since_mark())
        elif name in ("GLOBAL", "STACK_GLOBAL"):
            self._global(argument if name == "GLOBAL" else " ".join([stack.pop(), stack.pop()][::-1]))
        elif name == "REDUCE":
            arguments = stack.pop()
            stack.append(self._call_result(stack.pop(), arguments))
        elif name == "BUILD":
            state = stack.pop()
            self._set_state(stack[-1], state)
        elif name not in (*_IGNORED, "STOP"):
            raise UnpicklingError("such a file has no use for it")

    def _since_mark(self) -> list[Any]:
        start = self._marks.pop()
        items = self.stack[start:]
        del self.stack[start:]
        return items

    def _append(self, items: list[Any]) -> None:
        target = self.stack[-1]
        if not isinstance(target, list):
            raise UnpicklingError(f"it puts something into a {type(target).__name__} as if that were a list")
        target += map(self._plain, items)

    def _set(self, items: list[Any]) -> None:
        target = self.stack[-1]
        if not isinstance(target, dict):
            raise UnpicklingError(f"it puts something into a {type(target).__name__} as if that were a dict")
        for key, value in zip(items[::2], items[1::2], strict=True):
            target[self._plain(key)] = value if isinstance(value, _Array | list) else self._plain(value)

    def _plain(self, value: Any) -> str | int:
        """A text or a whole number; in lists there is nothing else, and as keys."""
        if isinstance(value, bytes):
            return str(self._text(value))
        if type(value) not in (int, str):
            kinds = "arrays, text, whole numbers, and lists of text and whole numbers"
            raise UnpicklingError(f"it must hold {kinds} in one dict, got {type(value).__name__} in another place")
        plain: str | int = value
        return plain

    def _global(self, name: Any) -> None:
        if name not in _NAMES:
            raise UnpicklingError(f"it asks for {'.'.join(name.split())}, which such a file has no use for")
        self.stack.append(_Name(_NAMES[name]))

    def _call_result(self, function: Any, arguments: Any) -> Any:
        """What a call would give; no function is called."""
        called = function if isinstance(function, _Name) else None
        if called == "encode" and arguments[1:] in ((), ("latin1",)):
            return self._bytes(arguments[0])
        if called == "dtype" and arguments[0] in ("u1", b"u1"):
            return _Dtype()
        if called == "new array":
            return _Array()
        raise UnpicklingError(f"arrays must be uint8 and bytes latin1, got {called or type(function).__name__}")

    def _set_state(self, target: Any, state: Any) -> None:
        """Fill an array from the state that NumPy gives it: version, shape, dtype, order, bytes."""
        if isinstance(target, _Dtype):
            return
        if not isinstance(target, _Array):
            raise UnpicklingError(f"it sets the state of a {type(target).__name__}, which has none")
        _, shape, dtype, fortran, raw = state
        content = raw if isinstance(raw, bytes) else self._bytes(raw)
        known = isinstance(dtype, _Dtype) and isinstance(shape, tuple) and len(shape) <= 4
        if not known or any(type(n) is not int or n < 0 for n in shape) or prod(shape) != len(content):
            raise UnpicklingError("an array must be of bytes (uint8), as many as its shape says")
        target.array = np.frombuffer(content, np.uint8).reshape(shape, order="F" if fortran else "C")
