"""BERT for documents from the package `transformers`, in the size of MiniLM.

Devlin et al. (2019), "BERT: pre-training of deep bidirectional transformers for language understanding"; Wang et al.
(2020), "MiniLM: deep self-attention distillation for task-agnostic compression of pre-trained transformers".
"""

from __future__ import annotations

import torch
from torch import Tensor, nn

from focalcal.core.checks import share, whole
from focalcal.lab.models.vision_transformers import classifier

_TOGETHER = 64  # documents of an evaluation, whose activations stay near the processor


class TextTransformer(nn.Module):
    """Word pieces, `layers` blocks of `width` with `heads` heads, the first token's vector, a linear layer.

    Token ids (N, L), padded with 0 behind the text, to logits (N, classes); columns that are padding in every row cost
    nothing, and no token attends to padding. L is at most 512. 22,714,756 parameters for 4 classes. The linear layer is
    computed in float32, whatever the others are in.

    Random weights are N(0, 0.02) with zero biases; `pretrained` is a folder or a hub id in the format of
    `transformers`, of this size. `dropout` is that of the embeddings, the blocks, the attention and the last layer.

    Args:
        classes: how many logits.
        pretrained: what it starts from; None: random weights.
        vocabulary: word pieces.
        width, layers, heads: of the blocks.
        dropout: the rate.

    >>> from focalcal.lab.models import build_model
    >>> network = build_model("minilm", classes=10, vocabulary=100, layers=1)
    >>> sum(parameter.numel() for parameter in network.parameters())
    2162698
    """

    def __init__(
        self,
        classes: int,
        *,
        pretrained: str | None = None,
        vocabulary: int = 30_522,
        width: int = 384,
        layers: int = 6,
        heads: int = 12,
        dropout: float = 0.1,
    ) -> None:
        super().__init__()
        rate = share("dropout", dropout)
        architecture = {
            "vocab_size": whole("vocabulary", vocabulary, 2),
            "hidden_size": whole("width", width, 1),
            "num_hidden_layers": whole("layers", layers, 1),
            "num_attention_heads": whole("heads", heads, 1),
            "intermediate_size": 4 * width,
            "hidden_dropout_prob": rate,
            "attention_probs_dropout_prob": rate,
        }
        kind = "ForSequenceClassification"
        self.network = classifier(
            "Bert", architecture, classes=whole("classes", classes, 2), pretrained=pretrained, kind=kind
        )

    def forward(self, tokens: Tensor) -> Tensor:
        """Logits (N, classes)."""
        if tokens.dim() != 2:
            raise ValueError(f"tokens must be (N, L), got shape {tuple(tokens.shape)}; pad the documents with id 0")
        if self.training:
            return self._logits(tokens)
        order = (tokens != 0).sum(1).argsort()  # texts of alike lengths together
        logits = torch.cat([self._logits(tokens[rows]) for rows in torch.split(order, _TOGETHER)])
        return logits[order.argsort()]

    def _logits(self, tokens: Tensor) -> Tensor:
        there = tokens != 0
        longest = max(1, int(there.sum(1).max())) if len(tokens) else 1
        states = self.network.bert(input_ids=tokens[:, :longest], attention_mask=there[:, :longest]).pooler_output
        with torch.autocast(tokens.device.type, enabled=False):
            head = self.network.classifier
            logits: Tensor = head(self.network.dropout(states.to(head.weight.dtype)))
        return logits
