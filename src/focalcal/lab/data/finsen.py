"""FinSen: news about the US economy as tokens int64 (N, length), 12 categories (columns Title, Tag, Content, Category).

The text gives the category away. Category is a function of Tag (no tag has two categories), Content begins with the
title and the tag without a space between them ("...in Q4United States Corporate ProfitsCorporate profits in..."), and
may repeat the tag. Looking the tag up is near-perfect classification without reading any news, so scores on
the file as it is measure the leak. `strip_tags=True` removes the leading title and tag, and the tag wherever it is.
"""

from __future__ import annotations

import csv
import io
import re
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from focalcal.lab.data.documents import Documents, tokenised
from focalcal.lab.data.errors import problem
from focalcal.lab.data.examples import DataSet, numbered_ids
from focalcal.lab.data.source_files import PART_WILL_DO, SourceFiles
from focalcal.lab.data.splits import stratified, validation_split

FINSEN_CLASSES = (
    *("Consumer and Services", "Corporate Finance", "Credit and Lending", "Economic Health", "Government and Policy"),
    *("Housing Market", "Inflation and Prices", "Labor Market Conditions Index", "Market Indicators", "Other"),
    *("Production and Utilization", "Trade and Commerce"),
)
_ROWS = 15_534  # of the whole file, by its published split of 13,203 / 2,331
_COLUMNS = ["Title", "Tag", "Content", "Category"]


@dataclass(frozen=True)
class Item:
    """A row of the file."""

    title: str
    tag: str
    content: str
    category: str

    def stripped(self) -> str:
        """The content without the title and tag that it begins with, and without the tag anywhere."""
        text = self.content.strip().removeprefix(self.title.strip()).strip()
        text = text.removeprefix("United States").strip()
        tag = r"\s+".join(map(re.escape, self.tag.split()))
        return re.sub(tag, " ", text, flags=re.IGNORECASE) if tag else text


def load_finsen(
    folder: Path,
    *,
    allow_partial: bool = False,
    strip_tags: bool = False,
    num_words: int = 20_000,
    length: int = 256,
    word_pieces: str | None = None,
    validation: int = 0,
) -> DataSet:
    """85 / 15 per cent, stratified, seed 42; `validation` of the training items are held out."""
    sources = SourceFiles("finsen", folder, allow_partial=allow_partial)
    items = finsen_items(sources)
    whole = len(items) >= _ROWS
    if not whole and not allow_partial:
        raise problem("finsen", f"must hold {_ROWS} items", len(items), f"take the whole file, or {PART_WILL_DO}")
    texts = [item.stripped() if strip_tags else item.content for item in items]
    labels = np.array([FINSEN_CLASSES.index(item.category) for item in items], np.int64)
    documents = Documents(texts, labels, numbered_ids("row", len(items)))
    rest, test = stratified(documents.rows(), 0.15, seed=42)
    train, val = validation_split(rest, validation, whole=whole)
    note = f"stratified 85 / 15, seed 42; validation: the first {len(val)} of a shuffle, NumPy seed 1"
    leak = "title and tag removed" if strip_tags else "the text holds its tag, which has one category"
    provenance = sources.provenance(split=note, partial=not whole, leak=leak)
    data = DataSet("finsen", FINSEN_CLASSES, train, val, test, provenance=provenance)
    pieces = None if word_pieces is None else folder / word_pieces
    return tokenised(data, documents, num_words=num_words, length=length, word_pieces=pieces)


def finsen_items(sources: SourceFiles) -> list[Item]:
    """The rows of the file, in its order."""
    path = sources.path / "FinSen_US_Categorized.csv"
    with sources.opened(path, "FinSen's .csv file") as content:
        table = csv.DictReader(io.StringIO(content.decode("utf-8-sig"), newline=""), strict=True)
        if table.fieldnames is None or not set(_COLUMNS) <= set(table.fieldnames):
            raise problem(path, f"must have the columns {_COLUMNS}", table.fieldnames, "fetch it again")
        items = []
        for number, row in enumerate(table):
            item = Item(row["Title"] or "", row["Tag"] or "", row["Content"] or "", (row["Category"] or "").strip())
            if item.category not in FINSEN_CLASSES:
                rule = f"Category of record {number + 1} must be one of {', '.join(FINSEN_CLASSES)}"
                raise problem(path, rule, repr(item.category), "fetch it again")
            items.append(item)
        return items
