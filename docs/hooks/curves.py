"""Loss and gradient of each objective against the probability of the label, drawn from the losses themselves."""

import io
from collections.abc import Callable
from typing import Any

import matplotlib
import torch
from matplotlib.figure import Figure
from mkdocs.structure.files import File, Files
from torch import Tensor

from focalcal.losses import functional as f

CLASSES = 10
Loss = Callable[[Tensor, Tensor], Tensor]


def focal_calibration(gamma: float, lam: float) -> Loss:
    return lambda logits, labels: f.focal_calibration(logits, labels, gamma=gamma, lam=lam)


def focal(gamma: float) -> Loss:
    return lambda logits, labels: f.focal(logits, labels, gamma=gamma)


def smoothing(epsilon: float) -> Loss:
    return lambda logits, labels: f.label_smoothing(logits, labels, epsilon=epsilon)


def dual_focal(gamma: float) -> Loss:
    return lambda logits, labels: f.dual_focal(logits, labels, gamma=gamma)


def bsce_gra(gamma: float) -> Loss:
    return lambda logits, labels: f.bsce_gra(logits, labels, gamma=gamma)


def adafocal(gamma: float) -> Loss:
    return lambda logits, labels: f.adafocal(logits, labels, edges=[0.0, 1.0], gammas=[gamma])


def multilabel(gamma: float, lam: float) -> Loss:
    """The label is 1; its logit is the difference of the two classes' logits."""

    def loss(logits: Tensor, labels: Tensor) -> Tensor:
        yes = logits[:, :1] - logits[:, 1:].logsumexp(1, keepdim=True)
        return f.multilabel_focal_calibration(yes, torch.ones_like(yes), gamma=gamma, lam=lam).squeeze(1)

    return loss


CURVES: dict[str, dict[str, Loss]] = {
    "ce": {"label_smoothing=0.1": lambda z, y: f.cross_entropy(z, y, label_smoothing=0.1)},
    "focal": {f"gamma={gamma}": focal(gamma) for gamma in (1, 3, 5)},
    "brier": {"Brier": f.brier, "matched": lambda z, y: f.brier(z, y, scale="matched")},
    "fcl": {f"gamma=3, lam={lam}": focal_calibration(3, lam) for lam in (0, 1, 4)},
    "ls": {f"epsilon={epsilon}": smoothing(epsilon) for epsilon in (0.05, 0.2)},
    "flsd53": {"FLSD-53": f.flsd, "focal, gamma=3": focal(3)},
    "dual_focal": {f"gamma={gamma}": dual_focal(gamma) for gamma in (1, 5)} | {"focal, gamma=5": focal(5)},
    "adafocal": {f"gamma={gamma}": adafocal(gamma) for gamma in (-2, 1, 5)},
    "bsce_gra": {f"gamma={gamma}": bsce_gra(gamma) for gamma in (1, 4)} | {"focal, gamma=4": focal(4)},
    "multilabel": {
        "BCE": multilabel(0, 0),
        "focal, gamma=2": multilabel(2, 0),
        "FCL, gamma=2, lam=2": multilabel(2, 2),
    },
}


def on_files(files: Files, config: Any) -> Files:
    """Add one picture per page of an objective."""
    for name, losses in CURVES.items():
        baseline = {} if name == "multilabel" else {"cross-entropy": f.cross_entropy}
        files.append(File.generated(config, f"objectives/{name}.svg", content=_against_p(baseline | losses)))
    files.append(File.generated(config, "objectives/mmce.svg", content=_mmce()))
    return files


def _against_p(losses: dict[str, Loss]) -> str:
    p = torch.linspace(0.01, 0.999, 400, dtype=torch.float64)
    others = ((1 - p) / (CLASSES - 1)).log()[:, None].expand(-1, CLASSES - 1)
    labels = torch.zeros(len(p), dtype=torch.long)
    figure, (left, right) = _panels("probability of the label", "loss", "pull on its logit, -dloss/dz")
    for label, loss in losses.items():
        logits = torch.cat([p.log()[:, None], others], 1).requires_grad_()
        values = loss(logits, labels)
        (gradient,) = torch.autograd.grad(values.sum(), logits)
        style = {"color": "grey", "linestyle": "--"} if label == "cross-entropy" else {}
        left.plot(p, values.detach(), label=label, **style)
        right.plot(p, -gradient[:, 0], **style)
    left.set_ylim(0, 5)
    left.legend(frameon=False)
    return _svg(figure)


def _mmce() -> str:
    """MMCE knows batches, not examples: 100 rows with one confidence, of which 70 are right."""
    confidence = torch.linspace(0.15, 0.99, 120, dtype=torch.float64)
    labels = torch.tensor([0] * 70 + [1] * 30)
    figure, (left, right) = _panels("confidence of every row, 70 of 100 right", "MMCE", "pull on the top logits")
    for variant in ("as_coded", "unweighted"):
        values, pulls = [], []
        for p in confidence:
            row = torch.cat([p.log()[None], ((1 - p) / (CLASSES - 1)).log().expand(CLASSES - 1)])
            logits = row.repeat(100, 1).requires_grad_()
            value = f.mmce(logits, labels, variant=variant)
            (gradient,) = torch.autograd.grad(value, logits)
            values.append(value.item())
            pulls.append(-gradient[:, 0].sum().item())
        left.plot(confidence, values, label=f'variant="{variant}"')
        right.plot(confidence, pulls)
    left.legend(frameon=False)
    return _svg(figure)


def _panels(x: str, *ys: str) -> tuple[Figure, Any]:
    figure = Figure(figsize=(9, 3.2), layout="constrained")
    axes = figure.subplots(1, 2)
    for axis, y in zip(axes, ys, strict=True):
        axis.set(xlabel=x, ylabel=y)
        axis.spines[["top", "right"]].set_visible(False)
        axis.axhline(0, color="lightgrey", linewidth=0.8, zorder=0)
    return figure, axes


def _svg(figure: Figure) -> str:
    file = io.StringIO()
    with matplotlib.rc_context({"svg.hashsalt": "focalcal"}):
        figure.savefig(file, format="svg", metadata={"Date": None}, facecolor="white")
    return file.getvalue()
