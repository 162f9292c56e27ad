"""Specs of runs that take a fraction of a second, and what of a stored run must be the same to the bit."""

from dataclasses import replace

from focalcal.lab.store import Protocol
from focalcal.lab.studies.spec_builder import spec_of
from focalcal.lab.training import Optimizer, recipe

PROTOCOL = {"train_examples": 150, "test_examples": 60}


def digits_recipe(**changed):
    options = {"features": 64, "hidden": (16,), "dropout": 0.2}  # dropout draws from a global stream if it can
    small = {"epochs": 3, "batch_size": 32, "model_options": options, **changed}
    return replace(recipe("digits_mlp_lite"), **small)


def digits_spec(objective="fcl", options=(), *, seed=0, protocol=(), **changed):
    return spec_of(
        digits_recipe(**changed), objective, options, seed=seed, protocol=Protocol(**{**PROTOCOL, **dict(protocol)})
    )


def two_objectives(*, epochs, seeds=(0, 1)):
    """The text of a study file."""
    return f"""
title = "Two objectives"
seeds = {list(seeds)}

[[settings]]
recipe = "digits_mlp_lite"
epochs = {epochs}
model_options.hidden = [16]

[[objectives]]
name = ["ce", "fcl"]
"""


def exploding_spec():
    return digits_spec("ce", optimizer=Optimizer(name="sgd", lr=1e30))


def numbers(run):
    """Metrics, predictions and epochs, less the time they took."""
    epochs = [{name: value for name, value in one.items() if name != "seconds"} for one in run.epochs()]
    metrics = {split: run.metrics(split) for split in run.record["metrics"]}
    predictions = {split: run.predictions(split) for split in run.splits}
    return metrics, epochs, predictions


def same_numbers(one, other):
    """Whether two runs agree to the bit."""
    (metrics, epochs, predictions), (metrics_, epochs_, predictions_) = numbers(one), numbers(other)
    return (
        repr(metrics) == repr(metrics_)  # NaN included
        and epochs == epochs_
        and predictions.keys() == predictions_.keys()
        and all(predictions[split].equals(predictions_[split]) for split in predictions)
    )
