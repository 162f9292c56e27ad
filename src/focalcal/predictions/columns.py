"""Which columns of a table hold the scores and the labels, by their names.

Scores are numbered after a prefix (`prob_0`, `p0`, `probs[0]`, `logit.0`), from 0 or from 1, or named (`prob_cat`); or
one column holds lists, or the positive class alone. An `InputWarning` says what was found under other names than this
package writes; where several could be meant, the caller is asked.
"""

from __future__ import annotations

import re
import warnings
from collections import Counter
from collections.abc import Callable, Collection, Sequence
from typing import Any, NamedTuple

from focalcal.core.checks import user_level
from focalcal.predictions.class_labels import InputWarning
from focalcal.predictions.header import KINDS, OPTIONAL, Header, Names, PredictionsFileError, kind_of, listed

# The first of each is what this package writes.
PREFIXES = {
    "probs": ("prob", "probs", "p", "proba", "probability", "y_prob"),
    "logits": ("logit", "logits"),
    "posterior": ("posterior",),
}
COLUMNS = {"ids": "id", "groups": "group", "clusters": "cluster", "weights": "weight", "times": "time"}
LABELS = ("label", "labels", "target", "y", "y_true", "true_label")
_MOST_COLUMNS = 1 << 15  # to read: Arrow takes kilobytes for each, whatever is in it; ImageNet-21k has 21,841 classes


class Columns(NamedTuple):
    """Columns in the order of the classes, and what the names say the classes are: None for 0, 1, ..."""

    names: list[str]
    classes: tuple[Any, ...] | None = None


class Layout(NamedTuple):
    """The columns of each field, whether a row can have several labels, and which classes the columns' names say."""

    columns: dict[str, list[str]]
    multilabel: bool
    classes: tuple[Any, ...] | None
    group_names: tuple[str, ...] | None = None  # of several columns of groups

    @property
    def scores(self) -> list[str]:
        """Those of the scores, of whichever kind."""
        return next(self.columns[kind] for kind in KINDS if kind in self.columns)

    @property
    def all_columns(self) -> list[str]:
        """Those that are read, each once: a site may be a group and a cluster."""
        return list(dict.fromkeys(name for places in self.columns.values() for name in places))


def find_layout(
    names: Names,
    header: Header | None,
    columns: Sequence[str],
    class_columns: Callable[[str], list[str]],
    folders: Collection[str] = (),
) -> Layout:
    """Find every field: where the caller says, else under the usual names.

    `class_columns(labels)` are those that can be scores called as the classes are, if the column `labels` is text.
    `folders` are columns in the names of folders (month=2026-01), which are read where the caller names them.
    """
    counts = Counter(columns)
    named_places = dict.fromkeys([*counts, *folders])
    if doubled := [name for name, count in counts.items() if count > 1]:
        raise PredictionsFileError(
            f"column names must differ, got several of {listed(doubled)}; rename or drop columns"
        )
    if named := names.logits or names.probs:
        kind = kind_of(names, header, columns, ())
        scores = named_columns(named, counts)
    else:
        found = {kind: found_columns for kind in KINDS if (found_columns := find_scores(kind, counts))}
        if not found and header is None:
            found = _named_by_classes(names, counts, class_columns)
        kind = kind_of(names, header, columns, list(found))
        if kind not in found:
            raise missing_column(f"{PREFIXES[kind][0]}_0", counts)
        scores = found[kind]
    labels = find_labels(counts) if names.labels is None else []
    if names.labels is not None and not callable(names.labels):
        labels = named_columns(names.labels, named_places).names
    if header is None:
        warn_of_names(kind, None if named else scores, labels if names.labels is None else None)
    fields = {kind: scores.names} | ({"labels": labels} if labels else {})
    for name in OPTIONAL:
        usual: Any = COLUMNS.get(name, "posterior")
        present = usual in counts or (name == "posterior" and "posterior_0" in counts)
        if names.reads(name, header, present=present):
            if name == "groups" and header is not None and header.group_names is not None:
                usual = [f"{usual}_{own}" for own in header.group_names]
            given = getattr(names, name)
            fields[name] = named_columns(given or usual, named_places if given else counts).names
    group_names = None
    if isinstance(names.groups, list | tuple) and len(names.groups) > 1:
        group_names = tuple(names.groups)
    elif names.groups is None and header is not None and header.group_names is not None:
        group_names = tuple(header.group_names)
    check_width(sum(map(len, fields.values())))
    for name in () if header is None else (kind, "posterior"):
        if name in fields and getattr(names, name) is None and not is_ours(name, Columns(fields[name])):
            raise missing_column(f"{PREFIXES[name][0]}_0", counts)  # a damaged name would put classes in another order
    single = labels[0] in LABELS if names.labels is None else labels in ([], [names.labels])
    several = not single if header is None else header.multilabel
    return Layout(fields, several if names.multilabel is None else names.multilabel, scores.classes, group_names)


def check_width(columns: int) -> None:
    """Refuse to read more columns than a table of predictions has, before memory is taken for them."""
    if columns > _MOST_COLUMNS:
        raise PredictionsFileError(
            f"a table must have at most {_MOST_COLUMNS:,} columns of scores and labels, got {columns:,}; name those "
            "that are meant, e.g. load(path, probs=[...], labels='...'), or save so many classes as .npz"
        )


def _named_by_classes(
    names: Names, existing: Collection[str], class_columns: Callable[[str], list[str]]
) -> dict[str, Columns]:
    """Probabilities in columns that are called as the classes are, where labels are text."""
    labels = next((name for name in (names.labels, *LABELS) if isinstance(name, str) and name in existing), None)
    bare = [] if labels is None else class_columns(labels)
    return {"probs": Columns(bare, tuple(bare))} if len(bare) > 1 else {}


def named_columns(place: Any, existing: Collection[str]) -> Columns:
    """The columns of a field where the caller says they are: listed, after a prefix, or one alone."""
    if isinstance(place, str):
        if (found := columns_after(place, existing)) is None:
            raise missing_column(place, existing)
        return found
    for column in place:
        if column not in existing:
            raise missing_column(column, existing)
    return Columns(list(place))


def columns_after(prefix: str, existing: Collection[str]) -> Columns | None:
    """The column of that name, or those numbered after it, or else those with names after it; None without any."""
    if prefix in existing:
        return Columns([prefix])
    numbers: dict[int, str] = {}
    for column in existing:
        if match := re.fullmatch(rf"{re.escape(prefix)}(?:[_.]?(\d{{1,9}})|\[(\d{{1,9}})\])", column):
            number = int(match[1] or match[2])
            if number in numbers:
                raise PredictionsFileError(
                    f"one column must be number {number} of {prefix!r}, got {listed([numbers[number], column])}; "
                    "list the columns in the order of the classes"
                )
            numbers[number] = column
    if numbers:
        wanted = range(first := int(0 not in numbers and 1 in numbers), first + len(numbers))
        for number in wanted:
            if number not in numbers:
                raise missing_column(f"{prefix}_{number}", existing)
        return Columns([numbers[number] for number in wanted], tuple(wanted) if first and len(wanted) > 1 else None)
    named = [column for column in existing if column.startswith(f"{prefix}_") and len(column) > len(prefix) + 1]
    return Columns(named, tuple(column[len(prefix) + 1 :] for column in named)) if len(named) > 1 else None


def missing_column(column: str, existing: Collection[str]) -> PredictionsFileError:
    """The error for a column that is not there, with those that are."""
    return PredictionsFileError(
        f"the table must have a column {column!r}, got {listed(existing)}; name the columns, e.g. "
        "load(path, probs=[...], labels='...'), in the order of the classes, or --probs and --labels of a command"
    )


def find_scores(kind: str, existing: Collection[str]) -> Columns | None:
    """The columns of scores of a kind under the usual names, those of this package before others."""
    found = {prefix: columns for prefix in PREFIXES[kind] if (columns := columns_after(prefix, existing))}
    if not found:
        return None
    ours = [columns for columns in found.values() if is_ours(kind, columns)]
    if len(found) > 1 and not ours:
        raise PredictionsFileError(
            f"{kind} must be in one set of columns, got {' or '.join(listed(each.names) for each in found.values())}; "
            f"say which, e.g. load(path, {kind}={next(iter(found))!r})"
        )
    return ours[0] if ours else next(iter(found.values()))


def find_labels(existing: Collection[str]) -> list[str]:
    """The column of labels under a usual name, or with several labels per row those that are numbered."""
    found = [name for name in (*LABELS, "label_0") if name in existing]
    if not found:
        raise missing_column("label", existing)
    if len(found) > 1 and ("label_0" in found or LABELS[0] not in found):
        raise PredictionsFileError(
            f"labels must be in one place, got {listed(found)}; say which, e.g. load(path, labels={found[0]!r})"
        )
    numbered = columns_after("label", existing) if found == ["label_0"] else None
    return found[:1] if numbered is None else numbered.names


def is_ours(kind: str, columns: Columns) -> bool:
    """Whether these are the names that this package writes, of which nothing need be said."""
    return columns.names in ([kind], [f"{PREFIXES[kind][0]}_{number}" for number in range(len(columns.names))])


def warn_of_names(kind: str, scores: Columns | None, labels: Sequence[str] | None) -> None:
    """Say what was found under other names than those of this package; None for what the caller named."""
    found = []
    if scores is not None and not is_ours(kind, scores):
        classes = "" if scores.classes is None else f" (classes {listed(map(str, scores.classes))})"
        found.append(f"{kind} were taken from {listed(scores.names)}{classes}")
    if labels is not None and not labels[0].startswith("label"):
        found.append(f"labels were taken from {listed(labels)}")
    if found:
        warnings.warn(
            f"{' and '.join(found)}; say {kind}=..., labels=... or classes=... if that is wrong",
            InputWarning,
            stacklevel=user_level(),
        )
