"""What a file states of itself, what the caller says of it, and the one error of a file that cannot be read."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any, Literal

from focalcal.core.arrays import Array
from focalcal.core.checks import one_of, yes_or_no
from focalcal.predictions.field_checks import checked_split

if TYPE_CHECKING:
    from focalcal.predictions.record import Predictions

Place = str | os.PathLike[str]  # the name of an array, a column or a prefix of columns, or the path of a .npy file
KEY = "focalcal"  # of the header, in every format
SCHEMA = 1
KINDS = ("logits", "probs")
SCALES = ("unit", "percent")
NEVER_GUESSED = ("clusters", "weights", "times")  # of files of others only what the caller names: they change numbers
OPTIONAL = ("ids", "groups", *NEVER_GUESSED, "posterior")
# A file may unpack to so many bytes, however small it is, or to so many times its size.
ALLOWED_BYTES = 256 << 20
ALLOWED_RATIO = 100
_WIDTHS = ("float64", "float32", "float16", "bfloat16")


class PredictionsFileError(ValueError):
    """A file that is not there, is cut off or damaged, or does not say what is needed to read it."""


class NoRowsError(PredictionsFileError):
    """A table without rows, which is right for a part of a larger one."""


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
    classes: list[str | int] | None = None
    group_names: list[str] | None = None
    clusters: str | None = None
    weights: str | None = None
    times: str | None = None
    top1: bool = False

    @staticmethod
    def of(predictions: Predictions) -> str:
        """The JSON text for these predictions."""
        stated: dict[str, Any] = {
            "schema": SCHEMA,
            "kind": predictions.kind,
            "multilabel": predictions.multilabel,
            "split": predictions.split,
            "rows": predictions.n,
            "dtype": _type_name(predictions.scores),
            **{name: _type_name(getattr(predictions, name)) for name in ("ids", "groups", "posterior")},
        }
        # Only where there are any, so that older readers know all of the header that they need.
        stated |= {
            name: _type_name(values) for name in NEVER_GUESSED if (values := getattr(predictions, name)) is not None
        }
        if predictions.top1:
            stated["top1"] = True
        for name in ("classes", "group_names"):
            if (names := getattr(predictions, name)) is not None:
                stated[name] = list(names)
        return f'{json.dumps(stated)[:-1]}, "provenance": {predictions._provenance}}}'

    @staticmethod
    def parse(text: str) -> Header:
        """The header that a file holds, if it is one."""
        stated = json.loads(text)
        schema = stated["schema"]
        if type(schema) is int and schema > SCHEMA:
            raise PredictionsFileError(
                f"its schema must be at most {SCHEMA}, got {schema}; read it with a newer focalcal"
            )
        header = Header(**{field.name: stated[field.name] for field in fields(Header) if field.name in stated})
        if not (
            (type(schema), schema) == (int, SCHEMA)
            and header.kind in KINDS
            and {type(header.multilabel), type(header.top1)} == {bool}
            and type(header.split) is str
            and type(header.rows) is int
            and header.dtype in _WIDTHS
            and {header.ids, header.groups, header.clusters} <= {None, "int", "str"}
            and header.weights in (None, "float64")
            and header.times in (None, "us")
            and header.posterior in (None, *_WIDTHS)
            and type(header.provenance) is dict
            and type(header.classes) in (list, type(None))
            and (
                header.group_names is None or (bool(header.group_names) and set(map(type, header.group_names)) == {str})
            )
        ):
            got = " ".join(text.split())[:200]
            raise PredictionsFileError(f"{KEY!r} must be the documented header, got {got}; make the file again")
        return header


# Labels that are not in the file: of the fields of some rows and the classes, the labels and which rows have one.
LabelsFrom = Callable[[Mapping[str, Any], Sequence[Any] | None], tuple[Any, Any]]


@dataclass(frozen=True)
class Names:
    """What the caller says of a file: where its fields are, and what the file does not state itself."""

    logits: Place | Sequence[str] | None = None
    probs: Place | Sequence[str] | None = None
    labels: Place | Sequence[str] | LabelsFrom | None = None
    ids: Place | Literal[False] | None = None
    groups: Place | Sequence[str] | Literal[False] | None = None
    clusters: Place | Literal[False] | None = None
    weights: Place | Literal[False] | None = None
    times: Place | Literal[False] | None = None
    posterior: Place | Sequence[str] | Literal[False] | None = None
    split: str | None = None
    multilabel: bool | None = None
    dtype: str | None = None
    classes: Sequence[Any] | None = None
    positive: Any = None
    normalize: bool = False
    scale: Literal["unit", "percent"] = "unit"
    drop_missing: bool = False
    delimiter: str | None = None
    decimal: str | None = None
    encoding: str | None = None

    def __post_init__(self) -> None:
        """Refuse what cannot be meant."""
        one_of("scale", self.scale, SCALES)
        yes_or_no("drop_missing", self.drop_missing)
        if self.decimal is not None:
            one_of("decimal", self.decimal, (".", ","))
        if self.delimiter is not None and (not isinstance(self.delimiter, str) or len(self.delimiter) != 1):
            raise ValueError(f"delimiter must be one character, got {self.delimiter!r}; for example ';' or '\\t'")
        if self.encoding is not None:
            known_encoding(self.encoding)
        if self.logits is not None and self.probs is not None:
            raise TypeError("name at most one of logits= and probs=, got both; a Predictions holds one kind of scores")
        if self.dtype is not None:
            one_of("dtype", self.dtype, ("float32", "float64"))
        if self.multilabel is not None and not isinstance(self.multilabel, bool):
            raise TypeError(f"multilabel must be True, False or None, got {self.multilabel!r}")
        if self.split is not None:
            checked_split(self.split)
        for name in (*KINDS, "labels", *OPTIONAL):
            given = getattr(self, name)
            if isinstance(given, os.PathLike):
                given = os.fspath(given)
                object.__setattr__(self, name, given)
            if given is not None and not callable(given) and (given is not False or name not in OPTIONAL):
                _check_place(name, given)

    def reads(self, name: str, header: Header | None, *, present: bool) -> bool:
        """Whether an optional field is read: as the caller says, else as the header states, else if it is there."""
        given = getattr(self, name)
        if given is not None:
            return given is not False
        if header is None:
            return present and name not in NEVER_GUESSED
        return getattr(header, name) is not None

    def stated_type(self, name: str, header: Header | None) -> str | None:
        """The type that the header states for a field, unless the caller has named another place for it."""
        if header is None or getattr(self, name) is not None:
            return None
        stated: str | None = getattr(header, "dtype" if name in KINDS else name)
        return stated


def known_encoding(name: Any) -> None:
    """Refuse an encoding that Python does not know, or that is no encoding of text."""
    try:
        "".encode(name)
    except (LookupError, TypeError):
        raise ValueError(
            f"encoding must be one that Python knows, got {name!r}; for example 'utf-8' or 'cp1252'"
        ) from None


def _check_place(name: str, given: Any) -> None:
    """Refuse what does not name a key, a file or columns."""
    one_column = name in ("ids", *NEVER_GUESSED)
    places = given if isinstance(given, (list, tuple)) and not one_column else [given]
    if not all(isinstance(place, str) for place in places):
        allowed = "a string" if one_column else "a string or a list of strings"
        raise TypeError(f"{name} must name a key, a file or columns, got {given!r}; pass {allowed}")
    if not places or not all(places):
        raise ValueError(f"{name} must name columns, got {given!r}; list them in the order of the classes")
    if len(set(places)) < len(places):
        raise ValueError(f"{name} must name every column once, got {given!r}; give each class its own")


def kind_of(names: Names, header: Header | None, existing: Iterable[str], present: Sequence[str]) -> str:
    """Whether to read logits or probabilities: as the caller says, else the header, else what alone is `present`."""
    if names.logits is not None or names.probs is not None:
        return "probs" if names.logits is None else "logits"
    if header is not None:
        return header.kind
    if len(present) == 1:
        return present[0]
    raise PredictionsFileError(
        "the file must say whether its scores are logits or probabilities, got "
        f"{'both' if present else 'neither'} in {listed(existing)}; "
        "name one, e.g. load(path, logits='...', labels='...') or load(path, probs='...', labels='...'), or of a "
        "command --score for the one probability of an event, --probs or --logits for a column per class, and --labels"
    )


def listed(names: Iterable[str]) -> str:
    """Names for an error message, not more than a reader wants to see."""
    names = list(names)
    shown = ", ".join(repr(str(name)[:60]) for name in names[:24])
    return f"{shown or 'nothing'}{f' and {len(names) - 24} more' if len(names) > 24 else ''}"


def check_unpacked_size(unpacked: int, size: int) -> None:
    """Refuse what takes far more memory than a file of `size` bytes should, before memory is asked for."""
    allowed = max(ALLOWED_BYTES, ALLOWED_RATIO * size)
    if not 0 <= unpacked <= allowed:
        raise PredictionsFileError(
            f"a file of {size} bytes must unpack to at most {allowed}, got {unpacked}; "
            "do not trust it; if you made it, save it without compression"
        )


def _type_name(values: Array | None) -> str | None:
    if values is None:
        return None
    if values.dtype.kind == "M":
        return "us"
    return str(values.dtype) if values.dtype.kind == "f" else "int" if values.dtype.kind == "i" else "str"
