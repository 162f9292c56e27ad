"""The deep averaging network of Iyyer, Manjunatha, Boyd-Graber and Daumé III (2015), ACL-IJCNLP."""

from __future__ import annotations

from collections.abc import Sequence

import torch.nn.functional as F
from torch import Tensor, nn

from focalcal.lab.models.small_networks import MLP
from focalcal.lab.models.text_cnn import word_embedding


class DeepAveragingNetwork(nn.Module):
    """The mean of a document's word vectors, then a perceptron: a document classifier that trains in seconds.

    Token ids (N, L) to logits (N, classes); id 0 is padding and not part of the mean, which is zero without any word.
    Without hidden layers it is the classifier of fastText. `embedding`, `vocabulary`, `dimension` and `train_embedding`
    are those of `GlobalPoolingCNN`. 15,508 parameters for dimension 100, a hidden layer of 128 and 20 classes, and the
    embedding's beside them. Layers start from torch's defaults.

    Args:
        classes: how many logits.
        embedding: a matrix (V, D), one row per token id; None: random rows from N(0, 1).
        vocabulary, dimension: how many random rows, and how long.
        train_embedding: None: a matrix is kept as it is and a random one trained.
        dropout: the rate.
        hidden: widths of the hidden layers.

    >>> from focalcal.lab.models import build_model
    >>> network = build_model("dan", classes=10, vocabulary=100)
    >>> sum(parameter.numel() for parameter in network.parameters())
    24218
    """

    def __init__(
        self,
        classes: int,
        *,
        embedding: Tensor | None = None,
        vocabulary: int = 20_000,
        dimension: int = 100,
        train_embedding: bool | None = None,
        hidden: Sequence[int] = (128,),
        dropout: float = 0.3,
    ) -> None:
        super().__init__()
        self.embedding = word_embedding(embedding, vocabulary, dimension, train_embedding)
        self.classifier = MLP(classes, features=self.embedding.embedding_dim, hidden=hidden, dropout=dropout)

    def forward(self, tokens: Tensor) -> Tensor:
        """Logits (N, classes)."""
        if tokens.dim() != 2:
            raise ValueError(f"tokens must be (N, L), got shape {tuple(tokens.shape)}; pad the documents with id 0")
        means = F.embedding_bag(tokens, self.embedding.weight, mode="mean", padding_idx=0)
        logits: Tensor = self.classifier(means)
        return logits
