"""The global-pooling CNN for documents that Kumar et al. (2018) and Mukhoti et al. (2020) calibrate."""

from __future__ import annotations

import torch.nn.functional as F
from torch import Tensor, nn

from focalcal.core.checks import share, whole

KERNEL = 5
POOL = 5
SHORTEST = 3 * (KERNEL - 1) + 2 * (POOL - 1) + 1


class GlobalPoolingCNN(nn.Module):
    """Three valid convolutions of width 5 and 128 channels, max pools of 5 with stride 1 between them, a global max.

    Token ids (N, L), L at least 21, to logits (N, classes). After the global max: 128 to 128, rectifier, dropout,
    128 to classes. 247,316 parameters for dimension 100 and 20 classes, and the embedding's beside them.

    `embedding` is a matrix (V, D), one row per token id, or None for `vocabulary` random rows of `dimension` from
    N(0, 1). A matrix is kept as it is and a random one trained, unless `train_embedding` says otherwise. Id 0 is
    padding and never trained; its random vector is zero. Layers start from torch's defaults, as in the reference.

    Args:
        classes: how many logits.
        embedding: a matrix (V, D), one row per token id; None: random rows from N(0, 1).
        vocabulary, dimension: how many random rows, and how long.
        train_embedding: None: a matrix is kept as it is and a random one trained.
        dropout: the rate.

    >>> from focalcal.lab.models import build_model
    >>> network = build_model("gp_cnn", classes=10, vocabulary=100)
    >>> sum(parameter.numel() for parameter in network.parameters())
    256026
    """

    def __init__(
        self,
        classes: int,
        *,
        embedding: Tensor | None = None,
        vocabulary: int = 20_000,
        dimension: int = 100,
        train_embedding: bool | None = None,
        dropout: float = 0.3,
    ) -> None:
        super().__init__()
        classes = whole("classes", classes, 2)
        self.embedding = word_embedding(embedding, vocabulary, dimension, train_embedding)
        self.conv1 = nn.Conv1d(self.embedding.embedding_dim, 128, KERNEL)
        self.conv2 = nn.Conv1d(128, 128, KERNEL)
        self.conv3 = nn.Conv1d(128, 128, KERNEL)
        self.hidden = nn.Linear(128, 128)
        self.dropout = nn.Dropout(share("dropout", dropout))
        self.linear = nn.Linear(128, classes)

    def forward(self, tokens: Tensor) -> Tensor:
        """Logits (N, classes)."""
        if tokens.dim() != 2 or tokens.shape[1] < SHORTEST:
            raise ValueError(
                f"tokens must be (N, L) with L >= {SHORTEST}, which the convolutions and pools use up, "
                f"got shape {tuple(tokens.shape)}; pad the documents with id 0"
            )
        maps = self.embedding(tokens).transpose(1, 2)
        maps = F.max_pool1d(F.relu(self.conv1(maps)), POOL, stride=1)
        maps = F.max_pool1d(F.relu(self.conv2(maps)), POOL, stride=1)
        strongest = F.relu(self.conv3(maps)).amax(2)
        logits: Tensor = self.linear(self.dropout(F.relu(self.hidden(strongest))))
        return logits


def word_embedding(
    embedding: Tensor | None, vocabulary: int, dimension: int, train_embedding: bool | None
) -> nn.Embedding:
    """The first layer of a network for tokens, as `GlobalPoolingCNN` describes its arguments."""
    if embedding is None:
        rows, columns = whole("vocabulary", vocabulary, 2), whole("dimension", dimension, 1)
        layer = nn.Embedding(rows, columns, padding_idx=0)
    else:
        matrix = _matrix(embedding)
        layer = nn.Embedding(matrix.shape[0], matrix.shape[1], padding_idx=0)
        layer.weight = nn.Parameter(matrix)
    layer.weight.requires_grad_(embedding is None if train_embedding is None else train_embedding)
    return layer


def _matrix(embedding: Tensor) -> Tensor:
    if not isinstance(embedding, Tensor) or not embedding.is_floating_point():
        kind = embedding.dtype if isinstance(embedding, Tensor) else type(embedding).__name__
        raise TypeError(f"embedding must be a floating-point tensor, got {kind}; use torch.as_tensor(...).float()")
    if embedding.dim() != 2 or 0 in embedding.shape:
        raise ValueError(f"embedding must be a matrix (V, D), one row per token id, got shape {tuple(embedding.shape)}")
    return embedding.detach().clone()  # training it must not change the caller's
