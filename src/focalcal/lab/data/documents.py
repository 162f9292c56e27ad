"""Documents become a data set: divided first, then numbered by a tokeniser that has seen the training texts only.

The tokeniser has the rules of Keras's `Tokenizer` and `pad_sequences`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from focalcal.core.extras import required
from focalcal.lab.data.errors import problem, reading
from focalcal.lab.data.examples import DataSet, Examples
from focalcal.lab.data.source_files import SourceFiles

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
    parts: Mapping[str, Documents],
    validation: int,
    num_words: int,
    length: int,
    word_pieces: str | None,
    **more: Any,
) -> DataSet:
    """The official "train" and "test" of `parts`, if complete; `validation` texts of train are held out."""
    documents = Documents.join(parts["train"], parts["test"])
    rows, cut = documents.rows(), len(parts["train"].texts)
    halves = {"train": rows.take(np.arange(cut)), "test": rows.take(np.arange(cut, len(rows)))}
    data = sources.data_set(halves, validation, what="texts", **more)
    return tokenised(data, documents, num_words, length, word_pieces, sources.folder)


def tokenised(
    data: DataSet,
    documents: Documents,
    num_words: int,
    length: int,
    word_pieces: str | None = None,
    folder: Path | None = None,
) -> DataSet:
    """`data`, which holds rows of `documents`, with tokens (N, length) as inputs.

    With `word_pieces`, a folder in `folder`, they are those of its tokenizer.json, as a network that was trained with
    them expects, and `num_words` does not matter.
    """
    if not len(data.train):
        rule = "train must hold texts, of which the vocabulary is made"
        raise problem(data.name, rule, "none", "put its training part there too")
    texts = {split: documents.of(rows) for split, rows in data.splits.items()}
    tokeniser: Tokeniser | WordPieces
    how: dict[str, Any]
    if word_pieces is None:
        tokeniser, how = Tokeniser.from_texts(texts["train"], num_words=num_words), {"num_words": num_words}
    else:
        pieces = Path(folder or ".") / word_pieces
        tokeniser, how = WordPieces(pieces / "tokenizer.json"), {"word_pieces": pieces.name}
    numbered: dict[str, Any] = {
        split: replace(rows, inputs=tokeniser.rows(texts[split], length=length)) for split, rows in data.splits.items()
    }
    seen = set(texts["train"])
    repeated = {split: sum(text in seen for text in texts[split]) for split in ("val", "test")}
    facts = {**how, "length": length, "texts_also_in_train": repeated}
    return replace(data, **numbered, vocabulary=tokeniser.vocabulary, provenance={**data.provenance, **facts})


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
        token = self._tokens.get
        for row, text in enumerate(texts):
            known = list(filter(None, map(token, words(text))))[-length:]
            if known:
                out[row, -len(known) :] = known
        return out


class WordPieces:
    """The tokens of a tokenizer.json, which the package `tokenizers` reads; its padding must be token 0."""

    def __init__(self, file: Path) -> None:
        tokenizers = required("tokenizers", purpose="A tokenizer.json", extra="transformers")
        if not file.is_file():
            raise problem(file, "must be the tokenizer of published weights", "nothing", "copy it there")
        with reading(file, "a tokenizer.json"):
            self._tokeniser = tokenizers.Tokenizer.from_file(str(file))
        if (padding := self._tokeniser.id_to_token(0)) != "[PAD]":
            raise problem(file, "token 0 must be [PAD]", repr(padding), "choose the tokenizer of a BERT")

    @property
    def vocabulary(self) -> tuple[str, ...]:
        """The piece of each token."""
        return tuple(self._tokeniser.id_to_token(token) for token in range(self._tokeniser.get_vocab_size()))

    def rows(self, texts: Sequence[str], *, length: int) -> NDArray[np.int64]:
        """(N, length): the first `length` tokens with the special ones, zeros behind shorter texts."""
        self._tokeniser.enable_truncation(length)
        self._tokeniser.enable_padding(length=length)
        rows = [encoded.ids for encoded in self._tokeniser.encode_batch(list(texts))]
        return np.array(rows, np.int64).reshape(len(rows), length)


def words(text: str) -> list[str]:
    """Lower case, punctuation but the apostrophe (and tabs and line ends) as spaces, split at spaces."""
    return list(filter(None, text.lower().translate(_TO_SPACE).split(" ")))
