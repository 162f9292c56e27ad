"""Published texts: AG News, 20 Newsgroups in two releases, and FinSen, as tokens int64 (N, length).

Of all of them `num_words` and `length` are those of `documents.Tokeniser`; `word_pieces` names a folder beside the data
whose tokenizer.json is taken in its place.
"""

from __future__ import annotations

import csv
import io
import re
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from focalcal.lab.data.documents import Documents, official_texts, tokenised
from focalcal.lab.data.errors import problem
from focalcal.lab.data.examples import DataSet, numbered_ids
from focalcal.lab.data.source_files import PART_WILL_DO, SourceFiles
from focalcal.lab.data.splits import shuffled, stratified, validation_split

_FINSEN_ROWS = 15_534  # of the whole file, by its published split of 13,203 / 2,331
_FINSEN_COLUMNS = ["Title", "Tag", "Content", "Category"]
_TRAIN, _VAL = 15_098, 900  # of 19,997 posts


def load_ag_news(
    folder: Path,
    *,
    allow_partial: bool = False,
    num_words: int = 20_000,
    length: int = 128,
    word_pieces: str | None = None,
    validation: int = 0,
) -> DataSet:
    """AG News (Zhang, Zhao and LeCun 2015), title and description: the official 120,000 / 7,600, 4 classes.

    `train.csv` and `test.csv` have no header: class 1 .. 4, title, description. `validation` of train are held out.
    """
    sources = SourceFiles("ag_news", folder, allow_partial=allow_partial)
    parts = {split: _news(sources, split) for split in ("train", "test")}
    return official_texts(sources, parts, validation, num_words, length, word_pieces)


def _news(sources: SourceFiles, split: str) -> Documents:
    """Title and description of each line of the split's file; none in a part of the data set that lacks the file."""
    path = sources.path / f"{split}.csv"
    texts: list[str] = []
    labels: list[int] = []
    if path.exists():
        with sources.opened(path, "AG News's .csv file") as content:
            for number, fields in enumerate(csv.reader(io.StringIO(content.decode("utf-8"), newline=""), strict=True)):
                if len(fields) != 3 or fields[0] not in ("1", "2", "3", "4"):
                    rule = f"record {number + 1} must be a class from 1 to 4, a title and a description"
                    raise problem(path, rule, repr(fields)[:80], "fetch it again")
                labels.append(int(fields[0]) - 1)
                texts.append(f"{fields[1]} {fields[2]}")
    return Documents(texts, np.array(labels, np.int64), numbered_ids(split, len(texts)))


def load_newsgroups(
    folder: Path,
    *,
    allow_partial: bool = False,
    cut_header: bool = True,
    num_words: int = 20_000,
    length: int = 1000,
    word_pieces: str | None = None,
    validation: int = 900,
) -> DataSet:
    """20 Newsgroups (Lang 1995), the "bydate" release, 11,314 / 7,532, without duplicates.

    `validation` of the training posts are held out.
    """
    sources = SourceFiles("newsgroups", folder, allow_partial=allow_partial)
    parts = {split: _posts(sources, f"20news-bydate-{split}", cut_header) for split in ("train", "test")}
    told = {"official": "official, by date", "cut_header": cut_header}
    return official_texts(sources, parts, validation, num_words, length, word_pieces, **told)


def load_newsgroups_19997(
    folder: Path,
    *,
    allow_partial: bool = False,
    cut_header: bool = True,
    num_words: int = 20_000,
    length: int = 1000,
    word_pieces: str | None = None,
) -> DataSet:
    """20 Newsgroups, the original release with the split of the calibration literature.

    In the order of sorted names, shuffled by NumPy's seed 1 and cut into 15,098 / 900 / 3,999. It holds cross-posts, so
    that some test posts are in the training set under another group (the provenance counts identical texts).
    """
    sources = SourceFiles("newsgroups_19997", folder, allow_partial=allow_partial)
    documents = _posts(sources, ".", cut_header)
    whole = sources.complete({"all": documents.labels})
    rows = documents.rows()
    order, share = shuffled(len(rows), 1), len(rows) / 19_997
    first, second = round(_TRAIN * share), round((_TRAIN + _VAL) * share)
    train, val, test = (rows.take(part) for part in np.split(order, [first, second]))
    note = "shuffle with NumPy seed 1, cut into 15,098 / 900 / 3,999 (in these shares where partial)"
    provenance = sources.provenance(split=note, partial=not whole, cut_header=cut_header)
    data = DataSet(sources.name, sources.entry.classes, train, val, test, provenance=provenance)
    return tokenised(data, documents, num_words, length, word_pieces, folder)


def _posts(sources: SourceFiles, within: str, cut_header: bool) -> Documents:
    """The posts, a file each in one folder per group, in the order of names; an id is GROUP/NUMBER, as released."""
    folder, groups = sources.path / within, sources.entry.classes
    if strangers := sorted(path.name for path in folder.glob("*") if path.is_dir() and path.name not in groups):
        raise problem(folder, "must hold the 20 newsgroups only", strangers[0], "move it elsewhere")
    paths = [
        path
        for group in groups
        if (folder / group).is_dir()
        for path in sorted((folder / group).iterdir())
        if path.name.isdigit()
    ]
    contents = sources.read_many(paths, "a post", under=folder)
    texts = [_text(content, cut_header) for content in contents]
    labels = np.array([groups.index(path.parent.name) for path in paths], np.int64)
    return Documents(texts, labels, np.array([f"{path.parent.name}/{path.name}" for path in paths], np.str_))


def _text(content: bytes, cut_header: bool) -> str:
    text = content.decode("latin-1").replace("\r\n", "\n").replace("\r", "\n")
    end = text.find("\n\n")
    return text[end:] if cut_header and end > 0 else text


@dataclass(frozen=True)
class Item:
    """A row of FinSen's file."""

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
    """FinSen, news about the US economy in 12 categories: 85 / 15 per cent, stratified, seed 42.

    The text gives the category away. Category is a function of Tag (no tag has two categories), Content begins with the
    title and the tag without a space between them ("...in Q4United States Corporate ProfitsCorporate profits in..."),
    and may repeat the tag. Looking the tag up is near-perfect classification without reading any news, so scores on the
    file as it is measure the leak. `strip_tags=True` removes the leading title and tag, and the tag wherever it is.
    `validation` of the training items are held out.
    """
    sources = SourceFiles("finsen", folder, allow_partial=allow_partial)
    items = finsen_items(sources)
    whole = len(items) >= _FINSEN_ROWS
    if not whole and not allow_partial:
        remedy = f"take the whole file, or {PART_WILL_DO}"
        raise problem("finsen", f"must hold {_FINSEN_ROWS} items", len(items), remedy)
    texts = [item.stripped() if strip_tags else item.content for item in items]
    labels = np.array([sources.entry.classes.index(item.category) for item in items], np.int64)
    documents = Documents(texts, labels, numbered_ids("row", len(items)))
    rest, test = stratified(documents.rows(), 0.15, seed=42)
    train, val = validation_split(rest, validation, whole=whole)
    note = f"stratified 85 / 15, seed 42; validation: the first {len(val)} of a shuffle, NumPy seed 1"
    leak = "title and tag removed" if strip_tags else "the text holds its tag, which has one category"
    provenance = sources.provenance(split=note, partial=not whole, leak=leak)
    data = DataSet("finsen", sources.entry.classes, train, val, test, provenance=provenance)
    return tokenised(data, documents, num_words, length, word_pieces, folder)


def finsen_items(sources: SourceFiles) -> list[Item]:
    """The rows of the file, in its order."""
    path = sources.path / "FinSen_US_Categorized.csv"
    with sources.opened(path, "FinSen's .csv file") as content:
        table = csv.DictReader(io.StringIO(content.decode("utf-8-sig"), newline=""), strict=True)
        if table.fieldnames is None or not set(_FINSEN_COLUMNS) <= set(table.fieldnames):
            raise problem(path, f"must have the columns {_FINSEN_COLUMNS}", table.fieldnames, "fetch it again")
        items = []
        for number, row in enumerate(table):
            item = Item(row["Title"] or "", row["Tag"] or "", row["Content"] or "", (row["Category"] or "").strip())
            if item.category not in sources.entry.classes:
                rule = f"Category of record {number + 1} must be one of {', '.join(sources.entry.classes)}"
                raise problem(path, rule, repr(item.category), "fetch it again")
            items.append(item)
        return items
