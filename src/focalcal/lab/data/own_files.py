"""Data sets from files of one's own: arrays, tables of numbers and categories, tables of texts, folders of images.

A relative path is looked for in the current folder, then in the folder of the data sets. Splits are those of a column
(or array) that says train, val or test in each row; else shares of the rows, every class divided alike, or shares of
the groups where a column names them. Whatever is fitted (means, quantiles, categories, words) is fitted to the
training rows alone. Equal rows on both sides of a division, and classes without a training row, are warned of.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from hashlib import blake2b
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from focalcal.core.checks import one_of
from focalcal.core.extras import required
from focalcal.lab.data.columns import Encoder, standardised
from focalcal.lab.data.documents import Documents, tokenised
from focalcal.lab.data.errors import DataSetWarning, problem, reading
from focalcal.lab.data.examples import SPLITS, DataSet, Examples, numbered_ids
from focalcal.lab.data.image_cache import decode_images
from focalcal.lab.data.splits import by_group, hold_out, stratified

MOST_CLASSES = 1000
_IMAGES = (".png", ".jpg", ".jpeg", ".bmp", ".webp")
_REWRITE = "it is cut off, damaged or of another format: write it again"
_FORMATS = (".csv", ".tsv", ".parquet")


def load_npz(
    folder: Path,
    *,
    path: str = "",
    label: str = "labels",
    split: str = "split",
    scale: str = "standard",
    validation: float = 0.2,
    test: float = 0.2,
    seed: int = 0,
) -> DataSet:
    """An .npz file with the arrays `inputs`, one of labels, and perhaps `ids`, `groups`, `posterior` and a split.

    `inputs` are images uint8 (N, C, H, W), tokens (N, L) padded with 0, or features (N, D), which are standardised
    ("standard"), given normal quantiles ("quantile") or left as they are ("none").
    """
    file = _file(folder, path, (".npz",))
    with reading(file, "an .npz file of arrays", _REWRITE), np.load(file, allow_pickle=False) as arrays:
        held = {name: arrays[name] for name in arrays.files}
    for name in ("inputs", label):
        if name not in held:
            raise problem(file, f"must hold an array {name!r}", ", ".join(held), "name another, or save it too")
    inputs = held["inputs"]
    features = inputs.ndim == 2 and inputs.dtype.kind == "f"
    if features and not np.isfinite(inputs).all():
        raise problem(
            file, "inputs must be finite", "NaN or infinity", "fill them in, or save a table, whose gaps are filled"
        )
    if inputs.dtype.kind in "iu" and inputs.ndim == 2:
        inputs = inputs.astype(np.int64)
        if inputs.min(initial=0) < 0:
            raise problem(file, "tokens must be >= 0", int(inputs.min()), "save features as floats")
    names, labels = _classes(file, label, held[label])
    ids = held.get("ids", numbered_ids(file.stem, len(labels)))
    rows = Examples(inputs, labels, ids, held.get("posterior"), held.get("groups"))
    splits = _divided(file, rows, held.get(split), validation, test, seed)
    if features:
        splits = standardised(splits, scale)
    words = tuple(f"token {k}" for k in range(int(inputs.max(initial=0)) + 1)) if inputs.dtype == np.int64 else None
    return _looked_at(_data_set(file, names, splits, vocabulary=words))


def load_table(
    folder: Path,
    *,
    path: str = "",
    label: str = "label",
    split: str = "",
    group: str = "",
    ids: str = "",
    drop: str | Sequence[str] = (),
    categories: str | Sequence[str] = (),
    scale: str = "standard",
    encoding: str = "codes",
    validation: float = 0.2,
    test: float = 0.2,
    seed: int = 0,
) -> DataSet:
    """A .csv, .tsv or .parquet with a column of labels; the columns that are left are numbers and categories.

    A column of numbers is one input, `scale`d ("standard", "quantile" or "none"), its missing values the median and a
    second input that marks them. Other columns, and those that `categories` names, are categories: `encoding` "codes"
    makes one input of each, 0 for what training rows do not have, which `tabular_mlp` embeds; "one_hot" as many inputs
    as it has categories, for any network. `drop` names columns that are no inputs, as `split`, `group`, `ids` are not:
    a list, or a text with commas.
    """
    drop, categories = (
        [name.strip() for name in names.split(",")] if isinstance(names, str) else names for names in (drop, categories)
    )
    file = _file(folder, path, _FORMATS)
    table, about = _read(file, label, split, group, ids)
    names, labels = _classes(file, label, about["label"])
    used = [name for name in table.column_names if name not in (label, split, group, ids, *drop)]
    for name in (*drop, *categories):
        _column(file, table, name)
    if not used:
        raise problem(file, "must have a column besides the label", ", ".join(table.column_names), "drop fewer")
    rows = _rows(file, np.zeros((len(labels), 1), np.float32), labels, about)
    parts = _divided(file, rows, about["split"], validation, test, seed)
    place = {one: at for at, one in enumerate(rows.ids.tolist())}
    taken = {part: np.array([place[one] for one in rows.ids.tolist()], int) for part, rows in parts.items()}
    encoder = Encoder.fitted(table.select(used), taken["train"], categories, scale=scale, encoding=encoding)
    inputs = encoder.encode(table)
    splits = {part: replace(examples, inputs=inputs[taken[part]]) for part, examples in parts.items()}
    return _looked_at(_data_set(file, names, splits, categories=encoder.sizes, columns=encoder.describe()))


def load_texts(
    folder: Path,
    *,
    path: str = "",
    text: str = "text",
    label: str = "label",
    split: str = "",
    group: str = "",
    ids: str = "",
    num_words: int = 20_000,
    length: int = 128,
    validation: float = 0.2,
    test: float = 0.2,
    seed: int = 0,
) -> DataSet:
    """A .csv, .tsv or .parquet with a column of texts and one of labels: tokens (N, length) of the training words."""
    file = _file(folder, path, _FORMATS)
    table, about = _read(file, label, split, group, ids)
    names, labels = _classes(file, label, about["label"])
    texts = [str(value or "") for value in _column(file, table, text).to_pylist()]
    rows = _rows(file, np.arange(len(labels))[:, None], labels, about)
    data = _data_set(file, names, _divided(file, rows, about["split"], validation, test, seed))
    return _looked_at(tokenised(data, Documents(texts, labels, rows.ids), num_words, length))


def load_images(
    folder: Path,
    *,
    path: str = "",
    size: int = 32,
    mode: str = "RGB",
    validation: float = 0.2,
    test: float = 0.2,
    seed: int = 0,
) -> DataSet:
    """A folder with one folder of images per class, or with `train`, `val` and `test` that hold those.

    Images are resized to `size` pixels a side, `mode` "RGB" or "L" (grey), and kept decoded in `.decoded` beside them.
    """
    one_of("mode", mode, ("RGB", "L"))
    root = _file(folder, path, ())
    given = [root / part for part in SPLITS if (root / part).is_dir()]
    found = [
        (image, home.name if given else None)
        for home in given or [root]
        for image in sorted(home.rglob("*"))
        if image.suffix.lower() in _IMAGES and image.parent != home
    ]
    if not found:
        raise problem(root, f"must hold folders of images ({', '.join(_IMAGES)}), one per class", "none", "add them")
    paths = [image for image, _ in found]
    names, labels = _classes(root, "folder", np.array([image.parent.name for image in paths]))
    pixels = decode_images(paths, size=size, mode=mode, cache=root / ".decoded")
    rows = Examples(pixels, labels, np.array([str(image.relative_to(root)) for image in paths]))
    parts = np.array([part for _, part in found]) if given else None
    return _looked_at(_data_set(root, names, _divided(root, rows, parts, validation, test, seed), files=[root]))


def _file(folder: Path, path: str, suffixes: tuple[str, ...]) -> Path:
    """Where it is; refuses what is not there, and other formats."""
    if not path:
        raise ValueError("path must name the file or folder of the data, got none; add path to data_options")
    place = Path(path) if Path(path).exists() else Path(folder) / path
    if not place.exists():
        raise problem(path, "must be there", f"nothing of that name here or in {folder}", "correct data_options.path")
    if suffixes and place.suffix.lower() not in suffixes:
        raise problem(place, f"must be a file {', '.join(suffixes)}", place.suffix or "a folder", "convert it")
    return place


def read_table(file: Path, texts: Iterable[str] = ()) -> Any:
    """The Arrow table of a .parquet, .csv or .tsv file; columns of `texts` stay texts where all look like numbers."""
    with reading(file, "a table", _REWRITE):
        if file.suffix.lower() == ".parquet":
            return required("pyarrow.parquet", purpose="Reading a table").read_table(file)
        arrow = required("pyarrow.csv", purpose="Reading a table")
        parse = arrow.ParseOptions(delimiter="\t" if file.suffix.lower() == ".tsv" else ",")
        convert = arrow.ConvertOptions(column_types=dict.fromkeys(texts, "string"))
        return arrow.read_csv(file, parse_options=parse, convert_options=convert)


def _read(file: Path, label: str, split: str, group: str, ids: str) -> tuple[Any, dict[str, NDArray[Any] | None]]:
    """The table, and the columns that say something about its rows, None for those without a name."""
    table = read_table(file)
    if twice := [name for name in table.column_names if table.column_names.count(name) > 1]:
        raise problem(file, "must have columns of different names", f"{twice[0]!r} twice", "rename one")
    if not table.num_rows:
        raise problem(file, "must have rows", "none", "add them")
    about = {"label": label, "split": split, "group": group, "ids": ids}
    columns = {what: np.array(_column(file, table, name).to_pylist()) if name else None for what, name in about.items()}
    return table, columns


def _column(file: Path, table: Any, name: str) -> Any:
    if name not in table.column_names:
        raise problem(file, f"must have a column {name!r}", ", ".join(table.column_names), "name another")
    return table.column(name)


def _rows(file: Path, inputs: NDArray[Any], labels: NDArray[np.int64], about: dict[str, Any]) -> Examples:
    ids = numbered_ids(file.stem, len(labels)) if about["ids"] is None else about["ids"]
    groups = None if about["group"] is None else about["group"].astype(str)
    return Examples(inputs, labels, ids if ids.dtype.kind in "iu" else ids.astype(str), groups=groups)


def _classes(file: Path, name: str, values: Any) -> tuple[tuple[str, ...], NDArray[np.int64]]:
    """The classes in their order, that of numbers or of the alphabet, and the class of each row."""
    values = np.asarray(values)
    given = values.tolist()
    missing = np.array([value is None or value != value or not str(value).strip() for value in given], bool)
    if missing.any():
        rule, remedy = f"{name!r} must have a label in every row", "leave such rows out"
        raise problem(file, rule, f"none in row {int(missing.argmax())}", remedy)
    if values.dtype.kind == "f" and (values == values.round()).all():
        values = values.astype(np.int64)
    kept, labels = np.unique(values if values.dtype.kind in "iub" else values.astype(str), return_inverse=True)
    if not 2 <= len(kept) <= MOST_CLASSES or values.dtype.kind == "f":
        kind = "fractions" if values.dtype.kind == "f" else f"{len(kept)} different values"
        raise problem(file, f"{name!r} must hold 2 to {MOST_CLASSES} classes", kind, "name the column of the classes")
    return tuple(map(str, kept.tolist())), labels.astype(np.int64)


def _divided(
    file: Path, rows: Examples, parts: NDArray[Any] | None, validation: float, test: float, seed: int
) -> dict[str, Examples]:
    """Train, val and test: as `parts` says, and shares of what it does not say."""
    if parts is None:
        rest, tested = _held_out(file, rows, test, seed)
    else:
        said = np.array([str(part) for part in parts])
        if len(strangers := np.setdiff1d(said, SPLITS)):
            raise problem(file, f"a split must be {', '.join(SPLITS)}", repr(str(strangers[0])), "rename it")
        tested, rest = rows.take(said == "test"), rows.take(said == "train")
        if (said == "val").any():
            return {"train": rest, "val": rows.take(said == "val"), "test": tested}
    train, val = _held_out(file, rest, validation / (1 - test) if parts is None else validation, seed + 1)
    return {"train": train, "val": val, "test": tested}


def _held_out(file: Path, rows: Examples, share: float, seed: int) -> tuple[Examples, Examples]:
    """Every class alike where each has two rows and there is room for all; groups whole."""
    if not 0 <= share < 1:
        raise ValueError(f"validation and test must be shares of the rows that leave some to train on, got {share:g}")
    if not share:
        return rows, rows.none()
    if rows.groups is not None:
        rest, held_out = by_group(rows, share, seed=seed)
        if not (len(rest) and len(held_out)):
            rule = "there must be groups for each of train, val and test"
            remedy = "say the split in a column, or hold out larger shares (validation, test)"
            raise problem(file, rule, f"a share of {share:g} of {len(np.unique(rows.groups))}", remedy)
        return rest, held_out
    sizes = np.bincount(rows.labels)
    if sizes[sizes > 0].min() >= 2 and share * len(rows) >= (sizes > 0).sum() <= (1 - share) * len(rows):
        return stratified(rows, share, seed=seed)
    return hold_out(rows, round(share * len(rows)), seed=seed)


def _data_set(
    file: Path,
    names: tuple[str, ...],
    splits: dict[str, Examples],
    *,
    files: Iterable[Path] | None = None,
    vocabulary: tuple[str, ...] | None = None,
    categories: tuple[int, ...] = (),
    **facts: Any,
) -> DataSet:
    return DataSet(
        file.stem,
        names,
        **splits,
        vocabulary=vocabulary,
        categories=categories,
        provenance={"files": [file.name], "partial": False, **facts},
        files=list(files or [file]),
    )


def _digests(rows: Examples) -> Iterator[bytes]:
    """One per row, of its inputs: as sets of pixels they would take the data's memory once more."""
    return (blake2b(row.tobytes(), digest_size=16).digest() for row in rows.inputs)


def _looked_at(data: DataSet) -> DataSet:
    """The data; warns of what a reader of their results would want to know."""
    trained = set(_digests(data.train))
    for split, rows in {"val": data.val, "test": data.test}.items():
        if known := sum(digest in trained for digest in _digests(rows)):
            warnings.warn(
                f"{data.name}: {known} of {len(rows)} rows of {split} have the inputs of a training row; if they are "
                "the same cases, name the column that tells so as group, or remove them",
                DataSetWarning,
                stacklevel=3,
            )
        if strange := np.setdiff1d(rows.labels, data.train.labels).tolist():
            warnings.warn(
                f"{data.name}: no training row has the class {', '.join(data.classes[at] for at in strange)}, of "
                f"which {split} has {int(np.isin(rows.labels, strange).sum())} rows; divide the rows otherwise, or "
                "leave it out",
                DataSetWarning,
                stacklevel=3,
            )
    return data
