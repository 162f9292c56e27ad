"""20 Newsgroups (Lang 1995): posts as tokens int64 (N, length), 20 classes, from folders with one file per post.

`newsgroups` is the "bydate" release, 11,314 / 7,532, without duplicates. `newsgroups_19997` is the original one, in
the order of sorted names, shuffled by NumPy's seed 1 and cut into 15,098 / 900 / 3,999 as in the calibration
literature; it holds cross-posts, so that some test posts are in the training set under another group (the
provenance counts identical texts).
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from focalcal.lab.data.documents import Documents, official_texts, tokenised
from focalcal.lab.data.errors import problem
from focalcal.lab.data.examples import DataSet
from focalcal.lab.data.source_files import SourceFiles
from focalcal.lab.data.splits import shuffled

NEWSGROUPS = (
    *("alt.atheism", "comp.graphics", "comp.os.ms-windows.misc", "comp.sys.ibm.pc.hardware", "comp.sys.mac.hardware"),
    *("comp.windows.x", "misc.forsale", "rec.autos", "rec.motorcycles", "rec.sport.baseball", "rec.sport.hockey"),
    *("sci.crypt", "sci.electronics", "sci.med", "sci.space", "soc.religion.christian", "talk.politics.guns"),
    *("talk.politics.mideast", "talk.politics.misc", "talk.religion.misc"),
)
_BYDATE = {
    "train": (480, 584, 591, 590, 578, 593, 585, 594, 598, 597, 600, 595, 591, 594, 593, 599, 546, 564, 465, 377),
    "test": (319, 389, 394, 392, 385, 395, 390, 396, 398, 397, 399, 396, 393, 396, 394, 398, 364, 376, 310, 251),
}
_ORIGINAL = tuple(997 if group == "soc.religion.christian" else 1000 for group in NEWSGROUPS)
_TRAIN, _VAL = 15_098, 900


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
    """The bydate release; `validation` of the training posts are held out."""
    sources = SourceFiles("newsgroups", folder, allow_partial=allow_partial)
    parts = {split: _read(sources, sources.path / f"20news-bydate-{split}", cut_header) for split in _BYDATE}
    told: dict[str, Any] = {"word_pieces": word_pieces, "official": "official, by date", "cut_header": cut_header}
    return official_texts(sources, NEWSGROUPS, parts, _BYDATE, validation, num_words=num_words, length=length, **told)


def load_newsgroups_19997(
    folder: Path,
    *,
    allow_partial: bool = False,
    cut_header: bool = True,
    num_words: int = 20_000,
    length: int = 1000,
    word_pieces: str | None = None,
) -> DataSet:
    """The original release with the split of the literature."""
    sources = SourceFiles("newsgroups_19997", folder, allow_partial=allow_partial)
    documents = _read(sources, sources.path, cut_header)
    whole = sources.complete({"all": documents.labels}, {"all": _ORIGINAL})
    rows = documents.rows()
    order, share = shuffled(len(rows), 1), len(rows) / sum(_ORIGINAL)
    first, second = round(_TRAIN * share), round((_TRAIN + _VAL) * share)
    train, val, test = (rows.take(part) for part in np.split(order, [first, second]))
    note = "shuffle with NumPy seed 1, cut into 15,098 / 900 / 3,999 (in these shares where partial)"
    provenance = sources.provenance(split=note, partial=not whole, cut_header=cut_header)
    data = DataSet("newsgroups_19997", NEWSGROUPS, train, val, test, provenance=provenance)
    pieces = None if word_pieces is None else folder / word_pieces
    return tokenised(data, documents, num_words=num_words, length=length, word_pieces=pieces)


def _read(sources: SourceFiles, folder: Path, cut_header: bool) -> Documents:
    """The posts below `folder`, one folder per group, in the order of names; an id is GROUP/NUMBER, as released."""
    strangers = sorted(path.name for path in folder.glob("*") if path.is_dir() and path.name not in NEWSGROUPS)
    if strangers:
        raise problem(folder, "must hold the 20 newsgroups only", strangers[0], "move it elsewhere")
    paths = [
        path
        for group in NEWSGROUPS
        if (folder / group).is_dir()
        for path in sorted((folder / group).iterdir())
        if path.name.isdigit()
    ]
    contents = sources.read_many(paths, "a post", under=folder)
    texts = [_text(content, cut_header) for content in contents]
    labels = np.array([NEWSGROUPS.index(path.parent.name) for path in paths], np.int64)
    ids = np.array([f"{path.parent.name}/{path.name}" for path in paths], np.str_)
    return Documents(texts, labels, ids)


def _text(content: bytes, cut_header: bool) -> str:
    text = content.decode("latin-1").replace("\r\n", "\n").replace("\r", "\n")
    end = text.find("\n\n")
    return text[end:] if cut_header and end > 0 else text
