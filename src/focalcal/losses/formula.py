"""The focal family as differentiable torch operations: the reference for the kernels, and what runs under
torch.compile, functorch, forward-mode AD and double backward."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import torch
from torch import Tensor
from torch.nn.functional import logsigmoid

from focalcal.losses.numerics import against_label, at_least_float32, is_class

if TYPE_CHECKING:
    from jaxtyping import Float, Int


class Terms(NamedTuple):
    """focal * -(1 - p_y)^gamma log p_y + lam * |p - e_y|^2.

    `gammas` (B,) and `edges` (B + 1, rising, the outer two of no effect) replace gamma by a step function of
    p_y that carries no gradient; where it is negative the weight is (1 + p_y)^|gamma| (AdaFocal). Without lam
    and gammas, `smoothing` adds smoothing * sum_{k != y} -log p_k (label smoothing), or `rival` makes the weight
    (1 - p_y + p_j)^gamma with p_j the largest probability below p_y (Dual Focal).

    Two settle when the number of classes is known: `matched` divides all of it by r (`focalcal.losses.scale`), and
    `label_smoothing` has the meaning of `CrossEntropyLoss`, the expectation over a label that is drawn anew from all K
    classes with that probability.
    """

    focal: float = 1.0
    gamma: float = 0.0
    lam: float = 0.0
    edges: Tensor | None = None
    gammas: Tensor | None = None
    smoothing: float = 0.0
    rival: bool = False
    matched: bool = False
    label_smoothing: float = 0.0


def step_gamma(terms: Terms, p: Float[Tensor, "*n"]) -> Float[Tensor, "*n"]:
    """The gamma of the step [lo, hi) in which p lies; the first is open below, the last above."""
    assert terms.edges is not None
    assert terms.gammas is not None
    inner = terms.edges[1:-1].to(p).contiguous()
    return terms.gammas.to(p)[torch.bucketize(p, inner, right=True)]


def focal_term(u: Float[Tensor, "*n"], terms: Terms, rival: Float[Tensor, "*n"] | None = None) -> Float[Tensor, "*n"]:
    """-(1 - p)^gamma log p from u = log((1 - p) / p). At u = inf (p = 0) it is u itself, as cross-entropy is.

    `rival` is p_j / (1 - p): 1 - p + p_j = (1 - p) (1 + rival) is a product, right when p is near one.
    """
    hopeless, odds = u == torch.inf, u
    u = torch.where(hopeless, 0.0, u)  # 0 * inf would make its gradient NaN
    log_p = logsigmoid(-u)
    if terms.gammas is not None:
        gamma = step_gamma(terms, log_p.detach().exp())
        log_base = torch.where(gamma < 0, torch.log1p(log_p.exp()), logsigmoid(u))
        power = torch.where(gamma == 0, 1.0, (gamma.abs() * log_base).exp())
    elif terms.gamma == 0:
        power = torch.ones_like(u)
    else:
        log_base = logsigmoid(u) if rival is None else logsigmoid(u) + torch.log1p(rival)
        power = (terms.gamma * log_base).exp()
    return torch.where(hopeless, odds, -power * log_p)


def anchor_term(logits: Float[Tensor, "n k *d"], labels: Int[Tensor, "n *d"]) -> Float[Tensor, "n *d"]:
    """|p - e_y|^2, from the ratios v_k = p_k / p_t to the top class t, whose own is left out.

    With V = sum v_k and W = sum v_k^2 it is (V^2 + W) / (1 + V)^2 if t is the label, and else
    1 - 2 v_y / (1 + V) + (1 + W) / (1 + V)^2. Taking t rather than the label as the pivot keeps the gradient
    exact both for a label that leads and for one that lags far behind.
    """
    best = logits.detach().argmax(1)
    below = logits - logits.gather(1, best.unsqueeze(1))
    v = below.exp().masked_fill(is_class(best, logits.shape[1]), 0.0)
    # below is 0 at the top class itself, or NaN where the row has a NaN or an infinity that must not be lost
    rest, squares = v.sum(1) + below.detach().gather(1, best.unsqueeze(1)).squeeze(1), v.square().sum(1)
    total = 1 + rest
    leading = (rest.square() + squares) / total.square()
    lagging = 1 - 2 * v.gather(1, labels.unsqueeze(1)).squeeze(1) / total + (1 + squares) / total.square()
    return torch.where(best == labels, leading, lagging)


def rival_share(
    logits: Float[Tensor, "n k *d"], labels: Int[Tensor, "n *d"], shares: Float[Tensor, "n k *d"]
) -> Float[Tensor, "n *d"]:
    """The share of the best class ranked below the label, 0 if there is none; equal ones divide its gradient.

    The logits tell which it is, not the shares: torch.compile computes those anew in the backward, where the maximum
    of the forward need not be among them.
    """
    below = logits < logits.gather(1, labels.unsqueeze(1))
    best = logits.detach().masked_fill(~below, -torch.inf).amax(1, keepdim=True)
    next_below = below & (logits == best)
    return torch.where(next_below, shares, 0.0).sum(1) / next_below.sum(1).clamp(min=1)


def per_example(logits: Float[Tensor, "n k *d"], labels: Int[Tensor, "n *d"], terms: Terms) -> Float[Tensor, "n *d"]:
    """The loss of each example, from class indices that are in range."""
    logits = at_least_float32(logits)
    parts = []
    if terms.focal:
        u, shares = against_label(logits, labels)
        parts.append(terms.focal * focal_term(u, terms, rival_share(logits, labels, shares) if terms.rival else None))
    if terms.lam:
        parts.append(terms.lam * anchor_term(logits, labels))
    if terms.smoothing:
        log_p = torch.log_softmax(logits, 1)
        parts.append(-terms.smoothing * log_p.masked_fill(is_class(labels, logits.shape[1]), 0.0).sum(1))
    return sum(parts[1:], parts[0])


def per_example_expected(
    logits: Float[Tensor, "n k *d"], target: Float[Tensor, "n k *d"], weight: Tensor | None, terms: Terms
) -> Float[Tensor, "n *d"]:
    """sum_k t_k w_k loss(., k) from class probabilities t. A class with t_k = 0 adds 0, whatever its logit.

    1 - p_k is exact for the top class (summed over the others); for the rest p_k <= 1/2 and nothing cancels.
    """
    logits = at_least_float32(logits)
    target = target.to(logits.dtype)
    if weight is not None:
        target = target * weight.to(target).view(-1, *[1] * (logits.dim() - 2))
    best = logits.detach().argmax(1)
    top = is_class(best, logits.shape[1])
    top_u, shares = against_label(logits, best)
    p = torch.softmax(logits, 1)
    lower = torch.where(top, 0.0, p)
    log_p = torch.log_softmax(logits, 1)
    u = torch.where(top, top_u.unsqueeze(1), torch.log1p(-lower) - log_p)
    u = torch.where((target == 0) & (u == torch.inf), 0.0, u)  # 0 * inf would be NaN
    loss = terms.focal * focal_term(u, terms) if terms.focal else torch.zeros_like(u)
    if terms.lam:
        others = top_u.sigmoid().square() * shares.square().sum(1)  # sum of p_k^2 over all but the top
        p_top = top_u.neg().sigmoid()
        anchor_lower = (1 - lower).square() + (p_top.square() + others).unsqueeze(1) - lower.square()
        anchor_top = (top_u.sigmoid().square() + others).unsqueeze(1)
        loss = loss + terms.lam * torch.where(top, anchor_top, anchor_lower)
    return (target * loss).sum(1)
