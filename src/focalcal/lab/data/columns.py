"""Columns of a table as the inputs of a network: numbers on one scale, categories as codes or one by one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from focalcal.core.checks import one_of
from focalcal.core.extras import required
from focalcal.lab.data.examples import Examples

SCALES = ("standard", "quantile", "none")
ENCODINGS = ("codes", "one_hot")
MOST_CATEGORIES = 64  # of a column; what is rarer shares a code with what is unknown
Scaling = Any  # of scikit-learn: fit, transform


@dataclass(frozen=True)
class Encoder:
    """What the training rows say about the columns.

    numbers     of each column its median and whether missing values are marked
    categories  of each column its categories, in the order of their codes from 1
    """

    numbers: Mapping[str, tuple[float, bool]]
    categories: Mapping[str, tuple[str, ...]]
    scaling: Scaling | None
    encoding: str

    @classmethod
    def fitted(
        cls, table: Any, rows: NDArray[Any], categories: Sequence[str] = (), *, scale: str, encoding: str
    ) -> Encoder:
        """Fitted to these rows of a pyarrow table."""
        one_of("encoding", encoding, ENCODINGS)
        types = required("pyarrow", purpose="Reading a table").types
        numbers: dict[str, tuple[float, bool]] = {}
        named: dict[str, tuple[str, ...]] = {}
        for name in table.column_names:
            kind = table.column(name).type
            if name in categories or not (types.is_integer(kind) or types.is_floating(kind) or types.is_decimal(kind)):
                named[name] = _most_frequent(name, _texts(table, name)[rows])
            else:
                values = _numbers(table, name)[rows]
                known = values[np.isfinite(values)]
                numbers[name] = (float(np.median(known)) if len(known) else 0.0, len(known) < len(values))
        fitted = cls(numbers, named, None, encoding)
        return replace(fitted, scaling=_scaling(fitted._filled(table)[rows], scale) if numbers else None)

    @property
    def sizes(self) -> tuple[int, ...]:
        """How many codes each of the last inputs has; none where categories are inputs one by one."""
        return tuple(len(names) + 1 for names in self.categories.values()) if self.encoding == "codes" else ()

    def encode(self, table: Any) -> NDArray[np.float32]:
        """(N, inputs): the numbers, the marks of missing ones, then the categories."""
        filled = self._filled(table)
        parts = [filled if self.scaling is None else self.scaling.transform(filled)]
        parts += [~np.isfinite(_numbers(table, name))[:, None] for name, (_, marked) in self.numbers.items() if marked]
        for name, known in self.categories.items():
            names, place = np.unique(_texts(table, name), return_inverse=True)
            codes = {category: code for code, category in enumerate(known, 1)}
            column = np.array([codes.get(text, 0) for text in names.tolist()], int)[place]
            parts.append(column[:, None] if self.encoding == "codes" else np.eye(len(known) + 1)[column])
        return np.concatenate(parts, axis=1).astype(np.float32)

    def describe(self) -> dict[str, Any]:
        """For the provenance."""
        return {
            "numbers": list(self.numbers),
            "categories": {name: len(known) for name, known in self.categories.items()},
        }

    def _filled(self, table: Any) -> NDArray[np.float64]:
        """(N, numbers) with the medians in place of what is missing."""
        columns = [np.empty((table.num_rows, 0))]
        for name, (median, _) in self.numbers.items():
            values = _numbers(table, name)
            columns.append(np.where(np.isfinite(values), values, median)[:, None])
        return np.concatenate(columns, axis=1)


def standardised(splits: Mapping[str, Examples], scale: str) -> dict[str, Examples]:
    """The features of every split on the scale of the training rows."""
    scaling = _scaling(splits["train"].inputs, scale)
    return {
        split: rows
        if scaling is None or not len(rows)
        else replace(rows, inputs=scaling.transform(rows.inputs).astype(np.float32))
        for split, rows in splits.items()
    }


def _scaling(values: NDArray[Any], scale: str) -> Scaling | None:
    one_of("scale", scale, SCALES)
    if scale == "none" or not len(values):
        return None
    from sklearn.preprocessing import QuantileTransformer, StandardScaler

    if scale == "standard":
        return StandardScaler().fit(values)
    quantiles = min(1000, len(values))
    return QuantileTransformer(n_quantiles=quantiles, output_distribution="normal", random_state=0).fit(values)


def _numbers(table: Any, name: str) -> NDArray[np.float64]:
    """NaN where there is none."""
    return np.asarray(table.column(name).cast("float64", safe=False).to_numpy(), np.float64)


def _texts(table: Any, name: str) -> NDArray[Any]:
    """An empty text where there is none."""
    return np.asarray(table.column(name).cast("string").fill_null("").to_numpy(), np.str_)


def _most_frequent(name: str, texts: NDArray[Any]) -> tuple[str, ...]:
    names, counts = np.unique(texts[texts != ""], return_counts=True)
    if len(names) > max(MOST_CATEGORIES, 0.9 * len(texts)):
        raise ValueError(
            f"columns must hold numbers or categories, got {name!r} with {len(names)} values in {len(texts)} training "
            "rows; add it to data_options.drop, or name it as ids"
        )
    return tuple(sorted(names[np.argsort(-counts, kind="stable")][:MOST_CATEGORIES].tolist()))
