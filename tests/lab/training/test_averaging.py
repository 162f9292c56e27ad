"""Averaged weights: what the average is, and that training itself does not notice."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from support.training_runs import ADAM, same_weights, small_digits, small_recipe, without_seconds
from torch import nn

from focalcal.lab.studies.spec_builder import recipe_of, spec_of, training_of
from focalcal.lab.training import Recipe, Step, fit, predict
from focalcal.lab.training.averaging import move_average
from focalcal.losses import AdaFocalLoss, FocalCalibrationLoss
from focalcal.metrics import nll

CNN = {
    "model": "small_cnn",
    "model_options": {"channels": 1, "width": 4},
    "augmentation": (Step(name="PadCropFlip", options={"pad": 1, "flip": 0.5}),),
}


@pytest.fixture(scope="module")
def data():
    return small_digits()


def trajectory(share, steps=40):
    """Two batch-normalised layers whose weights are drawn anew at each step: all of them, and their average."""
    network, average = (nn.Sequential(nn.Linear(3, 2), nn.BatchNorm1d(2)).double() for _ in range(2))
    seen = []
    for step in range(1, steps + 1):
        for tensor in network.state_dict().values():
            tensor.fill_(step) if not tensor.is_floating_point() else tensor.normal_()
        move_average(average, network, share=share, steps=step)
        seen.append({name: tensor.clone() for name, tensor in network.state_dict().items()})
    return seen, average.state_dict()


@pytest.mark.parametrize("share", [0.1, 0.5, 1.0])
def test_weights_are_averaged_with_polynomial_decay(share):
    """Shamir and Zhang's average moves by (eta + 1) / (t + eta) after step t; eta = 1 / share - 1, 0 the plain mean."""
    seen, average = trajectory(share)
    eta = 1 / share - 1
    for name in seen[0]:
        expected = torch.zeros_like(seen[0][name], dtype=torch.float64)
        for t, each in enumerate(seen, start=1):
            expected += (eta + 1) / (t + eta) * (each[name] - expected)
        if "num_batches" not in name:
            torch.testing.assert_close(average[name], expected)
            if share == 1:
                torch.testing.assert_close(average[name], torch.stack([each[name] for each in seen]).mean(0))
    assert average["1.num_batches_tracked"] == len(seen)  # a counter is the last one


@pytest.mark.parametrize("changed", [{"optimizer": ADAM}, CNN], ids=["mlp", "cnn"])
def test_training_goes_as_it_does_without(data, changed):
    plain, mean = (
        fit(small_recipe(averaging=share, **changed), data, FocalCalibrationLoss(), seed=0) for share in (None, 0.3)
    )
    assert [record["train"] for record in plain.epochs] == [record["train"] for record in mean.epochs]
    assert not same_weights(plain.model, mean.model)
    assert [record["test"] for record in plain.epochs] != [record["test"] for record in mean.epochs]
    found = predict(
        mean.model, data.splits["test"], small_recipe(**changed), split="test"
    )  # what was evaluated is kept
    np.testing.assert_array_equal(found.logits, mean.outputs["test"].logits[:, 0])
    assert mean.epochs[-1]["test"]["nll"] == pytest.approx(nll(logits=found.logits, labels=found.labels))


def test_an_interrupted_run_ends_with_the_same_bits(data, tmp_path):
    one, loss = small_recipe(averaging=0.2, **CNN), AdaFocalLoss()
    whole = fit(one, data, loss, seed=3)

    def interrupt(record, epochs):
        if record["epoch"] == 2:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        fit(one, data, loss, seed=3, folder=tmp_path, checkpoint_seconds=0, on_epoch=interrupt)
    resumed = fit(one, data, loss, seed=3, folder=tmp_path)
    assert same_weights(whole.model, resumed.model)
    assert without_seconds(whole.epochs) == without_seconds(resumed.epochs)


def test_a_recipe_says_so_only_if_it_averages():
    """So a run without has the key that it had before there was such a thing."""
    plain = small_recipe()
    assert "averaging" not in training_of(plain, "ce")  # so that runs from before it keep their keys
    mean = replace(plain, averaging=0.2)
    assert Recipe.from_dict(mean.as_dict()) == mean
    specs = [spec_of(one, "ce", seed=0) for one in (plain, mean)]
    assert specs[0].key != specs[1].key
    assert recipe_of(specs[1]) == mean


@pytest.mark.parametrize("share", [0, -0.1, 1, float("nan"), "much"])
def test_a_share_that_is_none(share):
    with pytest.raises((ValueError, TypeError), match="averaging"):
        small_recipe(averaging=share)
