"""How exact are float32 gradients, and what does the obvious formula lose?

    python benchmarks/loss_accuracy.py

The tables of docs/math/fused_gradient.md: the label's entry of the anchor's gradient in the form that cancels and
in the one used; the worst relative error of an FCL gradient entry by the scale of the logits; the usual
(1 - p) ** gamma. Everything is compared with float64, which resolves these logits.
"""

from __future__ import annotations

import torch
from torch import Tensor

from focalcal.losses import FocalCalibrationLoss


def relative(got: Tensor, want: Tensor) -> Tensor:
    return ((got.double() - want) / want).abs()


def label_entry(logits: Tensor, cancelling: bool) -> Tensor:
    """q + s or q^2 + S for label 0: the factor of -2 lam p_y in the anchor's gradient."""
    p = logits.softmax(1)
    own, others = p[:, 0], p[:, 1:]
    q, squares = others.sum(1), others.square().sum(1)
    return q + (squares - own * q) if cancelling else q * q + squares


def led_by(lead: float, classes: int, rows: int) -> Tensor:
    logits = torch.randn(rows, classes)
    logits[:, 0] = logits[:, 1:].amax(1) + lead
    return logits


def gradient(logits: Tensor, labels: Tensor) -> Tensor:
    leaf = logits.clone().requires_grad_()
    (grad,) = torch.autograd.grad(FocalCalibrationLoss(3, 1, reduction="sum")(leaf, labels), leaf)
    return grad


def main() -> None:
    torch.manual_seed(0)
    print("the label's entry of the anchor's gradient, ten classes, relative error: median and worst of 2,000\n")
    print("| lead | q + s: median | worst | q^2 + S: median | worst |\n|---:|---:|---:|---:|---:|")
    for lead in (4, 8, 12, 16, 20):
        logits = led_by(lead, 10, 2000)
        want = label_entry(logits.double(), cancelling=False)
        errors = [relative(label_entry(logits, cancelling=form), want) for form in (True, False)]
        print(f"| {lead} |" + "".join(f" {e.median():.0e} | {e.max():.0e} |" for e in errors))

    print("\nFCL (3, 1), leading labels: worst relative error of a gradient entry above 1e-30, 2,000 rows\n")
    print("| scale of the logits | 10 classes | 100 | 1000 |\n|---:|---:|---:|---:|")
    for scale in (1, 5, 15):
        cells = []
        for classes in (10, 100, 1000):
            logits = scale * torch.randn(2000, classes)
            labels = logits.argmax(1)
            want = gradient(logits.double(), labels)
            cells.append(relative(gradient(logits, labels), want)[want.abs() > 1e-30].max())
        print(f"| {scale} |" + "".join(f" {cell:.0e} |" for cell in cells))

    leaf = torch.tensor([[40.0, 0.0]], requires_grad=True)
    p = leaf.softmax(1)[0, 0]
    (usual,) = torch.autograd.grad(-((1 - p) ** 0.5) * p.log(), leaf)
    print(f"\n(1 - p) ** 0.5 at a logit lead of 40: gradient {usual[0].tolist()}")
    print(f"ours: {gradient(leaf.detach(), torch.tensor([0]))[0].tolist()}")


if __name__ == "__main__":
    main()
