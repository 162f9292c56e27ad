"""Documents become a data set: divided first, then numbered by a tokeniser that has seen the training texts only.

The tokeniser has the rules of Keras's `Tokenizer` and `pad_sequences`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from focalcal.data.errors import problem
from focalcal.data.examples import DataSet, Examples
from focalcal.data.source_files import SourceFiles
from focalcal.data.splits import validation_split

_TO_SPACE = str.maketrans(dict.fromkeys('!"#$%&()*+,-./:;<=>?@[\\]^_`{|}~\t\n', " "))


@dataclass(frozen=True)
class Documents:
    """Texts with labels and ids. `rows` are examples whose one input is a text's number, for `splits` to divide."""

    texts: Sequence[str]
    labels: NDArray[np.int64]
    ids: NDArray[Any]

    def rows(self) -> Examples:
        """One example per text."""
        return Examples(np.arange(len(self.texts))[:, None], self.labels, self.ids)

    def of(self, rows: Examples) -> list[str]:
        """The texts of these rows."""
        return [self.texts[row] for row in rows.inputs[:, 0]]

    @classmethod
    def join(cls, *parts: Documents) -> Documents:
        """The documents of all parts, one part after the other."""
        labels, ids = (np.concatenate([getattr(part, name) for part in parts]) for name in ("labels", "ids"))
        return cls([text for part in parts for text in part.texts], labels, ids)


def official_texts(
    sources: SourceFiles,
    classes: tuple[str, ...],
    parts: Mapping[str, Documents],
    expected: Mapping[str, tuple[int, ...]],
    validation: int,
    *,
    num_words: int,
    length: int,
    official: str = "official",
    **more: Any,
) -> DataSet:
    """The official "train" and "test" of `parts`, if complete; `validation` texts of train are held out."""
    whole = sources.complete({split: part.labels for split, part in parts.items()}, expected)
    documents = Documents.join(parts["train"], parts["test"])
    rows, cut = documents.rows(), len(parts["train"].texts)
    train, val = validation_split(rows.take(np.arange(cut)), validation, whole=whole)
    splits = {"train": train, "val": val, "test": rows.take(np.arange(cut, len(rows)))}
    note = f"{official}; validation: the first {len(val)} of a shuffle of the training texts, NumPy seed 1"
    provenance = sources.provenance(split=note, partial=not whole, **more)
    return text_data_set(
        sources.name, classes, documents, splits, num_words=num_words, length=length, provenance=provenance
    )


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
    tokeniser = Tokeniser.from_texts(documents.of(splits["train"]), num_words=num_words)
    numbered: dict[str, Any] = {
        split: replace(rows, inputs=tokeniser.rows(documents.of(rows), length=length)) for split, rows in splits.items()
    }
    seen = set(documents.of(splits["train"]))
    repeated = {split: sum(text in seen for text in documents.of(splits[split])) for split in ("val", "test")}
    facts = {"num_words": num_words, "length": length, "texts_also_in_train": repeated}
    return DataSet(name, classes, **numbered, vocabulary=tokeniser.vocabulary, provenance=provenance | facts)


@dataclass(frozen=True)
class Tokeniser:
    """Numbers for the most frequent words: `vocabulary[i]` is the word of token i; token 0 is padding, the word ""."""

    vocabulary: tuple[str, ...]

    @cached_property
    def _tokens(self) -> dict[str, int]:
        return {word: token for token, word in enumerate(self.vocabulary) if token}

    @classmethod
    def from_texts(cls, texts: Iterable[str], *, num_words: int = 20_000) -> Tokeniser:
        """Tokens 1 .. num_words - 1 for the most frequent words; of two equally frequent the first seen."""
        if num_words < 2:
            raise ValueError(f"num_words must be at least 2, as 0 is padding, got {num_words}")
        counts: Counter[str] = Counter()
        for text in texts:
            counts.update(words(text))
        return cls(("", *(word for word, _ in counts.most_common(num_words - 1))))

    def rows(self, texts: Sequence[str], *, length: int) -> NDArray[np.int64]:
        """(N, length): unknown words left out, the last `length` tokens kept, zeros in front of shorter texts."""
        if length < 1:
            raise ValueError(f"length must be at least 1, got {length}")
        out = np.zeros((len(texts), length), np.int64)
        for row, text in enumerate(texts):
            known = [self._tokens[word] for word in words(text) if word in self._tokens][-length:]
            if known:
                out[row, -len(known) :] = known
        return out


def words(text: str) -> list[str]:
    """Lower case, punctuation but the apostrophe (and tabs and line ends) as spaces, split at spaces."""
    return [word for word in text.lower().translate(_TO_SPACE).split(" ") if word]
