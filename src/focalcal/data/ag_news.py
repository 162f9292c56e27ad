"""AG News (Zhang, Zhao and LeCun 2015): title and description as tokens int64 (N, length), 4 classes.

`train.csv` and `test.csv` without a header: class 1 .. 4, title, description.
"""

from __future__ import annotations

import csv
import io
from pathlib import Path

import numpy as np

from focalcal.data.errors import problem, reading
from focalcal.data.examples import DataSet, numbered_ids
from focalcal.data.location import located
from focalcal.data.sources import Sources, complete
from focalcal.data.splits import validation_split
from focalcal.data.text.data_set import Documents, text_data_set

AG_NEWS_CLASSES = ("World", "Sports", "Business", "Sci/Tech")
_EXPECTED = {"train": (30_000,) * 4, "test": (1_900,) * 4}


def load_ag_news(
    folder: Path,
    *,
    allow_partial: bool = False,
    num_words: int = 20_000,
    length: int = 128,
    validation: int = 0,
) -> DataSet:
    """The official 120,000 / 7,600; `validation` of the training items are held out."""
    sources = Sources(folder)
    path = located("ag_news", folder)
    parts = {split: _read(sources, path / f"{split}.csv") for split in _EXPECTED}
    labels = {split: np.array([label for label, _ in rows], np.int64) for split, rows in parts.items()}
    whole = complete("ag_news", labels, _EXPECTED, allow_partial=allow_partial)
    documents = Documents(
        [text for rows in parts.values() for _, text in rows],
        np.concatenate(list(labels.values())),
        np.concatenate([numbered_ids(split, len(rows)) for split, rows in parts.items()]),
    )
    rows, cut = documents.rows(), len(parts["train"])
    train, val = validation_split(rows.take(np.arange(cut)), validation, whole=whole)
    splits = {"train": train, "val": val, "test": rows.take(np.arange(cut, len(rows)))}
    note = f"official; validation: the first {len(val)} of a shuffle of the training items, NumPy seed 1"
    provenance = sources.provenance(split=note, partial=not whole)
    return text_data_set(
        "ag_news", AG_NEWS_CLASSES, documents, splits, num_words=num_words, length=length, provenance=provenance
    )


def _read(sources: Sources, path: Path) -> list[tuple[int, str]]:
    """(class from 0, title and description) of each line; none in a part that lacks the file."""
    if not path.exists():
        return []
    content = sources.read(path, "AG News's .csv file")
    with reading(path, "AG News's .csv file"):
        found = []
        for number, fields in enumerate(csv.reader(io.StringIO(content.decode("utf-8"), newline=""), strict=True)):
            if len(fields) != 3 or fields[0] not in ("1", "2", "3", "4"):
                rule = f"record {number + 1} must be a class from 1 to 4, a title and a description"
                raise problem(path, rule, repr(fields)[:80], "fetch it again")
            found.append((int(fields[0]) - 1, f"{fields[1]} {fields[2]}"))
        return found
