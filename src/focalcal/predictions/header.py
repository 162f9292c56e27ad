"""What a file states of itself, what the caller says of it, and which of the two decides."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from numpy.typing import NDArray
from torch import Tensor

from focalcal.core.arrays import one_of
from focalcal.predictions.checks import checked_split
from focalcal.predictions.errors import listed, problem

if TYPE_CHECKING:
    from focalcal.predictions.record import Predictions

SCHEMA = 1
LONGEST = 1 << 23  # characters
KEY = "focalcal"  # of the header, in every format
_WIDTHS = ("float64", "float32", "float16", "bfloat16")


@dataclass(frozen=True)
class Names:
    """What the caller says of a file: where its fields are, and what the file does not state itself."""

    logits: str | Sequence[str] | None = None
    probs: str | Sequence[str] | None = None
    labels: str | Sequence[str] | None = None
    ids: str | Literal[False] | None = None
    groups: str | Literal[False] | None = None
    posterior: str | Sequence[str] | Literal[False] | None = None
    split: str | None = None
    multilabel: bool | None = None
    dtype: str | None = None

    def __post_init__(self) -> None:
        """Refuse what cannot be meant."""
        if self.logits is not None and self.probs is not None:
            raise TypeError("name at most one of logits= and probs=, got both; a Predictions holds one kind of scores")
        if self.dtype is not None:
            one_of("dtype", self.dtype, ("float32", "float64"))
        if self.multilabel is not None and not isinstance(self.multilabel, bool):
            raise TypeError(f"multilabel must be True, False or None, got {self.multilabel!r}")
        if self.split is not None:
            checked_split(self.split)
        for name in ("logits", "probs", "labels", "posterior"):
            _checked_place(name, getattr(self, name), several=True)
        for name in ("ids", "groups"):
            _checked_place(name, getattr(self, name), several=False)


def _checked_place(name: str, given: Any, *, several: bool) -> None:
    """Refuse what does not name a key or columns; False leaves out what is optional."""
    if given is None or (given is False and name in ("ids", "groups", "posterior")):
        return
    each = given if several and isinstance(given, (list, tuple)) else [given]
    for one in each:
        if not isinstance(one, str):
            kinds = "a string or a list of strings" if several else "a string"
            raise TypeError(f"{name} must name a key or columns, got {given!r}; pass {kinds}")
    if not each or not all(each):
        raise ValueError(f"{name} must name columns, got {given!r}; list them in the order of the classes")
    if len(set(each)) < len(each):
        twice = next(one for at, one in enumerate(each) if one in each[:at])
        raise ValueError(f"{name} must name every column once, got {twice!r} again; give each class its own")


@dataclass(frozen=True)
class Header:
    """What a file of ours states of itself, as one JSON object."""

    schema: int
    kind: str
    multilabel: bool
    split: str
    rows: int
    dtype: str
    ids: str | None
    groups: str | None
    posterior: str | None
    provenance: dict[str, Any]

    @staticmethod
    def of(predictions: Predictions) -> str:
        """The JSON text for these predictions."""
        types = {
            name: None if (v := getattr(predictions, name)) is None else type_name(v)
            for name in ("ids", "groups", "posterior")
        }
        stated = {
            "schema": SCHEMA,
            "kind": predictions.kind,
            "multilabel": predictions.multilabel,
            "split": predictions.split,
            "rows": predictions.n,
            "dtype": type_name(predictions.scores),
            **types,
        }
        return f'{json.dumps(stated)[:-1]}, "provenance": {predictions._provenance}}}'

    @staticmethod
    def parse(text: str, path: Path) -> Header:
        """The header that a file holds, if it is one."""
        if len(text) > LONGEST:
            raise problem(path, f"{KEY!r} must have at most {LONGEST} characters", len(text), "do not trust it")
        stated = json.loads(text)
        if not isinstance(stated, dict):
            raise problem(path, f"{KEY!r} must hold a JSON object", type(stated).__name__, "make the file again")
        schema = stated.get("schema")
        if type(schema) is int and schema > SCHEMA:
            raise problem(path, f"the schema must be at most {SCHEMA}", schema, "read it with a newer focalcal")
        rules = {
            "schema": schema == SCHEMA and type(schema) is int,
            "kind": stated.get("kind") in ("logits", "probs"),
            "multilabel": isinstance(stated.get("multilabel"), bool),
            "split": isinstance(stated.get("split"), str),
            "rows": type(stated.get("rows")) is int,
            "dtype": stated.get("dtype") in _WIDTHS,
            "ids": stated.get("ids") in (None, "int", "str"),
            "groups": stated.get("groups") in (None, "int", "str"),
            "posterior": stated.get("posterior") in (None, *_WIDTHS),
            "provenance": isinstance(stated.get("provenance"), dict),
        }
        for name, right in rules.items():
            if name not in stated or not right:
                found = repr(stated[name])[:80] if name in stated else "nothing"
                raise problem(path, f"{KEY!r} must state {name} as documented", found, "make the file again")
        return Header(**{name: stated[name] for name in rules})


def type_name(values: Tensor | NDArray[Any]) -> str:
    """What a header calls the type of a field."""
    if isinstance(values, Tensor):
        return str(values.dtype).removeprefix("torch.")
    return "int" if values.dtype.kind == "i" else "str"


def kind_of(path: Path, names: Names, header: Header | None, found: Sequence[str], present: Sequence[str]) -> str:
    """Whether to read logits or probabilities: as the caller says, else the header, else what alone is `present`."""
    if names.logits is not None or names.probs is not None:
        return "probs" if names.logits is None else "logits"
    if header is not None:
        return header.kind
    if len(present) == 1:
        return present[0]
    raise problem(
        path,
        "the file must say whether its scores are logits or probabilities",
        f"{'both' if present else 'neither'} in {listed(found)}",
        "name one, e.g. load(path, logits='...', labels='...') or load(path, probs='...', labels='...')",
    )


def optional(name: str, names: Names, header: Header | None) -> tuple[Any, bool]:
    """Where the caller says that ids, groups or the posterior are (None: the usual place), and whether they must be."""
    given = getattr(names, name)
    return given, given not in (None, False) or (
        given is None and header is not None and getattr(header, name) is not None
    )
