"""Image files decoded once: the pixels go into a .npy file, which is mapped into memory, not loaded."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from focalcal.core.atomic import atomic_file
from focalcal.core.extras import required
from focalcal.lab.data.errors import problem, reading


def decode_images(paths: Sequence[Path], *, size: int, mode: str, cache: Path) -> NDArray[Any]:
    """uint8 (N, C, size, size), in the order of `paths`.

    `mode` is Pillow's: "RGB" has C = 3, "L" (grey) C = 1. An image of another size is resized, bilinearly. The array
    is kept in `cache`; it appears there when whole, and is mapped copy-on-write. The files are read again only when a
    name, size or time of change differs: ChestX-ray14 has 42 GB of them.
    """
    shape = (len(paths), {"RGB": 3, "L": 1}[mode], size, size)
    if not paths:
        return np.empty(shape, np.uint8)
    looks = hashlib.sha256()
    for path in paths:
        with reading(path, "an image file"):
            look = path.stat()
        looks.update(f"{path.name} {look.st_size} {look.st_mtime_ns} {look.st_ctime_ns}\n".encode())
    kept = cache / f"decoded-{looks.hexdigest()[:32]}-{mode}-{size}.npy"
    if not kept.exists():
        cache.mkdir(parents=True, exist_ok=True)
        _decode(paths, kept, shape, mode)
    with reading(kept, "decoded images"):
        pixels: NDArray[Any] = np.load(kept, mmap_mode="c", allow_pickle=False)
    if pixels.shape != shape or pixels.dtype != np.uint8:
        raise problem(kept, f"must hold {len(paths)} decoded images", pixels.shape, "delete it")
    return pixels


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
