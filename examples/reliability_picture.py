"""Reliability before and after: cross-entropy, the same with a temperature, and FCL, on a network that overfits.

python examples/reliability_picture.py [FILE.png]
"""

import sys
import tempfile
from pathlib import Path

import matplotlib
import torch

matplotlib.use("Agg")
import matplotlib.pyplot as plt

from focalcal import ReliabilityDisplay, TemperatureScaling, metrics
from focalcal.lab.store import Store
from focalcal.lab.studies import run_spec, spec_of
from focalcal.lab.training import recipe


def main(path: Path) -> None:
    with tempfile.TemporaryDirectory() as folder:
        store, overfits = Store(folder), recipe("teacher_overfit_mlp_lite")
        ce = run_spec(spec_of(overfits, "ce", seed=0), store)
        fcl = run_spec(spec_of(overfits, "fcl", {"gamma": 4, "lam": 0.5, "scale": "matched"}, seed=0), store)
        held_out, test = ce.predictions("val"), ce.predictions("test")
        scaled = TemperatureScaling().fit(held_out.logits, held_out.labels).predict_proba(test.logits)
        panels: dict[str, tuple[torch.Tensor, torch.Tensor]] = {
            "cross-entropy": (test.probs, test.labels),
            "FCL (gamma = 4, lam = 0.5, matched)": (fcl.predictions("test").probs, test.labels),
            "cross-entropy with a temperature": (scaled, test.labels),
        }
    figure, axes = plt.subplots(1, 3, figsize=(11, 4.2), layout="constrained")
    for ax, (title, (probs, labels)) in zip(axes, panels.items(), strict=True):
        ReliabilityDisplay.from_predictions(probs, labels).plot(ax=ax)
        ece = 100 * metrics.ece(probs, labels)
        ax.set_title(f"{title}\nECE {ece:.1f} %", fontsize=10)
        print(f"{title}: ECE {ece:.1f} %, NLL {metrics.nll(probs, labels):.3f}")
    figure.savefig(path, dpi=110)


if __name__ == "__main__":
    if len(sys.argv) > 1 and sys.argv[1].endswith(".png"):
        main(Path(sys.argv[1]))
    else:
        with tempfile.TemporaryDirectory() as folder:
            main(Path(folder) / "reliability.png")
