"""The pass over an array of probabilities, as a function of tensors."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import torch
from torch import Tensor

from focalcal._native import available, kernel
from focalcal._native.fused_loss import evenly_spaced

DTYPES = {torch.float32: 0, torch.float64: 1}
_BRIER, _NLL, _CLASSES = 1, 2, 4


class ScorePass(NamedTuple):
    """What one pass gives; what was not asked for is None."""

    bad: int  # the flat position of the first row that holds no probabilities or a wrong label, or -1
    totals: Tensor  # rows counted, wrong ones, sums of Brier scores and of NLLs, how far a row misses one at most
    bins: Tensor  # (3, bins): count, sum of confidences, how many right
    classes: Tensor | None  # (3, K, bins): the same for each class's probability against its label
    confidence: Tensor | None  # for each row, in the dtype of the probabilities
    correct: Tensor | None  # for each row, bool
    brier: Tensor | None
    nll: Tensor | None


def usable(probs: Tensor) -> bool:
    """True if the kernel can read the array: float32 or float64 on the CPU."""
    return probs.dtype in DTYPES and probs.is_cpu and available()


def score_pass(
    probs: Tensor,
    labels: Tensor,
    edges: Tensor,
    tolerance: float,
    least: float,
    *,
    ignore_index: int | None = None,
    classes: bool = False,
    brier: bool = False,
    nll: bool = False,
    rows: bool = False,
    instruction_set: int = -1,
) -> ScorePass:
    """Probabilities (N, K, d1, ...) and int64 labels (N, d1, ...), binned at evenly spaced float64 `edges`.

    A row holds probabilities if no entry is below `least` and their sum is within `tolerance` of one; a p_y below 0 has
    the logarithm of 0. `rows` asks for each row's values besides the sums. After a bad row nothing else is to be used.
    """
    if probs.is_neg():
        probs = probs.resolve_neg()
    if len(probs.shape) == 2:
        strides, inner = (*probs.stride(), 1), 1
    else:
        inner = math.prod(probs.shape[2:])
        probs, strides = evenly_spaced(probs)
    labels, edges = labels.contiguous(), edges.contiguous()
    outer, columns = probs.shape[:2]
    count, bins = outer * inner, len(edges) - 1
    if labels.dtype is not torch.int64 or labels.numel() != count or edges.dtype is not torch.float64:
        raise TypeError(f"labels must be {count} int64 and edges float64, got {labels.numel()} {labels.dtype}")
    totals = torch.zeros(5, dtype=torch.float64)
    sums = torch.zeros(3, bins, dtype=torch.float64)
    by_class = torch.zeros(3, columns, bins, dtype=torch.float64) if classes else None
    confidence = torch.empty(count, dtype=probs.dtype) if rows else None
    correct = torch.empty(count, dtype=torch.bool) if rows else None
    row_nll = torch.zeros(count, dtype=torch.float64) if rows and nll else None
    row_brier = torch.zeros(count, dtype=torch.float64) if rows and brier else None
    bad = kernel().score_pass(
        probs.data_ptr(), DTYPES[probs.dtype], outer, columns, inner, *strides, labels.data_ptr(),
        ignore_index is not None, ignore_index or 0, tolerance, least,
        _BRIER * brier | _NLL * nll | _CLASSES * classes, bins, edges.data_ptr(), totals.data_ptr(), sums.data_ptr(),
        _address(by_class), _address(confidence), _address(correct), _address(row_nll), _address(row_brier),
        torch.get_num_threads(), instruction_set,
    )  # fmt: skip
    return ScorePass(bad, totals, sums, by_class, confidence, correct, row_brier, row_nll)


def bin_moments(confidence: Tensor, correct: Tensor, edges: Tensor, *, even: bool) -> Tensor:
    """(5, bins): the sums over each bin of 1, f, a, f^2 and f a, for confidences f and correctness a (bool).

    `even` says that the edges are k / bins, where a value's bin need not be searched for.
    """
    confidence, correct, edges = confidence.contiguous(), correct.contiguous(), edges.contiguous()
    if correct.dtype is not torch.bool or correct.shape != confidence.shape or edges.dtype is not torch.float64:
        raise TypeError(f"correct must be bool of shape {tuple(confidence.shape)}, got {correct.dtype}")
    sums = torch.zeros(5, len(edges) - 1, dtype=torch.float64)
    kernel().bin_moments(
        confidence.data_ptr(), DTYPES[confidence.dtype], correct.data_ptr(), confidence.numel(),
        edges.data_ptr(), len(edges) - 1, even, sums.data_ptr(),
    )  # fmt: skip
    return sums


def _address(tensor: Any) -> int:
    return 0 if tensor is None else int(tensor.data_ptr())
