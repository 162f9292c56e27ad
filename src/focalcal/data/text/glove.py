"""GloVe word vectors (Pennington, Socher and Manning 2014), of the words that are asked for and no others.

The file has a line a word: the word, a space, and the numbers, separated by spaces.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from focalcal.core.atomic import atomic_file
from focalcal.data.errors import problem, reading
from focalcal.data.sources import file_sha256


def glove_vectors(path: Path, vocabulary: Sequence[str], *, cache: Path | None = None) -> NDArray[np.float32]:
    """(len(vocabulary), D): each word's vector, zeros for a word that the file lacks, and for the padding "".

    With `cache`, a folder, the result is kept there under the SHA-256 of the file and the words, and found again.
    """
    with reading(path, "a GloVe text file"):
        if cache is None:
            return _streamed(path, vocabulary)
        kept = cache / f"glove-{_key(path, vocabulary)}.npy"
        if kept.exists():
            return _cached(kept, len(vocabulary))
        vectors = _streamed(path, vocabulary)
    cache.mkdir(parents=True, exist_ok=True)
    with atomic_file(kept) as handle:
        np.save(handle, vectors, allow_pickle=False)
    return vectors


def _cached(kept: Path, words: int) -> NDArray[np.float32]:
    with reading(kept, "cached word vectors"):
        vectors: NDArray[Any] = np.load(kept, allow_pickle=False)
        if vectors.dtype != np.float32 or vectors.ndim != 2 or len(vectors) != words:
            raise problem(kept, f"must be float32 ({words}, D)", f"{vectors.dtype} {vectors.shape}", "delete it")
        return vectors


def _key(path: Path, vocabulary: Sequence[str]) -> str:
    digest = hashlib.sha256(file_sha256(path).encode())
    for word in vocabulary:
        digest.update(f"{word}\n".encode())
    return digest.hexdigest()[:32]


def _streamed(path: Path, vocabulary: Sequence[str]) -> NDArray[np.float32]:
    wanted = {word.encode(): row for row, word in enumerate(vocabulary) if word}
    vectors: NDArray[np.float32] | None = None
    with path.open("rb") as lines:
        for number, line in enumerate(lines, 1):
            word, _, numbers = line.partition(b" ")
            if vectors is None:
                vectors = np.zeros((len(vocabulary), len(numbers.split())), np.float32)
            if word in wanted:
                vectors[wanted[word]] = _vector(path, number, numbers, vectors.shape[1])
    if vectors is None or not vectors.shape[1]:
        raise problem(path, "must hold a word and its vector a line", "none", "fetch it again")
    return vectors


def _vector(path: Path, number: int, numbers: bytes, dimensions: int) -> list[float]:
    parts = numbers.split()
    if len(parts) != dimensions:
        rule = f"line {number} must have {dimensions} numbers, as the first has"
        raise problem(path, rule, len(parts), "it is cut off or damaged: fetch it again")
    vector = [float(part) for part in parts]
    if not np.isfinite(vector).all():
        raise problem(path, f"line {number} must have finite numbers", numbers[:60], "fetch it again")
    return vector
