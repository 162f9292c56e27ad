"""Small folders in the official layouts, one per data set, for tests without the real files."""

import csv
import gzip
import pickle
import struct
from pathlib import Path

import numpy as np
from PIL import Image
from scipy.io import savemat

from focalcal.lab.data import CATALOGUE

GROUPS_IN_PART = CATALOGUE["newsgroups"].classes[:4]
FINSEN_CLASSES = CATALOGUE["finsen"].classes


def pixels(count, *shape, seed=0):
    return np.random.default_rng(seed).integers(256, size=(count, *shape), dtype=np.uint8)


def cifar_batch(path, count, classes, key, seed=0):
    path.parent.mkdir(parents=True, exist_ok=True)
    labels = [k % classes for k in range(count)]
    path.write_bytes(pickle.dumps({b"data": pixels(count, 3072, seed=seed), key: labels}, protocol=2))


def cifar10(folder):
    for k in range(1, 6):
        cifar_batch(folder / "cifar-10-batches-py" / f"data_batch_{k}", 20, 10, b"labels", seed=k)
    cifar_batch(folder / "cifar-10-batches-py" / "test_batch", 20, 10, b"labels", seed=6)


def cifar100(folder):
    for seed, (name, count) in enumerate((("train", 200), ("test", 100))):
        cifar_batch(folder / "cifar-100-python" / name, count, 100, b"fine_labels", seed=seed)
    meta = {b"fine_label_names": [f"thing {k}".encode() for k in range(100)]}
    (folder / "cifar-100-python" / "meta").write_bytes(pickle.dumps(meta, protocol=2))


def cifar10c(folder):
    target = folder / "CIFAR-10-C"
    target.mkdir(parents=True)
    np.save(target / "gaussian_noise.npy", pixels(100, 32, 32, 3))
    np.save(target / "labels.npy", np.tile(np.arange(20) % 10, 5).astype(np.uint8))


def svhn(folder):
    (folder / "svhn").mkdir(parents=True)
    for split, count in (("train", 40), ("test", 20)):
        digits = (np.arange(count) % 10 + 1).astype(np.uint8)[:, None]
        savemat(folder / "svhn" / f"{split}_32x32.mat", {"X": pixels(32, 32, 3, count), "y": digits})


def idx(path, array, *, zipped):
    path.parent.mkdir(parents=True, exist_ok=True)
    content = struct.pack(f">HBB{array.ndim}I", 0, 8, array.ndim, *array.shape) + array.tobytes()
    if zipped:
        path = path.with_name(f"{path.name}.gz")
        content = gzip.compress(content)
    path.write_bytes(content)
    return path


def fashion_mnist(folder):
    for prefix, count in (("train", 40), ("t10k", 20)):
        target = folder / "fashion-mnist"
        idx(target / f"{prefix}-images-idx3-ubyte", pixels(count, 28, 28, seed=count), zipped=prefix == "train")
        idx(target / f"{prefix}-labels-idx1-ubyte", (np.arange(count) % 10).astype(np.uint8), zipped=prefix != "train")


def tiny_imagenet(folder):
    target = folder / "tiny-imagenet-200"
    synsets = [f"n{k:08d}" for k in range(200)]
    (target / "val" / "images").mkdir(parents=True)
    (target / "wnids.txt").write_text("\n".join(synsets))
    (target / "words.txt").write_text("".join(f"{synset}\tname of {synset}\n" for synset in synsets))
    lines = []
    for k, synset in enumerate(synsets[:5]):
        images = target / "train" / synset / "images"
        images.mkdir(parents=True)
        for number in range(4):
            shape = (64, 64, 3) if number else (64, 64)  # some are grey, as some are in the archive
            Image.fromarray(pixels(1, *shape, seed=100 + 10 * k + number)[0]).save(images / f"{synset}_{number}.JPEG")
        Image.fromarray(pixels(1, 64, 64, 3, seed=k)[0]).save(target / "val" / "images" / f"val_{k}.JPEG")
        lines.append(f"val_{k}.JPEG\t{synset}\t0\t0\t62\t62\n")
    (target / "val" / "val_annotations.txt").write_text("".join(lines))


def posts(folder, per_group, start):
    for group in GROUPS_IN_PART:
        (folder / group).mkdir(parents=True)
        for number in range(per_group):
            body = f"From: someone\nSubject: {group}\n\nA post about {group}, number {start + number}.\n"
            (folder / group / str(start + number)).write_bytes(body.encode("latin-1"))


def newsgroups(folder):
    posts(folder / "20news-bydate" / "20news-bydate-train", 6, 100)
    posts(folder / "20news-bydate" / "20news-bydate-test", 3, 200)


def newsgroups_19997(folder):
    posts(folder / "20_newsgroups", 10, 100)


def written_csv(path, rows):
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w", newline="", encoding="utf-8") as handle:
        csv.writer(handle, quoting=csv.QUOTE_ALL).writerows(rows)


def ag_news(folder):
    for split, count in (("train", 20), ("test", 8)):
        rows = [[k % 4 + 1, f"{split} title {k}", f'a "story" of {k}'] for k in range(count)]
        written_csv(folder / "ag_news_csv" / f"{split}.csv", rows)


def finsen(folder):
    rows = [["Title", "Tag", "Content", "Category"]]
    for k in range(120):
        tag, category = f"Tag of {FINSEN_CLASSES[k % 12]}", FINSEN_CLASSES[k % 12]
        rows.append([f"News {k}", tag, f"News {k}United States\xa0{tag}The {tag.lower()} rose by {k}.", f"{category} "])
    written_csv(folder / "finsen" / "FinSen_US_Categorized.csv", rows)


def chestxray14(folder):
    target = folder / "chestxray14"
    (target / "images").mkdir(parents=True)
    findings = ("No Finding", "Hernia", "Mass|Nodule", "Atelectasis")
    rows, names = [["Image Index", "Finding Labels", "Follow-up #", "Patient ID"]], []
    for patient in range(1, 21):
        for visit in range(2):
            names.append(f"{patient:08d}_{visit:03d}.png")
            rows.append([names[-1], findings[(patient + visit) % 4], visit, patient])
            Image.fromarray(pixels(1, 40, 40, seed=2 * patient + visit)[0]).save(target / "images" / names[-1])
    written_csv(target / "Data_Entry_2017.csv", rows)
    (target / "train_val_list.txt").write_text("\n".join(names[:32]))
    (target / "test_list.txt").write_text("\n".join(names[32:]))


def nothing(folder: Path):
    """For a data set that needs no file."""


# What makes each small folder, and how many examples all splits together have: there, or in a set that needs no file.
_FOLDERS = {
    "digits": (nothing, 1797),
    "cifar10": (cifar10, 120),
    "cifar100": (cifar100, 300),
    "cifar10c": (cifar10c, 20),
    "svhn": (svhn, 60),
    "fashion_mnist": (fashion_mnist, 60),
    "tiny_imagenet": (tiny_imagenet, 25),
    "newsgroups": (newsgroups, 36),
    "newsgroups_19997": (newsgroups_19997, 40),
    "ag_news": (ag_news, 28),
    "finsen": (finsen, 120),
    "chestxray14": (chestxray14, 40),
    "gaussian_mixture": (nothing, 22_000),
    "discrete": (nothing, 44_000),
    "teacher": (nothing, 1797),
}
FABRICATED = {name: make for name, (make, _) in _FOLDERS.items()}
EXAMPLES = {name: count for name, (_, count) in _FOLDERS.items()}
