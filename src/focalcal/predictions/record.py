"""`Predictions`: scores and their kind, labels, the set they come from, and what else is known of each row."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from html import escape
from types import MappingProxyType
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from focalcal.core.arrays import Array, as_values, is_tensor
from focalcal.core.checks import whole
from focalcal.core.display import html_table
from focalcal.core.numerics import at_least_float32, sigmoid, softmax
from focalcal.predictions import files
from focalcal.predictions.answer_options import Normalize
from focalcal.predictions.field_checks import (
    checked_classes,
    checked_groups,
    checked_names,
    checked_posterior,
    checked_scores,
    checked_split,
    checked_times,
    checked_weights,
    provenance_text,
)
from focalcal.predictions.header import OPTIONAL, Names, Place
from focalcal.predictions.inputs import Inputs
from focalcal.predictions.model_outputs import of_hugging_face, of_sklearn
from focalcal.predictions.score_forms import given_scores

ROWS = 65536  # of a batch, unless told otherwise
PER_ROW = ("scores", "labels", *OPTIONAL)
ALIKE = ("kind", "multilabel", "top1", "classes", "group_names", "split", "_provenance", "n_classes", *PER_ROW)
_WIDTHS = {"float16", "float32", "float64"}


@dataclass(frozen=True, eq=False, repr=False, init=False, slots=True)
class Predictions:
    """What a model said about the rows of a set, and what was true.

    Exactly one of `logits`, `probs`, `logprobs` and `confidence` is given, and says what the scores are. Where no more
    is known than how sure each prediction is and whether it is right (`top1`), the two columns of the scores are the
    probabilities of being wrong and of being right.

    Everything is held as NumPy arrays. Arrays and tensors are taken without a copy, on the same memory, so treat them
    as read-only: a write would reach the caller's array. (A tensor on a GPU or in bfloat16 is copied, the latter to
    float32.) Everything is checked here, once.

    Args:
        logits: (N, K).
        probs: (N, K) in their place; or one column (N,) of two classes, with `positive`.
        logprobs: (N, K), log-probabilities of answer options.
        labels: (N,), the indices of the classes, or their names with `classes`.
        confidence: (N,), how sure each prediction is, in the place of scores.
        correct: (N,), whether it is right, in the place of labels.
        split: names the set: "test", "val", a shift.
        multilabel: every column is a yes-or-no question of its own: scores (N, L) are the logits or probabilities of
            yes, labels (N, L) are 0 or 1 and are kept as bool.
        ids: (N,), integers or strings.
        groups: (N,), integers or strings; or several, {"site": ..., "age": ...}, kept as strings (N, G) in the order of
            `group_names`.
        clusters: (N,), what the rows of one patient, customer or document share, integers or strings: such rows are not
            independent of each other.
        weights: (N,), how many rows of the population each stands for, numbers >= 0, kept as float64.
        times: (N,), when it was predicted: dates, datetimes or ISO 8601 text, kept as datetime64[us], in UTC.
        posterior: the true one, of the scores' shape.
        provenance: anything that JSON can say.
        classes: the names of the columns, in order; kept.
        positive: the class that one column of scores is of.
        normalize: True divides rows of probs by their sums; of logprobs "options" or "none" as for `option_probs`, and
            with "none" the last class is "other".
        missing: of logprobs, as for `option_probs`.
        scale: "percent" for probs from 0 to 100.

    >>> Predictions(logits=np.array([[2.0, 0.0], [0.0, 1.0]]), labels=[0, 1], split="test", ids=["a", "b"])
    Predictions(logits float64 (2, 2), split='test', ids)
    """

    scores: Array
    kind: Literal["logits", "probs"]
    labels: Array
    split: str
    multilabel: bool
    top1: bool
    ids: NDArray[Any] | None
    groups: NDArray[Any] | None
    clusters: NDArray[Any] | None
    weights: NDArray[np.float64] | None
    times: NDArray[np.datetime64] | None
    posterior: Array | None
    group_names: tuple[str, ...] | None
    classes: tuple[Any, ...] | None
    _provenance: str

    def __init__(
        self,
        *,
        logits: Any = None,
        probs: Any = None,
        logprobs: Any = None,
        labels: Any = None,
        confidence: Any = None,
        correct: Any = None,
        split: str,
        multilabel: bool = False,
        ids: Any = None,
        groups: Any = None,
        clusters: Any = None,
        weights: Any = None,
        times: Any = None,
        posterior: Any = None,
        provenance: Mapping[str, Any] | None = None,
        classes: Sequence[Any] | None = None,
        positive: Any = None,
        normalize: bool | Normalize = False,
        missing: float | None = None,
        scale: Literal["unit", "percent"] = "unit",
    ) -> None:
        kind, scores, truth, named, top1 = given_scores(
            logits, probs, logprobs, labels, confidence, correct, multilabel=multilabel, classes=classes,
            positive=positive, normalize=normalize, missing=missing, scale=scale,
        )  # fmt: skip
        scores, truth = checked_scores(kind, scores, truth, multilabel=multilabel)
        n = len(scores)
        groups, group_names = (None, None) if groups is None else checked_groups(groups, n)
        self._fill(
            scores=scores,
            kind=kind,
            labels=truth,
            split=checked_split(split),
            multilabel=multilabel,
            top1=top1,
            ids=None if ids is None else checked_names("ids", ids, n),
            groups=groups,
            clusters=None if clusters is None else checked_names("clusters", clusters, n),
            weights=None if weights is None else checked_weights(weights, n),
            times=None if times is None else checked_times(times, n),
            posterior=None if posterior is None else checked_posterior(posterior, scores, multilabel=multilabel),
            group_names=group_names,
            classes=None if named is None else checked_classes(named, scores.shape[1]),
            _provenance=provenance_text(provenance),
        )

    def _fill(self, **fields: Any) -> None:
        for name, value in fields.items():
            object.__setattr__(self, name, value)

    def _with_known(self, **changed: Any) -> Predictions:
        """The same with other fields, which are known to be right."""
        other = object.__new__(Predictions)
        other._fill(**{name: getattr(self, name) for name in self.__dataclass_fields__} | changed)
        return other

    @property
    def n(self) -> int:
        """The number of rows."""
        return len(self.scores)

    @property
    def n_classes(self) -> int:
        """The number of classes K, or of labels L."""
        return int(self.scores.shape[1])

    @property
    def provenance(self) -> Mapping[str, Any]:
        """Where the predictions come from, a copy that cannot be assigned to."""
        return MappingProxyType(json.loads(self._provenance))

    @property
    def logits(self) -> Array:
        """The stored logits, (N, K)."""
        if self.kind == "logits":
            return self.scores
        raise ValueError(
            "these predictions hold probabilities, and logits cannot be computed from them (log(0), lost digits); "
            "store the logits, or use log(probs) yourself where every entry is positive"
        )

    @property
    def probs(self) -> Array:
        """The stored probabilities, or softmax (sigmoid with `multilabel`) of the logits, (N, K).

        In the logits' dtype, float32 at least. Computed at each access: keep the result if you need it twice.
        """
        if self.kind == "probs":
            return self.scores
        logits = at_least_float32(self.scores)
        probs: Array = sigmoid(logits) if self.multilabel else softmax(logits)
        return probs

    def __focalcal_inputs__(self) -> Inputs:
        """Scores and labels for metrics and calibrators (`predictions.inputs`)."""
        if self.multilabel:
            raise ValueError("these predictions have several labels per row; use the multilabel_ functions for them")
        if self.top1:
            return Inputs("outcomes", self.scores[:, 1], self.labels == 1, checked=True, weights=self.weights)
        return Inputs(self.kind, self.scores, self.labels, self.classes, checked=True, weights=self.weights)

    def __len__(self) -> int:
        """The number of rows."""
        return self.n

    def __repr__(self) -> str:
        """What is held, without the values."""
        shape = f"{self.kind} {self.scores.dtype} {self.scores.shape}"
        more = ["multilabel"] * self.multilabel + ["confidence and correct alone"] * self.top1
        if self.classes is not None:
            shown = ", ".join(str(name)[:20] for name in self.classes[:5])
            more.append(f"classes: {shown}{', ...' if len(self.classes) > 5 else ''}")
        more += [name for name in OPTIONAL if getattr(self, name) is not None]
        if keys := " ".join(self.provenance):
            more.append(f"provenance: {keys[:100]}")
        return f"Predictions({', '.join([shape, f'split={self.split[:40]!r}', *more])})"

    def _repr_html_(self) -> str:
        """The first rows, of the first classes."""
        labels = [name for name in ("labels", *OPTIONAL) if getattr(self, name) is not None and name != "posterior"]
        names = ("wrong", "right") if self.top1 else self.classes or tuple(range(self.n_classes))
        columns = {name: list(map(str, getattr(self, name)[:5])) for name in labels}
        columns |= {f"{self.kind} {name}": self.scores[:5, k].tolist() for k, name in enumerate(names[:8])}
        return f"<p>{escape(repr(self))}</p>{html_table(columns)}"

    def __getitem__(self, rows: Any) -> Predictions:
        """Some of the rows: a slice (a view), a mask of N booleans, or an array of indices."""
        if isinstance(rows, slice):
            return self._rows(rows)
        if isinstance(rows, (int, np.integer)) or getattr(rows, "ndim", 1) == 0:
            raise TypeError(
                f"rows must be a slice, a mask or an array of indices, got {rows!r}; use batches(rows) or [i : i + 1]"
            )
        rows = as_values("rows", rows) if is_tensor(rows) else np.asarray(rows)
        index = np.arange(self.n)[rows if rows.size else rows.astype(np.int64)]  # NumPy takes [] for floats
        if index.ndim != 1:
            raise IndexError(f"rows must have one dimension, got shape {rows.shape}")
        return self._rows(index)

    def _rows(self, rows: Any) -> Predictions:
        fields = {name: getattr(self, name) for name in PER_ROW}
        changed: dict[str, Any] = {name: None if value is None else value[rows] for name, value in fields.items()}
        if not len(changed["scores"]):
            raise ValueError(f"rows must select at least one of {self.n} rows, got none")
        return self._with_known(**changed)

    def batches(self, rows: int = ROWS) -> Iterator[Predictions]:
        """Consecutive rows, at most `rows` at a time, as views."""
        rows = whole("rows", rows, 1)
        return (self[start : start + rows] for start in range(0, self.n, rows))

    def with_ids(self, ids: Any) -> Predictions:
        """The same rows under other ids."""
        return self._with_known(ids=checked_names("ids", ids, self.n))

    def with_weights(self, weights: Any) -> Predictions:
        """The same rows with other weights."""
        return self._with_known(weights=checked_weights(weights, self.n))

    def equals(self, other: object) -> bool:
        """Whether everything is the same, to the bit (but 0.0 equals -0.0); nothing but `Predictions` is."""
        if not isinstance(other, Predictions):
            return False
        return all(_comparable(getattr(self, name)) == _comparable(getattr(other, name)) for name in ALIKE) and all(
            np.array_equal(getattr(self, name), getattr(other, name)) for name in PER_ROW
        )

    @staticmethod
    def concatenate(
        parts: Iterable[Predictions], *, split: str | None = None, provenance: Mapping[str, Any] | None = None
    ) -> Predictions:
        """The rows of all parts in order, in the widest type. Where split or provenance differ, say the whole's."""
        parts = list(parts)
        if not parts:
            raise ValueError("parts must hold at least one Predictions, got none")
        first, about = parts[0], {}
        if split is not None:
            about["split"] = checked_split(split)
        if provenance is not None:
            about["_provenance"] = provenance_text(provenance)
        for number, part in enumerate(parts):
            if not isinstance(part, Predictions):
                raise TypeError(f"parts must be Predictions, got {type(part).__name__}; make them such first")
            _check_alike(first, part, number, stated=about)
        columns = {name: [getattr(part, name) for part in parts] for name in PER_ROW}
        whole = {name: None if each[0] is None else np.concatenate(each) for name, each in columns.items()}
        return first._with_known(**whole, **about)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write a .npz, .parquet or .csv file, or to a path without suffix a folder of .npy files.

        Whole or not at all. A file of that name is replaced, a folder is not.
        """
        files.save(self, path)

    @classmethod
    def from_sklearn(
        cls, model: Any, X: Any, y: Any, *, split: str = files.UNKNOWN_SPLIT, multilabel: bool = False, **about: Any
    ) -> Predictions:
        """What a fitted classifier of scikit-learn, or one with its methods, says of rows X with labels y.

        Columns and `classes` are in the order of `model.classes_`, by which labels are found: numbers or text, as the
        model was fitted with. `multilabel=True` is for y (N, L) of 0 and 1. `about` are ids, groups, weights and so on.

        >>> from sklearn.linear_model import LogisticRegression
        >>> X, y = np.array([[0.0], [1.0], [2.0], [3.0]]), ["no", "no", "yes", "yes"]
        >>> Predictions.from_sklearn(LogisticRegression().fit(X, y), X, y, split="train")
        Predictions(probs float64 (4, 2), split='train', classes: no, yes, provenance: model)
        """
        return cls._of_model(split, *of_sklearn(model, X, y, multilabel=multilabel, **about))

    @classmethod
    def _of_model(cls, split: str, fields: dict[str, Any], classes: Sequence[Any] | None) -> Predictions:
        made = cls(split=split, **fields)
        return made if classes is None else made._with_known(classes=checked_classes(classes, made.n_classes))

    @classmethod
    def from_huggingface(
        cls,
        output: Any,
        *,
        split: str = files.UNKNOWN_SPLIT,
        classes: Sequence[Any] | Mapping[int, Any] | None = None,
        multilabel: bool = False,
        shift_labels: bool | None = None,
        **about: Any,
    ) -> Predictions:
        """What a Hugging Face `Trainer` predicted: anything with `predictions`, logits, and `label_ids`.

        Of a tuple of predictions the first are the logits. Labels of -100 are left out, and counted in the provenance.
        Logits (N, T, K) of tokens become one row per token, with the example as its cluster unless `clusters` are
        given; `shift_labels=True` is for causal language models, whose label at t + 1 belongs to the logits at t, and
        False for token classification. `classes` may be the `id2label` of the model's configuration. `multilabel=True`
        is for labels (N, L) of 0 and 1. `about` are ids, groups, weights and so on, one per example.

        >>> from types import SimpleNamespace
        >>> output = SimpleNamespace(predictions=np.eye(3), label_ids=np.array([0, -100, 1]))  # as of trainer.predict
        >>> made = Predictions.from_huggingface(output, split="test", classes={0: "ham", 1: "spam", 2: "other"})
        >>> made.labels.tolist(), made.classes, dict(made.provenance)
        ([0, 1], ('ham', 'spam', 'other'), {'labels_of_-100_left_out': 1})
        """
        options: dict[str, Any] = {"classes": classes, "multilabel": multilabel, "shift_labels": shift_labels}
        return cls._of_model(split, *of_hugging_face(output, **options, **about))

    @classmethod
    def load(
        cls,
        path: files.Place,
        *,
        mmap: bool = False,
        logits: Place | Sequence[str] | None = None,
        probs: Place | Sequence[str] | None = None,
        labels: Place | Sequence[str] | None = None,
        ids: Place | Literal[False] | None = None,
        groups: Place | Sequence[str] | Literal[False] | None = None,
        clusters: Place | Literal[False] | None = None,
        weights: Place | Literal[False] | None = None,
        times: Place | Literal[False] | None = None,
        posterior: Place | Sequence[str] | Literal[False] | None = None,
        split: str | None = None,
        multilabel: bool | None = None,
        dtype: Literal["float32", "float64"] | None = None,
        classes: Sequence[Any] | None = None,
        positive: Any = None,
        normalize: bool = False,
        scale: Literal["unit", "percent"] = "unit",
        drop_missing: bool = False,
        delimiter: str | None = None,
        decimal: Literal[".", ","] | None = None,
        encoding: str | None = None,
    ) -> Predictions:
        """Read a .npz, .parquet, .csv, .tsv or .jsonl file or .npy files, also such that another program made.

        `path` may be an address too (s3://, gs://, https://), and text tables be compressed (.csv.gz).

        What a file of ours states need not be said. Else `logits=` or `probs=`, `labels=` and so on name the array of
        a .npz, or the columns of a table: a list of them in the order of the classes, or "z" for z_0, z_1, ... or z0,
        z[0], z_cat. Usual names of columns are found (prob_0, p0, probs[0], logit_cat; target, y, y_true; the classes'
        own names where labels are text), and an `InputWarning` says which. `classes`, `positive` and `normalize` are
        those of `Predictions`.
        `load("logits.npy", labels="labels.npy")` reads .npy files: a name that ends in .npy is a path, another one a
        file beside the first. `groups` may be several columns. `clusters`, `weights` and `times` are read from files of
        others only if they are named. `ids=False` leaves the ids out. `split` is "unknown" if nobody says it. `dtype`
        converts scores and posterior. `mmap=True` leaves the arrays of .npy files on the disk, copied on write.
        `scale="percent"` reads probabilities of 0 to 100, and text such as "85 %". `drop_missing=True` leaves rows
        without a value out and says how many; ids are then their rows in the file unless they have others. Of text
        tables the `delimiter`, the `decimal` sign and the `encoding` are found, and said by an `InputWarning`, unless
        they are given.
        A file that cannot be trusted raises `PredictionsFileError`; nothing in a file is ever executed.
        """
        names = Names(
            logits, probs, labels, ids, groups, clusters, weights, times, posterior,
            split, multilabel, dtype, classes, positive, normalize, scale, drop_missing, delimiter, decimal, encoding,
        )  # fmt: skip
        return files.load(cls, path, names, mmap=mmap)

    @classmethod
    def stream(
        cls, path: files.Place, *, rows: int = ROWS, row_groups: range | None = None, **names: Any
    ) -> Iterator[Predictions]:
        """The rows of a file in order, at most `rows` at a time and in memory; `names` as in `load`.

        `row_groups` are consecutive ones of a .parquet file, of which alone the rows are read.

        Each batch is checked. The file's checksum and row count are known only at its end: use what you made of the
        batches after the iteration has ended without an error.
        """
        return files.stream(cls, path, Names(**names), whole("rows", rows, 1), row_groups)


def _check_alike(first: Predictions, part: Predictions, number: int, stated: Mapping[str, Any]) -> None:
    """Refuse parts that differ in anything but their rows and what is stated for the whole."""
    for name in ALIKE:
        of_first, of_part = _comparable(getattr(first, name)), _comparable(getattr(part, name))
        widths = isinstance(getattr(first, name), np.ndarray) and {str(of_first), str(of_part)} <= _WIDTHS
        if of_first != of_part and name not in stated and not widths:  # of two widths the whole has the larger
            what = name.removeprefix("_")
            remedy = f"pass {what}=" if what in ("split", "provenance") else "make them alike first"
            raise ValueError(f"parts must agree in {what}, got {of_part} in part {number} after {of_first}; {remedy}")


def _comparable(value: Any) -> Any:
    """What must be alike in two parts: of arrays the type."""
    if not isinstance(value, np.ndarray):
        return value
    return str(value.dtype) if value.dtype.kind in "fb" else "integers" if value.dtype.kind == "i" else "strings"
