"""Runs that are killed at random moments and started again, beside the same runs uninterrupted.

    python tests/support/killed_runs.py FOLDER

Every run is a process of its own, forked from one that has imported torch already. For each case FOLDER/CASE/whole and
FOLDER/CASE/killed end up with epochs.jsonl, checkpoint.pt, weights.pt and predictions.npz; FOLDER/CASE/kills.json says
how many times the second was killed, and with how many finished epochs in its log.
"""

import json
import os
import random
import signal
import sys
import time
from pathlib import Path

import torch
import torch._dynamo  # what optimisers import when they are made; here once, for all children

from focalcal.lab.training import Optimizer, Schedule, Step, fit, predict
from focalcal.losses import AdaFocalLoss, FocalCalibrationLoss
from support.training_runs import ADAM, small_digits, small_recipe

EPOCHS = 12
AFTER = (0, 2, 5)  # epochs in the log, and then a random part of an epoch
LONG = {"epochs": EPOCHS}
CASES = {
    "sgd_augmented_cnn": (
        small_recipe(
            model="small_cnn",
            model_options={"channels": 1, "width": 4},
            augmentation=(Step(name="PadCropFlip", options={"pad": 1}),),
            schedule=Schedule(kind="cosine", warmup=1),
            **LONG,
        ),
        FocalCalibrationLoss,
    ),
    "adam": (small_recipe(optimizer=ADAM, **LONG), FocalCalibrationLoss),
    "adafocal": (small_recipe(**LONG), AdaFocalLoss),
    "plateau": (
        small_recipe(
            optimizer=Optimizer(name="adamw", lr=0.03),
            schedule=Schedule(kind="plateau", factor=0.5, patience=0),
            **LONG,
        ),
        FocalCalibrationLoss,
    ),
    "dropout": (
        small_recipe(model_options={"features": 64, "hidden": (32,), "dropout": 0.4}, **LONG),
        FocalCalibrationLoss,
    ),
}


def train(case, data, folder):
    recipe, loss = CASES[case]
    fitted = fit(recipe, data, loss(), seed=3, folder=folder, checkpoint_seconds=0)
    predict(fitted.model, data.test, recipe, split="test").save(folder / "predictions.npz")
    torch.save(fitted.model.state_dict(), folder / "weights.pt")


def forked(case, data, folder):
    child = os.fork()
    if child:
        return child
    status = 1
    try:
        train(case, data, folder)
        status = 0
    finally:
        os._exit(status)


def finished(folder):
    log = folder / "epochs.jsonl"
    return log.read_text().count("\n") if log.exists() else 0


def interrupted(case, data, folder, epoch_seconds, draw):
    """Kill a random moment after it has come so far, again and again, then let it end; the epochs at each kill."""
    kills = []
    for epochs in AFTER:
        child = forked(case, data, folder)
        while finished(folder) < epochs and os.waitpid(child, os.WNOHANG) == (0, 0):
            time.sleep(0.001)
        time.sleep(draw.uniform(0, 1) * epoch_seconds)
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
        kills.append(finished(folder))
    assert os.waitstatus_to_exitcode(os.waitpid(forked(case, data, folder), 0)[1]) == 0
    return kills


def main(root):
    torch.set_num_threads(1)
    data, draw = small_digits(), random.Random()
    for case in CASES:
        whole, killed = root / case / "whole", root / case / "killed"
        began = time.monotonic()
        assert os.waitstatus_to_exitcode(os.waitpid(forked(case, data, whole), 0)[1]) == 0
        kills = interrupted(case, data, killed, (time.monotonic() - began) / EPOCHS, draw)
        (root / case / "kills.json").write_text(json.dumps(kills))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
