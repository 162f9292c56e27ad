"""Image files decoded once: the pixels go into a .npy file, which is mapped into memory, not loaded."""

from __future__ import annotations

import hashlib
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from focalcal.core.atomic import atomic_file, write_atomically
from focalcal.core.extras import required
from focalcal.lab.data.errors import problem, reading

_SETTLED = 2_000_000_000  # nanoseconds, the coarsest clock of a file system


def decode_images(paths: Sequence[Path], *, size: int, mode: str, cache: Path) -> tuple[NDArray[Any], str]:
    """(uint8 (N, C, size, size), the SHA-256 of the files' names and contents), in the order of `paths`.

    `mode` is Pillow's: "RGB" has C = 3, "L" (grey) C = 1. An image of another size is resized, bilinearly. The array
    is kept in `cache` under the SHA-256 and the size; it appears there when whole, and is mapped copy-on-write. The
    files are read again only when a name, size or time of change differs: ChestX-ray14 has 42 GB of them.
    """
    channels = {"RGB": 3, "L": 1}[mode]
    if not paths:
        return np.empty((0, channels, size, size), np.uint8), hashlib.sha256().hexdigest()
    sha256 = _sha256(paths, cache)
    kept = cache / f"decoded-{sha256[:32]}-{mode}-{size}.npy"
    if not kept.exists():
        cache.mkdir(parents=True, exist_ok=True)
        _decode(paths, kept, (len(paths), channels, size, size), mode)
    with reading(kept, "decoded images"):
        pixels: NDArray[Any] = np.load(kept, mmap_mode="c", allow_pickle=False)
    if pixels.shape != (len(paths), channels, size, size) or pixels.dtype != np.uint8:
        raise problem(kept, f"must hold {len(paths)} decoded images", pixels.shape, "delete it")
    return pixels, sha256


def _sha256(paths: Sequence[Path], cache: Path) -> str:
    looks, newest = hashlib.sha256(), 0
    for path in paths:
        with reading(path, "an image file"):
            look = path.stat()
        looks.update(f"{path.name} {look.st_size} {look.st_mtime_ns}\n".encode())
        newest = max(newest, look.st_mtime_ns)
    known = cache / f"sha256-{looks.hexdigest()[:32]}.txt"
    if known.exists() and len(sha256 := known.read_text()) == 64:
        return sha256
    sha256 = _content_sha256(paths)
    if time.time_ns() - newest > _SETTLED:  # else a file could change once more and look the same
        cache.mkdir(parents=True, exist_ok=True)
        write_atomically(known, sha256.encode())
    return sha256


def _content_sha256(paths: Sequence[Path]) -> str:
    digest = hashlib.sha256()
    for path in paths:
        with reading(path, "an image file"):
            content = path.read_bytes()
        digest.update(f"{path.name} {len(content)}\n".encode())
        digest.update(content)
    return digest.hexdigest()


def _decode(paths: Sequence[Path], kept: Path, shape: tuple[int, int, int, int], mode: str) -> None:
    pillow = required("PIL.Image", purpose="Reading image files")
    with atomic_file(kept) as out:  # one image after the other, so that memory holds one
        np.lib.format.write_array_header_1_0(out, {"descr": "|u1", "fortran_order": False, "shape": shape})
        for path in paths:
            with reading(path, "an image file"), pillow.open(path) as image:
                plain = image.convert(mode)
                if plain.size != (shape[3], shape[2]):
                    plain = plain.resize((shape[3], shape[2]), pillow.Resampling.BILINEAR)
                out.write(np.atleast_3d(np.asarray(plain)).transpose(2, 0, 1).tobytes())
