"""IDX, the format of MNIST and its successors: arrays of bytes with a big-endian header, gzipped or not."""

from __future__ import annotations

import gzip
import io
import struct
from math import prod
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from focalcal.data.errors import problem, reading
from focalcal.data.sources import Sources

_BYTE = 8  # the type code of uint8
_MAX_BYTES = 1 << 30  # no such file is larger; a gzip that claims more is a bomb


def read_idx(sources: Sources, path: Path, dimensions: int) -> NDArray[Any]:
    """The uint8 array of so many dimensions in `path`, or in `path` + ".gz" if only that is there."""
    if not path.exists():
        path = path.with_name(f"{path.name}.gz")
    content = sources.read(path, "an IDX file")
    with reading(path, "an IDX file"):
        if content[:2] == b"\x1f\x8b":
            content = _unzipped(content)
        return _array(path, content, dimensions)


def _unzipped(content: bytes) -> bytes:
    with gzip.GzipFile(fileobj=io.BytesIO(content)) as plain:
        found = plain.read(_MAX_BYTES)
        if plain.read(1):
            raise ValueError(f"it unpacks to more than {_MAX_BYTES} bytes")
        return found


def _array(path: Path, content: bytes, dimensions: int) -> NDArray[Any]:
    zeros, kind, dims = struct.unpack_from(">HBB", content)
    if (zeros, kind, dims) != (0, _BYTE, dimensions):
        found = f"a header {content[:4].hex()}"
        raise problem(path, f"must be an IDX file of bytes in {dimensions} dimensions", found, "fetch it again")
    shape = struct.unpack_from(f">{dims}I", content, 4)
    start = 4 + 4 * dims
    if len(content) - start != prod(shape):
        raise problem(path, f"must hold {prod(shape)} bytes for {shape}", len(content) - start, "fetch it again")
    return np.frombuffer(content, np.uint8, offset=start).reshape(shape)
