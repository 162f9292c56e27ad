"""GloVe word vectors (Pennington, Socher and Manning 2014), of the words that are asked for and no others.

The file has one line per word: the word, a space, and the numbers, separated by spaces. It is streamed, never held.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from focalcal.lab.data.errors import problem, reading
from focalcal.lab.data.source_files import PART_WILL_DO, data_folder, file_sha256, locate

_WORDS = 400_000  # in each of the four files of 6B


def word_vectors(
    vocabulary: Sequence[str], data_dir: str | os.PathLike[str] | None = None, *, dimension: int = 100
) -> NDArray[np.float32]:
    """GloVe 6B's vectors of the words of a vocabulary, from the folder of the data sets.

    Args:
        vocabulary: a data set's: row i belongs to token i, and row 0, padding, is zero.
        data_dir: the folder of the data sets; None: where FOCALCAL_DATA points.
        dimension: 50, 100, 200 or 300.

    Returns:
        float32 of shape (len(vocabulary), dimension).

    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     glove = Path(folder, "glove", "glove.6B.50d.txt")
    ...     glove.parent.mkdir()
    ...     _ = glove.write_text("price " + " ".join(["0.5"] * 50))
    ...     word_vectors(["", "price", "zzz"], folder, dimension=50).shape
    (3, 50)
    """
    return glove_vectors(locate("glove", data_folder(data_dir)) / f"glove.6B.{dimension}d.txt", vocabulary)


def glove_vectors(path: Path, vocabulary: Sequence[str]) -> NDArray[np.float32]:
    """(len(vocabulary), D): each word's vector, zeros for a word that the file lacks, and for the padding ""."""
    wanted = {word.encode(): row for row, word in enumerate(vocabulary) if word}
    vectors: NDArray[np.float32] | None = None
    with reading(path, "a GloVe text file"):
        for number, (word, numbers) in enumerate(_lines(path), 1):
            if vectors is None:
                vectors = np.zeros((len(vocabulary), numbers.count(b" ") + 1), np.float32)
            if word in wanted:
                vector = [float(part) for part in numbers.split()]
                if not np.isfinite(vector).all():
                    raise problem(path, f"line {number} must have finite numbers", numbers[:60], "fetch it again")
                vectors[wanted[word]] = vector
    if vectors is None:
        raise problem(path, "must hold a word and its vector per line", "none", "fetch it again")
    return vectors


def glove_contents(data_dir: str | os.PathLike[str] | None = None, *, allow_partial: bool = False) -> dict[str, Any]:
    """Of each GloVe 6B file that is there the number of words, the dimension and the SHA-256; every line is checked."""
    folder = locate("glove", data_folder(data_dir))
    contents = {}
    for path in sorted(folder.glob("glove.6B.*d.txt")):
        with reading(path, "a GloVe text file"):
            dimensions = [numbers.count(b" ") + 1 for _, numbers in _lines(path)]
        if len(dimensions) < (1 if allow_partial else _WORDS):
            raise problem(path, f"must hold {_WORDS} words", len(dimensions), PART_WILL_DO)
        contents[path.name] = {"words": len(dimensions), "dimension": dimensions[0], "sha256": file_sha256(path)}
    if not contents:
        raise problem(folder, "must hold glove.6B.100d.txt", "none such", "run `focalcal data get glove`")
    return contents


def _lines(path: Path) -> Iterator[tuple[bytes, bytes]]:
    """(word, its numbers) of each line, as many numbers as the first line has; what is before them is the word."""
    dimension = 0
    with path.open("rb") as lines:
        for number, line in enumerate((line.rstrip() for line in lines), 1):
            spaces = line.count(b" ")
            dimension = dimension or spaces
            if not dimension or spaces < dimension:
                rule = f"line {number} must have a word and {dimension or 'some'} numbers, as the first has"
                raise problem(path, rule, spaces, "it is cut off or damaged: fetch it again")
            word, *numbers = line.split(b" ", 1) if spaces == dimension else line.rsplit(b" ", dimension)
            yield word, b" ".join(numbers)
