"""The same runs in as many processes as start this, of which the first writes what came out; then AdaFocal's update
on different rows in each of two, and each writes what it has.

torchrun --nproc-per-node 2 tests/support/distributed_runs.py FOLDER
"""

import json
import sys
from pathlib import Path

import torch
import torch.distributed as dist

from focalcal.lab.training import fit, is_first_process, predict
from focalcal.losses import AdaFocalLoss, FocalCalibrationLoss, MMCELoss
from support.training_runs import small_digits, small_recipe

CASES = {"fcl": FocalCalibrationLoss, "mmce": MMCELoss, "adafocal": AdaFocalLoss}


def run(case, folder):
    """Three epochs of batches of 64 and, last, 37: shares of different sizes."""
    recipe, data = small_recipe(), small_digits(train=229, test=99)
    fitted = fit(recipe, data, CASES[case](), seed=0, folder=folder)
    test = predict(fitted.model, data.test, recipe, split="test")
    processes = dist.get_world_size() if dist.is_initialized() else 1
    return {"epochs": fitted.epochs, "logits": test.logits.tolist(), "processes": processes}


def validation_rows():
    """101 over-confident predictions of four classes."""
    generator = torch.Generator().manual_seed(3)
    return torch.randn(101, 4, generator=generator).mul(3).softmax(1), torch.randint(0, 4, (101,), generator=generator)


# The rows of `validation_rows` that the first of two processes has, and the second.
SHARES = {
    "unequal": (slice(0, 70), slice(70, 101)),
    "one without": (slice(0, 101), slice(0, 0)),
    "alike": (slice(0, 101),) * 2,
}


def updated(rows):
    """AdaFocal's state after two updates on these rows, and the gradient that it then gives."""
    probs, labels = validation_rows()
    loss = AdaFocalLoss(bins=7)
    for _ in range(2):
        loss.update(probs[rows], labels[rows])
    logits = probs.log().requires_grad_()
    (gradient,) = torch.autograd.grad(loss(logits, labels), logits)
    return {"gammas": loss.gammas.tolist(), "edges": loss.edges.tolist(), "gradient": gradient.tolist()}


if __name__ == "__main__":
    torch.set_num_threads(1)
    root = Path(sys.argv[1])
    for case in CASES:
        found = run(case, root / case)
        again = run(case, root / case)  # resumes what is done, in every process
        assert again["logits"] == found["logits"]
        if is_first_process():
            (root / f"{case}.json").write_text(json.dumps(found))
    rank = dist.get_rank()
    states = {name: updated(rows[rank]) for name, rows in SHARES.items()}
    (root / f"adafocal-{rank}.json").write_text(json.dumps(states))
