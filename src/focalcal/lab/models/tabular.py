"""Classifiers of tables: a perceptron with embeddings of numbers and categories, and anybody's estimators."""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from focalcal.core.checks import finite_at_least, whole
from focalcal.lab.models.small_networks import MLP


class TabularMLP(nn.Module):
    """A perceptron on embedded columns (Gorishniy, Rubachev and Babenko 2022): strong on tables, and cheap.

    A number x becomes ReLU(A [sin 2 pi c x, cos 2 pi c x, x] + b) with its own A, b and `frequencies` numbers c, drawn
    from N(0, `spread`) and trained; a category its row of an embedding. Inputs (N, features), whose last columns are
    the codes of `categories`, one size each, to logits (N, classes). `width` is the size of an embedding; without
    `frequencies` numbers go in as they are.

    Args:
        classes: how many logits.
        features: columns.
        categories: how many codes each of the last columns has.
        hidden: widths of the hidden layers.
        dropout: the rate.
        frequencies: numbers c of each column.
        width: size of an embedding.
        spread: of the frequencies at the start.

    >>> from focalcal.lab.models import build_model
    >>> network = build_model("tabular_mlp", classes=10, features=4)
    >>> sum(parameter.numel() for parameter in network.parameters())
    22634
    """

    starts: Tensor
    sizes: Tensor

    def __init__(
        self,
        classes: int,
        *,
        features: int,
        categories: Sequence[int] = (),
        hidden: Sequence[int] = (128, 128),
        dropout: float = 0.0,
        frequencies: int = 8,
        width: int = 8,
        spread: float = 0.1,
    ) -> None:
        super().__init__()
        self.features, self.numbers = whole("features", features, 1), features - len(categories)
        rows, width = whole("frequencies", frequencies, 0), whole("width", width, 1)
        sizes = [whole("categories", size, 1) for size in categories]
        if self.numbers < 0:
            raise ValueError(f"categories must be at most the {features} features, got {len(sizes)}; raise features")
        if rows and self.numbers:
            drawn = torch.randn(self.numbers, rows) * finite_at_least("spread", spread, 0.0)
            self.frequencies = nn.Parameter(drawn)
            bound = 1 / math.sqrt(2 * rows + 1)
            self.mix = nn.Parameter(torch.empty(self.numbers, 2 * rows + 1, width).uniform_(-bound, bound))
            self.shift = nn.Parameter(torch.empty(self.numbers, width).uniform_(-bound, bound))
        self.periodic = bool(rows and self.numbers)
        # One table for all columns: a column's codes begin where the one before ends.
        self.register_buffer("starts", torch.tensor([0, *sizes]).cumsum(0)[:-1], persistent=False)
        self.register_buffer("sizes", torch.tensor(sizes, dtype=torch.long), persistent=False)
        if sizes:
            self.embedding = nn.Embedding(sum(sizes), width)
        embedded = self.numbers * (width if self.periodic else 1) + len(sizes) * width
        self.perceptron = MLP(classes, features=embedded, hidden=hidden, dropout=dropout)

    def forward(self, inputs: Tensor) -> Tensor:
        """Logits (N, classes)."""
        if inputs.dim() != 2 or inputs.shape[1] != self.features:
            raise ValueError(f"inputs must be (N, {self.features}), the features, got shape {tuple(inputs.shape)}")
        numbers, parts = inputs[:, : self.numbers], []
        if self.periodic:
            angles = 2 * math.pi * numbers[:, :, None] * self.frequencies
            waves = torch.cat([angles.sin(), angles.cos(), numbers[:, :, None]], 2)
            # (numbers, N, .) @ (numbers, ., width): a layer of its own for each
            parts.append(F.relu(torch.bmm(waves.transpose(0, 1), self.mix).transpose(0, 1) + self.shift).flatten(1))
        else:
            parts.append(numbers)
        if len(self.sizes):
            codes = torch.minimum(inputs[:, self.numbers :].long(), self.sizes - 1)
            parts.append(self.embedding(codes + self.starts).flatten(1))
        logits: Tensor = self.perceptron(torch.cat(parts, 1))
        return logits


def is_estimator(builder: Callable[..., Any]) -> bool:
    """Whether a builder makes what is fitted at once and not by gradients: scikit-learn's classifiers and those like
    them.

    Args:
        builder: as `model_builder` returns it.

    Returns:
        True or False.

    >>> from sklearn.naive_bayes import GaussianNB
    >>> is_estimator(GaussianNB)
    True
    """
    return callable(getattr(builder, "fit", None)) and not (inspect.isclass(builder) and issubclass(builder, nn.Module))


class EstimatorNetwork(nn.Module):
    """A classifier with `fit` and `predict_proba` as a network: its logits are the logarithms of its probabilities.

    A class that it gives no probability, as forests do, has the logarithm of the smallest float32, about -87, so that
    what is stored is finite: an NLL that one such row raises by 87 shows it.

    Args:
        made: the classifier.
        classes: how many there are.

    >>> import torch
    >>> from sklearn.linear_model import LogisticRegression
    >>> network = EstimatorNetwork(LogisticRegression(), classes=2)
    >>> inputs = np.arange(6.0).reshape(6, 1)
    >>> network.fit(inputs, np.array([0, 0, 0, 1, 1, 1]))
    >>> network(torch.as_tensor(inputs)).argmax(1)
    tensor([0, 0, 0, 1, 1, 1])
    """

    def __init__(self, made: Any, classes: int) -> None:
        super().__init__()
        self.made, self.classes = made, classes

    def fit(self, inputs: Any, labels: Any) -> None:
        """To these rows, flattened; every class has to occur."""
        if len(missing := np.setdiff1d(np.arange(self.classes), labels)):
            raise ValueError(f"every class must occur in the training rows of an estimator, got none of {missing[0]}")
        self.made.fit(_flat(inputs), np.asarray(labels))

    def forward(self, inputs: Tensor) -> Tensor:
        """Logits (N, classes)."""
        probs = np.asarray(self.made.predict_proba(_flat(inputs)), np.float64)
        return torch.from_numpy(np.log(probs.clip(np.finfo(np.float32).tiny)).astype(np.float32))


def _flat(inputs: Any) -> Any:
    values = np.asarray(inputs)
    return values.reshape(len(values), -1)
