"""Small data sets and recipes that train in a moment, for the tests of training."""

import json
from dataclasses import replace

import numpy as np

from focalcal.lab.data import DataSet, Examples, load_data
from focalcal.lab.training import Optimizer, Recipe

SGD = Optimizer(name="sgd", lr=0.05, momentum=0.9, nesterov=True, weight_decay=5e-4)
ADAM = Optimizer(name="adam", lr=1e-3)


def small_recipe(**changed):
    """A perceptron on the digits, three epochs."""
    usual = {
        "data_set": "digits",
        "classes": 10,
        "model": "mlp",
        "model_options": {"features": 64, "hidden": (32,)},
        "optimizer": SGD,
        "epochs": 3,
        "batch_size": 64,
        "mean": (0.3053,),
        "std": (0.3761,),
    }
    return Recipe(**{**usual, **changed})


def small_digits(train=230, val=100, test=100):
    """Some of the digits; 230 are three batches of 64 and one of 38."""
    data = load_data("digits")
    take = {"train": train, "val": val, "test": test}
    return replace(data, **{split: examples.take(np.arange(take[split])) for split, examples in data.splits.items()})


def multilabel_data(side=8, train=96, labels=14):
    """Grey images of which label k says whether a pixel is bright; as X-rays, by patient."""
    generator = np.random.default_rng(0)

    def examples(name, count):
        images = generator.integers(0, 256, (count, 1, side, side), dtype=np.uint8)
        truth = images.reshape(count, -1)[:, 9 : 9 + labels] > 127
        ids = np.array([f"{name}-{i}" for i in range(count)])
        return Examples(images, truth, ids, groups=np.array([f"patient {name}{i // 2}" for i in range(count)]))

    splits = [examples("train", train), examples("val", 40), examples("test", 40)]
    return DataSet("bright", tuple(f"pixel {k}" for k in range(labels)), *splits)


def without_seconds(records):
    return [{name: value for name, value in record.items() if name != "seconds"} for record in records]


def read_lines(path):
    return [json.loads(line) for line in path.read_text().splitlines()]


def same_weights(one, other):
    mine, theirs = one.state_dict(), other.state_dict()
    return mine.keys() == theirs.keys() and all(mine[key].equal(theirs[key]) for key in mine)
