"""log p and log(1 - p) of every class, bounded for a fit."""

from __future__ import annotations

from typing import TYPE_CHECKING

from torch import Tensor

from focalcal.core.softmax_logs import log_probs_and_complements

if TYPE_CHECKING:
    from jaxtyping import Float

_CERTAIN = -1e3  # as certain as can be


def bounded_logs(logits: Float[Tensor, "n k"]) -> tuple[Float[Tensor, "n k"], Float[Tensor, "n k"]]:
    """log p_k and log(1 - p_k), none below -1000: a row of enormous logits does not outweigh all others in a fit."""
    log_p, log_not_p = log_probs_and_complements(logits)
    return log_p.clamp(min=_CERTAIN), log_not_p.clamp(min=_CERTAIN)
