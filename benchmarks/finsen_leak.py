"""How much of FinSen's category does its text give away?

    FOCALCAL_DATA=FOLDER python benchmarks/finsen_leak.py

A category is a function of the tag, and a text begins with its tag. So a table from tags to categories classifies the
texts without reading any news: it takes the tag that comes first in a text, the longest of those that begin there, and
names its category; a text without any tag gets the commonest category. What it gets right is the leak.

The second table is how hard the task is once read: logistic regression on TF-IDF of the words, fitted on the training
split and scored on the test split.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence

import numpy as np
from scipy.sparse import csr_matrix

from focalcal.lab.data import DataSet, data_folder, load_data
from focalcal.lab.data.source_files import SourceFiles
from focalcal.lab.data.text_sets import Item, finsen_items


def looked_up(items: Sequence[Item]) -> dict[str, float]:
    """The shares that are right: by the table, texts as they are and stripped, and by the commonest category alone."""
    category = {item.tag.lower(): item.category for item in items}
    commonest, often = Counter(item.category for item in items).most_common(1)[0]
    any_tag = re.compile("|".join(map(re.escape, sorted(filter(None, category), key=len, reverse=True))))

    def right(item: Item, text: str) -> bool:
        found = any_tag.search(text.lower())
        return (category[found.group()] if found else commonest) == item.category

    return {
        "as it is": sum(right(item, item.content) for item in items) / len(items),
        "stripped": sum(right(item, item.stripped()) for item in items) / len(items),
        "commonest": often / len(items),
    }


def read(data: DataSet) -> float:
    """The share of the test split that a linear classifier of the words gets right."""
    from sklearn.feature_extraction.text import TfidfTransformer
    from sklearn.linear_model import LogisticRegression
    from sklearn.pipeline import make_pipeline

    assert data.vocabulary is not None
    model = make_pipeline(TfidfTransformer(), LogisticRegression(C=10, max_iter=300))
    words = {split: _counted(one.inputs, len(data.vocabulary)) for split, one in data.splits.items() if len(one)}
    model.fit(words["train"], data.train.labels)
    return float(model.score(words["test"], data.test.labels))


def _counted(tokens: np.ndarray, words: int) -> csr_matrix:
    """(N, words): how often each word occurs; padding is not counted."""
    rows, columns = np.nonzero(tokens)
    ones = np.ones(len(rows))
    return csr_matrix((ones, (rows, tokens[rows, columns])), shape=(len(tokens), words))


def main() -> None:
    """Print both tables."""
    folder = data_folder()
    items = finsen_items(SourceFiles("finsen", folder))
    pairs = {(item.tag, item.category) for item in items}
    print(f"{len(items)} items, {len({tag for tag, _ in pairs})} tags, {len(pairs)} pairs of tag and category\n")
    shares = looked_up(items)
    print("| right, in % | as it is | strip_tags=True |\n|---|---|---|")
    print(f"| the first tag, looked up | {100 * shares['as it is']:.1f} | {100 * shares['stripped']:.1f} |")
    print(f"| the commonest category, always | {100 * shares['commonest']:.1f} | {100 * shares['commonest']:.1f} |")
    scores = [read(load_data("finsen", folder, allow_partial=True, strip_tags=strip)) for strip in (False, True)]
    print(f"| the words, test split | {100 * scores[0]:.1f} | {100 * scores[1]:.1f} |")


if __name__ == "__main__":
    main()
