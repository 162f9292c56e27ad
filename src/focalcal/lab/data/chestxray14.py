"""ChestX-ray14 (Wang et al. 2017): grey radiographs uint8 (N, 1, size, size), any number of 14 findings per image.

The folder holds the label table (Data_Entry_2017.csv or Data_Entry_2017_v2020.csv), the official lists
train_val_list.txt and test_list.txt, and the images: in `images/`, or in the twelve archives images_001.tar.gz ...,
which are then unpacked. "No Finding" is a row without a label. Groups are patients: the official lists share none, and
validation is an eighth of the train_val patients.
"""

from __future__ import annotations

import csv
import io
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from focalcal.lab.data.archives import unpack
from focalcal.lab.data.errors import problem
from focalcal.lab.data.examples import DataSet, Examples
from focalcal.lab.data.image_cache import decode_images
from focalcal.lab.data.source_files import PART_WILL_DO, SourceFiles
from focalcal.lab.data.splits import by_group

_LISTS = {"train": "train_val_list.txt", "test": "test_list.txt"}
_TABLES = ("Data_Entry_2017_v2020.csv", "Data_Entry_2017.csv")


def load_chestxray14(folder: Path, *, allow_partial: bool = False, size: int = 256, seed: int = 1) -> DataSet:
    """The official split. The first call decodes the images, resized to `size`, into the folder."""
    sources = SourceFiles("chestxray14", folder, allow_partial=allow_partial)
    path = sources.path
    table = _table(sources)
    _unpack_images(path)
    there = {image.name: image for image in sorted(path.rglob("*.png"))}
    rows = {split: _images_of_list(sources, path / name, table, there) for split, name in _LISTS.items()}
    whole = sources.complete({split: examples.labels for split, examples in rows.items()})
    train, val = by_group(rows["train"], 1 / 8, seed=seed)
    splits: dict[str, Any] = {}
    for split, examples in (("train", train), ("val", val), ("test", rows["test"])):
        files = [there[name] for name in examples.ids]
        images = decode_images(files, size=size, mode="L", cache=path / "decoded")
        splits[split] = Examples(images, examples.labels, examples.ids, groups=examples.groups)
    note = f"official lists; validation: an eighth of the train_val patients, NumPy seed {seed}"
    provenance = sources.provenance(split=note, partial=not whole, options={"size": size})
    return DataSet("chestxray14", sources.entry.classes, **splits, provenance=provenance)


def _unpack_images(folder: Path) -> None:
    """Each of the twelve archives into a folder of its name, unless the images have been unpacked into `images`."""
    if (folder / "images").exists():
        return
    for archive in sorted(folder.glob("images_*.tar.gz")):
        target = folder / archive.name.removesuffix(".tar.gz")
        if not target.exists():
            unpack(archive, target)


def _table(sources: SourceFiles) -> dict[str, tuple[int, NDArray[np.bool_]]]:
    """Of each image's name the patient and the findings."""
    tables, findings = [sources.path / name for name in _TABLES], sources.entry.classes
    path = next((path for path in tables if path.exists()), tables[0])
    with sources.opened(path, "ChestX-ray14's label table") as content:
        rows = {}
        for row in csv.DictReader(io.StringIO(content.decode("utf-8-sig"), newline=""), strict=True):
            named = [] if row["Finding Labels"] == "No Finding" else row["Finding Labels"].split("|")
            if strangers := sorted(set(named) - set(findings)):
                raise problem(path, f"findings must be {', '.join(findings)}", strangers[0], "fetch it again")
            rows[row["Image Index"]] = (int(row["Patient ID"]), np.isin(findings, named))
        return rows


def _images_of_list(
    sources: SourceFiles,
    path: Path,
    table: dict[str, tuple[int, NDArray[np.bool_]]],
    there: dict[str, Path],
) -> Examples:
    """The list's images, without pixels yet; those whose file is missing are left out where that is allowed."""
    with sources.opened(path, "an official list of ChestX-ray14") as content:
        names = content.decode("ascii").split()
    for name in names:
        if name not in table:
            raise problem(path, "must name images of the label table", repr(name), "fetch both files again")
    missing = [name for name in names if name not in there]
    if missing and not sources.allow_partial:
        rule = f"must be there, as the {len(names)} images of {path.name}"
        remedy = f"put all twelve archives of images there, or {PART_WILL_DO}"
        raise problem(path.parent / "images" / missing[0], rule, f"{len(missing)} missing", remedy)
    kept = [name for name in names if name in there]
    labels = np.array([table[name][1] for name in kept], bool).reshape(len(kept), len(sources.entry.classes))
    patients = np.array([table[name][0] for name in kept], np.int64)
    return Examples(np.zeros((len(kept), 1), np.int64), labels, np.array(kept, np.str_), groups=patients)
