"""What an evaluation keeps of each token in the place of its logits: confidence, correctness and NLL."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from focalcal.core.display import Displayed

__all__ = ["TokenReport"]

_LOGITS = 2**23  # at a time: 32 MB of float32
_IGNORED = -100


@torch.no_grad()
def token_scores(logits: Tensor, labels: Tensor, *, shift_labels: bool) -> Tensor:
    """(B, T, 3) float32 of logits (B, T, K) and labels (B, T): confidence, whether it is right, and NLL of each label.

    A causal model's logits at t are those of the label at t + 1, beside which its scores stand. Labels of -100 have
    zeros. Some thousand rows are looked at at a time: 8,192 x 50,257 logits take 100 MB besides themselves.
    """
    scores = torch.zeros(*labels.shape, 3, dtype=torch.float32, device=logits.device)
    rows, wanted, kept = logits, labels.to(logits.device), scores
    if shift_labels:
        rows, wanted, kept = logits[:, :-1], wanted[:, 1:], scores[:, 1:]
    size = max(1, _LOGITS // logits.shape[-1])
    for number, own in enumerate(wanted):
        for start in range(0, len(own), size):
            part = own[start : start + size]
            counted = part.ne(_IGNORED)
            chosen = rows[number, start : start + size][counted].float()
            if not len(chosen):
                continue
            right, largest = part[counted], chosen.max(1)
            log_sum = chosen.logsumexp(1)
            own_logit = chosen.gather(1, right[:, None])[:, 0]
            confidence = (largest.values - log_sum).exp()
            found = torch.stack([confidence, largest.indices.eq(right).float(), log_sum - own_logit], 1)
            kept[number, start : start + size][counted] = found
    return scores


@dataclass(frozen=True, eq=False, repr=False)
class TokenReport(Displayed):
    """The tokens of an evaluation, (n,) each: where they stand, which they are, and what the model said.

    Tokens of one sequence depend on each other; `sequence` says which belong together. The calibration of tokens is not
    that of answers: a model can know how often its next word is right and not know whether what it says is true.

    Args:
        confidence: probability of the most probable token.
        correct: whether that token is the label.
        nll: of the label.
        position: in the sequence.
        token: the label.
        sequence: number of the sequence.

    >>> logits, labels = torch.zeros(1, 4, 10), torch.tensor([[-100, 3, 0, 7]])
    >>> report = token_report(token_scores(logits, labels, shift_labels=False), labels)
    >>> report.frame()["tokens"], round(report.frame()["nll"][0], 4)
    ([3], 2.3026)
    """

    confidence: NDArray[np.float64]
    correct: NDArray[np.bool_]
    nll: NDArray[np.float64]
    position: NDArray[np.int64]
    token: NDArray[np.int64]
    sequence: NDArray[np.int64]

    def frame(self) -> dict[str, list[Any]]:
        """All tokens in one row."""
        return self._rows(["all"], [np.ones(len(self.nll), bool)])

    def by_position(self, parts: int = 8) -> dict[str, list[Any]]:
        """Rows of even parts of the sequence."""
        edges = np.unique(np.linspace(0, self.position.max() + 1, parts + 1).round().astype(int))
        spans = list(zip(edges[:-1].tolist(), edges[1:].tolist(), strict=True))
        inside = [(self.position >= low) & (self.position < high) for low, high in spans]
        return self._rows([f"{low} to {high - 1}" for low, high in spans], inside)

    def by_frequency(self, counts: Any = None) -> dict[str, list[Any]]:
        """Rows of tokens that are rare or frequent, by decades of their `counts` (K,), or in the evaluated labels."""
        known = np.bincount(self.token) if counts is None else np.asarray(counts)
        decade = np.floor(np.log10(np.maximum(known[self.token], 1) + 0.5)).astype(int)
        found = np.unique(decade).tolist()
        names = [f"{10**each:,} to {10 ** (each + 1) - 1:,}" for each in found]
        return self._rows(names, [decade == each for each in found])

    def _rows(self, names: list[str], inside: list[NDArray[np.bool_]]) -> dict[str, list[Any]]:
        kept = [(name, rows) for name, rows in zip(names, inside, strict=True) if rows.any()]
        confidence = [float(self.confidence[rows].mean()) for _, rows in kept]
        accuracy = [float(self.correct[rows].mean()) for _, rows in kept]
        return {
            "part": [name for name, _ in kept],
            "tokens": [int(rows.sum()) for _, rows in kept],
            "confidence": confidence,
            "accuracy": accuracy,
            "gap": [c - a for c, a in zip(confidence, accuracy, strict=True)],
            "nll": [float(self.nll[rows].mean()) for _, rows in kept],
        }


def token_report(scores: Any, labels: Any) -> TokenReport:
    """Of `token_scores` (B, T, 3) and labels (B, T), those of -100 and the first of a causal model left out."""
    scores, labels = np.asarray(scores), np.asarray(labels)
    counted = (labels != _IGNORED) & (scores[..., 0] > 0)
    sequence, position = np.nonzero(counted)
    kept = scores[counted].astype(np.float64)
    return TokenReport(kept[:, 0], kept[:, 1] == 1, kept[:, 2], position, labels[counted], sequence)
