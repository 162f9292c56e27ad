"""Named random streams: one seed, and as many independent generators as there are names for them.

    numpy_stream(seed, "corrupt", name)      the same numbers on every machine, whatever else was drawn before

A stream's key is SHA-256 of its address: the parts (seed, name, name, ...), each written as its type (i or s), the
length in bytes of its text, ":" and the text (decimal digits or UTF-8), e.g. b"i1:7s7:augmenti2:12". The encoding
reads back in one way only, so two addresses share a stream only if they are equal. There is no global state.
"""

from __future__ import annotations

import hashlib

import numpy as np

from focalcal.core.checks import is_whole, shown


def numpy_stream(seed: int, *names: str | int) -> np.random.Generator:
    """A NumPy generator (PCG64) for the stream (seed, *names), seeded by all 256 bits of the key."""
    return np.random.Generator(np.random.PCG64(int.from_bytes(stream_key(seed, *names), "little")))


def stream_key(seed: int, *names: str | int) -> bytes:
    """The 32 bytes that stand for the stream (seed, *names)."""
    if not is_whole(seed) or not 0 <= seed < 2**64:
        raise ValueError(
            f"seed must be a whole number from 0 to 2**64 - 1, got {shown(seed)} of type {type(seed).__name__}; "
            "the same one gives the same numbers"
        )
    return hashlib.sha256(b"".join(_encode(part) for part in (int(seed), *names))).digest()


def _encode(part: str | int) -> bytes:
    """One part of an address, as the module's docstring writes it."""
    if isinstance(part, str):
        kind, text = b"s", part.encode()
    elif is_whole(part):
        kind, text = b"i", b"%d" % int(part)
    else:
        raise TypeError(
            f"names of a stream must be strings or whole numbers, got {part!r} of type {type(part).__name__}; "
            "use str(...) or int(...)"
        )
    return b"%b%d:%b" % (kind, len(text), text)
