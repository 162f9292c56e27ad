"""Documents become a data set: divided first, then numbered by a tokeniser that has seen the training texts only."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from focalcal.data.errors import problem
from focalcal.data.examples import SPLITS, DataSet, Examples
from focalcal.data.text.tokeniser import Tokeniser


@dataclass(frozen=True)
class Documents:
    """Texts with labels and ids. `rows` are examples whose one input is a text's number, for `splits` to divide."""

    texts: Sequence[str]
    labels: NDArray[np.int64]
    ids: NDArray[Any]

    def rows(self) -> Examples:
        """One example a text."""
        return Examples(np.arange(len(self.texts))[:, None], self.labels, self.ids)

    def of(self, rows: Examples) -> list[str]:
        """The texts of these rows."""
        return [self.texts[row] for row in rows.inputs[:, 0]]


def text_data_set(
    name: str,
    classes: tuple[str, ...],
    documents: Documents,
    splits: dict[str, Examples],
    *,
    num_words: int,
    length: int,
    provenance: dict[str, Any],
) -> DataSet:
    """The data set of tokens (N, length) whose `splits` hold rows of `documents`."""
    if not len(splits["train"]):
        rule = "train must hold texts, of which the vocabulary is made"
        raise problem(name, rule, "none", "put its training part there too")
    tokeniser = Tokeniser.fitted(documents.of(splits["train"]), num_words=num_words)
    numbered = {
        split: replace(rows, inputs=tokeniser.rows(documents.of(rows), length=length)) for split, rows in splits.items()
    }
    seen = set(documents.of(splits["train"]))
    repeated = {split: sum(text in seen for text in documents.of(splits[split])) for split in ("val", "test")}
    facts = {"num_words": num_words, "length": length, "texts_also_in_train": repeated}
    train, val, test = (numbered[split] for split in SPLITS)
    return DataSet(name, classes, train, val, test, tokeniser.vocabulary, provenance | facts)
