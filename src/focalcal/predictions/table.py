"""Which columns of a table hold what: one column a class, named alike in .csv and .parquet.

`label`, `logit_0` ... `logit_{K-1}` or `prob_0` ..., and optionally `id`, `group`, `posterior_0` ...; with several
labels a row `label_0` ... `label_{L-1}` instead of `label`. Other columns are left alone.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from focalcal.predictions.chunk import stored
from focalcal.predictions.errors import listed, problem
from focalcal.predictions.header import Header, Names, kind_of, optional

if TYPE_CHECKING:
    from focalcal.predictions.record import Predictions

PREFIX = {"logits": "logit", "probs": "prob", "labels": "label", "posterior": "posterior"}
COLUMN = {"ids": "id", "groups": "group"}


@dataclass(frozen=True)
class Layout:
    """The columns of each field. Where one column holds a list a row, its name stands alone."""

    kind: str
    scores: list[str]
    labels: list[str]
    multilabel: bool
    ids: str | None
    groups: str | None
    posterior: list[str] | None

    @property
    def columns(self) -> list[str]:
        """Every column that is read."""
        single = [name for name in (self.ids, self.groups) if name is not None]
        return list(dict.fromkeys([*single, *self.labels, *self.scores, *(self.posterior or [])]))


def columns_of(predictions: Predictions) -> Iterator[tuple[str, str, int | None]]:
    """(column, attribute of `Predictions`, column of that or None) in the order of a file of ours."""
    for name in ("ids", "groups"):
        if getattr(predictions, name) is not None:
            yield COLUMN[name], name, None
    if not predictions.multilabel:
        yield PREFIX["labels"], "labels", None
    wide = {"labels": predictions.multilabel, predictions.kind: True, "posterior": predictions.posterior is not None}
    for name in (name for name, there in wide.items() if there):
        for k in range(predictions.n_classes):
            yield f"{PREFIX[name]}_{k}", name, k


def stored_columns(predictions: Predictions) -> list[Any]:
    """The values of each column, in the order of `columns_of`."""
    fields = {
        name: stored(getattr(predictions, name)) for name in dict.fromkeys(n for _, n, _ in columns_of(predictions))
    }
    return [fields[name] if k is None else fields[name][:, k] for _, name, k in columns_of(predictions)]


def layout(path: Path, names: Names, header: Header | None, columns: Sequence[str]) -> Layout:
    """Find every field: where the caller says, else under the usual names."""
    doubled = (
        sorted({name for name in columns if list(columns).count(name) > 1}) if len(set(columns)) < len(columns) else []
    )
    if doubled:
        raise problem(path, "column names must differ", f"several of {listed(doubled)}", "rename or drop columns")
    present = [kind for kind in ("logits", "probs") if kind in columns or f"{PREFIX[kind]}_0" in columns]
    kind = kind_of(path, names, header, columns, present)
    labels = _labels(path, names, columns)
    found: dict[str, Any] = {"posterior": None, "ids": None, "groups": None}
    for name in found:
        given, needed = optional(name, names, header)
        usual = COLUMN.get(name) or f"{PREFIX[name]}_0"
        if needed or (given is None and header is None and (usual in columns or (name in columns and name in PREFIX))):
            if name == "posterior":
                found[name] = _wide(path, name, given, columns)
            else:
                found[name] = _one(path, given or COLUMN[name], columns)
    several = names.labels is not None and not isinstance(names.labels, str)
    multilabel = several or len(labels) > 1 or labels == [f"{PREFIX['labels']}_0"]
    if names.multilabel is not None:
        multilabel = names.multilabel
    elif header:
        multilabel = header.multilabel
    return Layout(kind, _wide(path, kind, getattr(names, kind), columns), labels, multilabel, **found)


def _labels(path: Path, names: Names, columns: Sequence[str]) -> list[str]:
    if names.labels is None and "label" in columns:
        if "label_0" in columns:
            raise problem(path, "labels must be one of 'label' and 'label_0', ...", "both", "say labels='label'")
        return ["label"]
    return _wide(path, "labels", names.labels, columns)


def _one(path: Path, column: Any, columns: Sequence[str]) -> str:
    if not isinstance(column, str) or column not in columns:
        raise problem(path, f"the table must have a column {column!r}", listed(columns), "name the column it is in")
    return column


def _wide(path: Path, name: str, given: Any, columns: Sequence[str]) -> list[str]:
    """The columns of a field with one for each class: listed, counted from 0 after a prefix, or one of lists."""
    if given is not None and not isinstance(given, str):
        return [_one(path, column, columns) for column in given]
    if (given or name) in columns:
        return [given or name]
    prefix = given or PREFIX[name]
    numbers = [
        int(m[1]) for column in columns if (m := re.fullmatch(re.escape(prefix) + r"_(0|[1-9][0-9]{0,8})", column))
    ]
    if not numbers or max(numbers) != len(numbers) - 1:
        lacking = next(k for k in range(len(numbers) + 1) if k not in set(numbers))
        remedy = f"name the columns, e.g. load(path, {name}=[...]) in the order of the classes"
        raise problem(path, f"the table must have a column '{prefix}_{lacking}'", listed(columns), remedy)
    return [f"{prefix}_{k}" for k in range(len(numbers))]
