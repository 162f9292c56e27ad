"""Texts as rows of word numbers, with the rules of Keras's `Tokenizer` and `pad_sequences`."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

_TO_SPACE = str.maketrans(dict.fromkeys('!"#$%&()*+,-./:;<=>?@[\\]^_`{|}~\t\n', " "))


def words(text: str) -> list[str]:
    """Lower case, punctuation but the apostrophe (and tabs and line ends) as spaces, split at spaces."""
    return [word for word in text.lower().translate(_TO_SPACE).split(" ") if word]


@dataclass(frozen=True)
class Tokeniser:
    """Numbers for the most frequent words: `vocabulary[i]` is the word of token i; token 0 is padding, the word ""."""

    vocabulary: tuple[str, ...]
    _tokens: dict[str, int] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        """Invert the vocabulary."""
        tokens = {word: token for token, word in enumerate(self.vocabulary) if token}
        object.__setattr__(self, "_tokens", tokens)

    @classmethod
    def fitted(cls, texts: Iterable[str], *, num_words: int = 20_000) -> Tokeniser:
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
