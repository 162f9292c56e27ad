"""AG News (Zhang, Zhao and LeCun 2015): title and description as tokens int64 (N, length), 4 classes.

`train.csv` and `test.csv` without a header: class 1 .. 4, title, description.
"""

from __future__ import annotations

import csv
import io
from pathlib import Path
from typing import Any

import numpy as np

from focalcal.lab.data.documents import Documents, official_texts
from focalcal.lab.data.errors import problem
from focalcal.lab.data.examples import DataSet, numbered_ids
from focalcal.lab.data.source_files import SourceFiles

AG_NEWS_CLASSES = ("World", "Sports", "Business", "Sci/Tech")
_EXPECTED = {"train": (30_000,) * 4, "test": (1_900,) * 4}


def load_ag_news(
    folder: Path,
    *,
    allow_partial: bool = False,
    num_words: int = 20_000,
    length: int = 128,
    word_pieces: str | None = None,
    validation: int = 0,
) -> DataSet:
    """The official 120,000 / 7,600; `validation` of the training items are held out."""
    sources = SourceFiles("ag_news", folder, allow_partial=allow_partial)
    parts = {split: _read(sources, split) for split in _EXPECTED}
    how: dict[str, Any] = {"num_words": num_words, "length": length, "word_pieces": word_pieces}
    return official_texts(sources, AG_NEWS_CLASSES, parts, _EXPECTED, validation, **how)


def _read(sources: SourceFiles, split: str) -> Documents:
    """Title and description of each line of the split's file; none in a part of the data set that lacks the file."""
    path = sources.path / f"{split}.csv"
    if not path.exists():
        return Documents([], np.empty(0, np.int64), numbered_ids(split, 0))
    with sources.opened(path, "AG News's .csv file") as content:
        texts, labels = [], []
        for number, fields in enumerate(csv.reader(io.StringIO(content.decode("utf-8"), newline=""), strict=True)):
            if len(fields) != 3 or fields[0] not in ("1", "2", "3", "4"):
                rule = f"record {number + 1} must be a class from 1 to 4, a title and a description"
                raise problem(path, rule, repr(fields)[:80], "fetch it again")
            labels.append(int(fields[0]) - 1)
            texts.append(f"{fields[1]} {fields[2]}")
    return Documents(texts, np.array(labels, np.int64), numbered_ids(split, len(texts)))
