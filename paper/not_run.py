"""What the studies that were not run would take here: a line of records/not-run.csv per study.

    python -m paper.not_run

A training step of every network is timed on one thread with a few examples, and multiplied by the examples, epochs and
cells of the study. Evaluation and loading come on top.
"""

from __future__ import annotations

import time
from functools import cache

import torch
from torch.nn import functional as F

from focalcal.lab.models import build_model
from focalcal.lab.store import Spec
from focalcal.lab.studies import load_study
from focalcal.lab.studies.spec_builder import recipe_of
from paper import STUDIES
from paper.record import RECORDS, here, write_table

NOT_RUN = {
    "vision": "CIFAR-10, CIFAR-100 and Tiny ImageNet; four networks",
    "adafocal": "a common split for AdaFocal and the others",
    "tenseed": "ten seeds of three settings",
    "surface": "gamma x lam on CIFAR-10 and CIFAR-100",
    "shift": "AUROC on shifted images",
    "text": "the three sets of texts, whole",
    "transformer-finetune": "DeiT, ViT and Swin from ImageNet weights",
    "transformer-scratch": "the same from scratch",
    "deit-lam-sweep": "lam of a fine-tuned DeiT",
    "chestxray": "ChestX-ray14, 14 labels",
    "chestxray-lam-sweep": "lam there",
}
# training examples without those held out, and the side of an image or the length of a text
_DATA = {
    "cifar10": (45_000, 32),
    "cifar100": (45_000, 32),
    "tiny_imagenet": (90_000, 64),
    "chestxray14": (78_000, 224),
    "newsgroups_19997": (15_000, 1000),
    "ag_news": (120_000, 128),
    "finsen": (11_000, 256),
}
_EXAMPLES = 4  # of a timed step


@cache
def seconds_per_example(spec: Spec) -> float:
    """Of the faster of two training steps."""
    recipe = recipe_of(spec)
    side = recipe.image_size or _DATA[spec.data_set][1]
    network = build_model(spec.model, classes=recipe.classes, **dict(recipe.model_options)).train()
    if spec.model == "gp_cnn":
        inputs = torch.randint(1, 20_000, (_EXAMPLES, side))
    else:
        network, inputs = network.to(memory_format=torch.channels_last), torch.randn(_EXAMPLES, 3, side, side)  # type: ignore[call-overload]
    times = []
    for _ in range(2):
        began = time.thread_time()
        scores = network(inputs)
        F.cross_entropy(scores, torch.randint(0, recipe.classes, (_EXAMPLES,))).backward()  # type: ignore[no-untyped-call]
        times.append(time.thread_time() - began)
    return min(times) / _EXAMPLES


def hours(specs: list[Spec]) -> float:
    """Of one thread, for all cells."""
    examples: dict[tuple[str, str], tuple[Spec, int]] = {}
    for spec in specs:
        first, count = examples.get((spec.data_set, spec.model), (spec, 0))
        seen = _DATA[spec.data_set][0] * recipe_of(spec).epochs
        examples[spec.data_set, spec.model] = first, count + seen
    return sum(seconds_per_example(spec) * count for spec, count in examples.values()) / 3600


def main() -> None:
    torch.set_num_threads(1)
    rows = []
    for name, what in NOT_RUN.items():
        specs = load_study(STUDIES / f"{name}.toml").specs()
        rows.append({"study": name, "what": what, "cells": len(specs), "hours": float(f"{hours(specs):.2g}"), **here()})
        print(rows[-1], flush=True)
    path = RECORDS / "not-run.csv"
    write_table(path, rows)


if __name__ == "__main__":
    main()
