"""The same runs in as many processes as start this; the first writes what came out.

torchrun --nproc-per-node 2 tests/distributed_runs.py FOLDER
"""

import json
import sys
from pathlib import Path

import torch
import torch.distributed as dist
from training_runs import small_digits, small_recipe

from focalcal.losses import AdaFocalLoss, FocalCalibrationLoss, MMCELoss
from focalcal.training import fit, is_first_process, predict

CASES = {"fcl": FocalCalibrationLoss, "mmce": MMCELoss, "adafocal": AdaFocalLoss}


def run(case, folder):
    """Three epochs of batches of 64 and, last, 37: shares of different sizes."""
    recipe, data = small_recipe(), small_digits(train=229, test=99)
    fitted = fit(recipe, data, CASES[case](), seed=0, folder=folder)
    test = predict(fitted.model, data.test, recipe, split="test")
    processes = dist.get_world_size() if dist.is_initialized() else 1
    return {"epochs": fitted.epochs, "logits": test.logits.tolist(), "processes": processes}


if __name__ == "__main__":
    torch.set_num_threads(1)
    root = Path(sys.argv[1])
    for case in CASES:
        found = run(case, root / case)
        again = run(case, root / case)  # resumes what is done, in every process
        assert again["logits"] == found["logits"]
        if is_first_process():
            (root / f"{case}.json").write_text(json.dumps(found))
