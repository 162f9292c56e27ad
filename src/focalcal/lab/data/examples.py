"""What every data set is: examples, in splits that share none."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from focalcal.core.checks import off_simplex

SPLITS = ("train", "val", "test")


@dataclass(frozen=True, eq=False)
class Examples:
    """Inputs, labels and the identity of each example; NumPy arrays, which `torch.from_numpy` takes without a copy.

    Args:
        inputs: images uint8 (N, C, H, W), tokens int64 (N, L) padded with 0, or features float (N, D).
        labels: int64 (N,), the index of the class; bool (N, L) where an example has any number of L labels.
        ids: (N,) str or int, each once: the same example has the same id wherever it occurs.
        posterior: float64 (N, K), the true class probabilities eta(x), where they are known.
        groups: (N,) str or int, what must not be divided between splits: the patient.

    >>> rows = Examples(np.eye(3), labels=np.array([0, 1, 1]), ids=np.arange(3))
    >>> rows.take(rows.labels == 1).ids
    array([1, 2])
    """

    inputs: NDArray[Any]
    labels: NDArray[Any]
    ids: NDArray[Any]
    posterior: NDArray[Any] | None = None
    groups: NDArray[Any] | None = None

    def __post_init__(self) -> None:
        """Check every field, once."""
        rows = len(self.inputs)
        for name in ("labels", "ids", "posterior", "groups"):
            values = getattr(self, name)
            if values is not None and len(values) != rows:
                raise ValueError(f"{name} must have one entry per example, {rows}, got {len(values)}")
        _check_inputs(self.inputs)
        if (self.labels.dtype.name, self.labels.ndim) not in (("int64", 1), ("bool", 2)):
            raise ValueError(
                "labels must be int64 (N,), or bool (N, labels) for several per row, "
                f"got {self.labels.dtype} {self.labels.shape}; convert them"
            )
        for name in ("ids", "groups"):
            values = getattr(self, name)
            if values is not None and (values.ndim != 1 or values.dtype.kind not in "iuU"):
                raise ValueError(f"{name} must be (N,) of int or str, got {values.dtype} {values.shape}")
        unique, first = np.unique(self.ids, return_index=True)
        if len(unique) < rows:
            again = np.setdiff1d(np.arange(rows), first)[0]
            raise ValueError(f"ids must differ, got {self.ids[again]} twice; give every example an id of its own")
        if self.posterior is not None:
            _check_posterior(self.posterior)

    def __len__(self) -> int:
        """The number of examples."""
        return len(self.inputs)

    def __repr__(self) -> str:
        """Types and shapes."""
        known = "".join(f", {name}" for name in ("posterior", "groups") if getattr(self, name) is not None)
        return f"Examples({self.inputs.dtype} {self.inputs.shape}, labels {self.labels.shape}{known})"

    def take(self, indices: NDArray[Any]) -> Examples:
        """The examples at these positions, or where this mask is true, in that order; a copy."""
        taken: dict[str, Any] = {}
        for column in fields(self):
            values = getattr(self, column.name)
            taken[column.name] = None if values is None else values[indices]
        return Examples(**taken)

    def none(self) -> Examples:
        """No example, of the same kind."""
        return self.take(np.arange(0))


@dataclass(frozen=True, eq=False)
class DataSet:
    """A data set's examples in splits that share no id and no group; a split that is not there is empty.

    Args:
        name: of the data set.
        classes: names of the classes, or of the labels where an example has several.
        train, val, test: the splits.
        vocabulary: of texts, the word of each token; token 0 is padding.
        provenance: in what JSON can express: which files were read (size and SHA-256), how the splits were made,
            how many examples each holds, the fingerprint of each, and whether parts are missing.
        files: all files and folders that decide what a loader of your own returns: while none of them changes, a
            study is planned without loading the data again.
        categories: of features, how many codes (0, 1, ...) each of the last columns has, which hold categories and
            not numbers.

    >>> from focalcal.lab.data import load_data
    >>> digits = load_data("digits")
    >>> {name: len(split.labels) for name, split in digits.splits.items()}
    {'train': 1077, 'val': 360, 'test': 360}
    """

    name: str
    classes: tuple[str, ...]
    train: Examples
    val: Examples
    test: Examples
    vocabulary: tuple[str, ...] | None = None
    provenance: Mapping[str, Any] = field(default_factory=dict)
    files: Sequence[Path | str] = ()
    categories: tuple[int, ...] = ()

    def __post_init__(self) -> None:
        """Refuse labels without a class, and splits that overlap; complete the provenance."""
        for split, examples in self.splits.items():
            _check_labels(f"{self.name} {split}", examples.labels, len(self.classes))
            if self.vocabulary is not None and len(examples):
                highest = int(examples.inputs.max(initial=0))
                if highest >= len(self.vocabulary):
                    raise ValueError(f"{split} holds token {highest}, past the vocabulary of {len(self.vocabulary)}")
        for (split, first), (other, second) in combinations(self.splits.items(), 2):
            _check_disjoint(self.name, (split, other), "ids", first.ids, second.ids)
            if first.groups is not None and second.groups is not None:
                _check_disjoint(self.name, (split, other), "groups", first.groups, second.groups)
        facts = {
            "name": self.name,
            "counts": {split: len(examples) for split, examples in self.splits.items()},
            "fingerprints": {split: fingerprint(examples) for split, examples in self.splits.items()},
        }
        object.__setattr__(self, "provenance", {**self.provenance, **facts})

    @property
    def splits(self) -> dict[str, Examples]:
        """The three splits by name."""
        return {"train": self.train, "val": self.val, "test": self.test}

    @property
    def multilabel(self) -> bool:
        """Whether an example can have several labels."""
        return self.train.labels.ndim == 2

    def __repr__(self) -> str:
        """Name and counts."""
        counts = ", ".join(f"{split} {len(examples)}" for split, examples in self.splits.items())
        return f"DataSet({self.name!r}, {len(self.classes)} classes, {counts})"


def numbered_ids(prefix: str, count: int) -> NDArray[Any]:
    """`prefix-0`, `prefix-1`, ...: ids of examples that have only their place in a file."""
    return np.char.add(f"{prefix}-", np.arange(count).astype(str))


def fingerprint(examples: Examples) -> str:
    """SHA-256 over every field's name, type, shape and bytes, the same on every machine.

    Args:
        examples: of one split.

    Returns:
        64 hexadecimal digits.

    >>> fingerprint(Examples(np.eye(2), labels=np.array([0, 1]), ids=np.arange(2)))[:8]
    'e45d7e82'
    """
    digest = hashlib.sha256()
    for column in fields(examples):
        values = getattr(examples, column.name)
        if values is None:
            continue
        kind = "str" if values.dtype.kind == "U" else values.dtype.name
        digest.update(f"{column.name} {kind} {values.shape}\n".encode())
        step = max(1, (16 << 20) // max(1, values[:1].nbytes))
        for start in range(0, len(values), step):
            digest.update(_canonical(values[start : start + step]))
    return digest.hexdigest()


def _canonical(values: NDArray[Any]) -> bytes:
    if values.dtype.kind == "U":  # whatever width the array reserves
        return "".join(f"{value}\n" for value in values.tolist()).encode()
    return np.ascontiguousarray(values, values.dtype.newbyteorder("<")).tobytes()


def _check_inputs(inputs: NDArray[Any]) -> None:
    kind, dims = inputs.dtype, inputs.ndim
    allowed = (kind == np.uint8 and dims == 4) or (kind == np.int64 and dims == 2) or (kind.kind == "f" and dims == 2)
    if not allowed:
        raise ValueError(
            "inputs must be images uint8 (N, C, H, W), tokens int64 (N, L) or features float (N, D), "
            f"got {kind} {inputs.shape}; convert them"
        )


def _check_posterior(posterior: NDArray[Any]) -> None:
    if posterior.ndim != 2 or posterior.dtype != np.float64:
        raise ValueError(f"posterior must be float64 (N, K), got {posterior.dtype} {posterior.shape}")
    wrong = off_simplex(posterior.min(1), posterior.sum(1))
    if wrong.any():
        row = int(wrong.argmax())
        raise ValueError(f"posterior must be >= 0 and sum to 1, got {posterior[row]} in row {row}; normalise it")


def _check_labels(where: str, labels: NDArray[Any], classes: int) -> None:
    if labels.ndim == 2:
        if labels.shape[1] != classes:
            raise ValueError(f"{where}: labels must have {classes} columns, one per class name, got {labels.shape[1]}")
        return
    wrong = (labels < 0) | (labels >= classes)
    if wrong.any():
        row = int(wrong.argmax())
        raise ValueError(f"{where}: labels must be from 0 to {classes - 1}, got {labels[row]} in row {row}")


def _check_disjoint(name: str, splits: Sequence[str], what: str, first: NDArray[Any], second: NDArray[Any]) -> None:
    if not len(first) or not len(second):
        return
    shared = np.intersect1d(first, second)
    if len(shared):
        raise ValueError(
            f"{name}: {splits[0]} and {splits[1]} must share no {what}, got {len(shared)} in both, "
            f"{shared[0]} among them; split again"
        )
