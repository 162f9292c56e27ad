"""What examples go through on their way to the network."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from support.training_runs import small_recipe

from focalcal.lab.data import Examples
from focalcal.lab.data.augment import Compose, PadCropFlip, RandomErasing
from focalcal.lab.data.augment.counter_rng import example_keys
from focalcal.lab.training import Step
from focalcal.lab.training.inputs import TrainingInputs, epoch_batches, steps_per_epoch, ten_crops

CPU = torch.device("cpu")


def images(count=6, channels=1, side=8):
    pixels = np.random.default_rng(0).integers(0, 256, (count, channels, side, side), dtype=np.uint8)
    return Examples(pixels, np.zeros(count, np.int64), np.arange(count))


def test_normalisation_by_hand_which_nothing_augments_in_evaluation():
    recipe, examples = small_recipe(augmentation=(Step(name="PadCropFlip"),)), images()
    got = TrainingInputs(examples, recipe, CPU).evaluation_batch(slice(0, 6))
    expected = (examples.inputs / 255 - recipe.mean[0]) / recipe.std[0]
    torch.testing.assert_close(got, torch.from_numpy(expected).float())


def test_a_grey_image_gets_three_channels_where_the_mean_has_three():
    recipe = small_recipe(mean=(0.1, 0.2, 0.3), std=(0.5, 0.6, 0.7))
    examples = images()
    got = TrainingInputs(examples, recipe, CPU).training_batch(torch.tensor([4, 1]), None)
    assert got.shape == (2, 3, 8, 8)
    for channel, (mean, std) in enumerate(zip(recipe.mean, recipe.std, strict=True)):
        expected = torch.from_numpy((examples.inputs[[4, 1], 0] / 255 - mean) / std).float()
        torch.testing.assert_close(got[:, channel], expected)
    with pytest.raises(ValueError, match="mean and std must have 3 numbers for images of 3 channels, got 1"):
        TrainingInputs(images(channels=3), small_recipe(), CPU)


def test_alternating_flips_show_every_image_both_ways_in_turn():
    examples = images(200)
    inputs = TrainingInputs(examples, small_recipe(alternating_flip=True), CPU)
    rows = torch.arange(200)
    plain = inputs.evaluation_batch(slice(0, 200))
    seen = [inputs.training_batch(rows, inputs.keys(3, epoch)) for epoch in (1, 2, 3)]
    assert torch.equal(seen[0], seen[2])
    assert torch.equal(seen[1], seen[0].flip(3))
    straight = (seen[0] == plain).flatten(1).all(1)
    assert torch.equal(seen[0][~straight], plain[~straight].flip(3))
    assert 70 < straight.sum() < 130
    other = inputs.training_batch(rows, inputs.keys(4, 1))
    assert not torch.equal(other, seen[0])  # the seed chooses
    assert torch.equal(inputs.training_batch(rows[7:9], inputs.keys(3, 1)), seen[0][7:9])


def test_augmentation_depends_on_seed_epoch_and_example_alone():
    steps = (Step(name="PadCropFlip", options={"pad": 2, "flip": 0.5}),)
    recipe = small_recipe(
        augmentation=steps, after_normalisation=(Step(name="RandomErasing", options={"probability": 1}),)
    )
    examples = images(20)
    inputs = TrainingInputs(examples, recipe, CPU)
    rows = torch.tensor([7, 3, 11])
    got = inputs.training_batch(rows, inputs.keys(5, 2))
    torch.testing.assert_close(inputs.training_batch(rows[[2]], inputs.keys(5, 2)), got[[2]])
    assert not torch.equal(inputs.training_batch(rows, inputs.keys(5, 3)), got)
    assert not torch.equal(inputs.training_batch(rows, inputs.keys(6, 2)), got)

    pixels = torch.from_numpy(examples.inputs)[rows]
    moved = Compose(PadCropFlip(pad=2, flip=0.5))(pixels, example_keys(5, "augment", 2, ids=rows))
    normal = (moved.double() / 255 - recipe.mean[0]) / recipe.std[0]
    after = Compose(RandomErasing(probability=1))(
        normal.float(), example_keys(5, "augment_after_normalisation", 2, ids=rows)
    )
    torch.testing.assert_close(got, after)


def test_tokens_and_features_go_in_as_they_are():
    plain = small_recipe(mean=None, std=None)
    for values in (np.arange(12).reshape(3, 4), np.linspace(0, 1, 12).reshape(3, 4)):
        examples = Examples(values, np.zeros(3, np.int64), np.arange(3))
        got = TrainingInputs(examples, plain, CPU).evaluation_batch(slice(0, 3))
        assert got.dtype == (torch.int64 if values.dtype == np.int64 else torch.float32)
        np.testing.assert_allclose(got.numpy(), values, rtol=1e-7)
        with pytest.raises(ValueError, match="mean must be left out for inputs that are not images"):
            TrainingInputs(examples, small_recipe(), CPU)


def test_images_are_resized_for_evaluation_as_pillow_does_it():
    pillow = pytest.importorskip("PIL.Image")
    examples = images(2, 1, 32)
    examples = replace(examples, inputs=examples.inputs // 3 + 85)  # Pillow clips between its passes, we do not
    recipe = small_recipe(image_size=56, evaluation="resize", mean=(0.0,), std=(1.0,))
    got = 255 * TrainingInputs(examples, recipe, CPU).evaluation_batch(slice(0, 2)).numpy()
    for image, mine in zip(examples.inputs, got, strict=True):
        theirs = pillow.fromarray(image[0]).resize((56, 56), pillow.Resampling.BICUBIC)
        assert np.abs(mine[0] - np.asarray(theirs)).max() < 1.01


def test_ten_crops_by_hand():
    pixels = torch.arange(2 * 1 * 5 * 7).view(2, 1, 5, 7).to(torch.uint8)
    got = ten_crops(pixels, 3)
    assert got.shape == (2, 10, 1, 3, 3)
    corners = [
        pixels[..., :3, :3],
        pixels[..., :3, 4:],
        pixels[..., 2:, :3],
        pixels[..., 2:, 4:],
        pixels[..., 1:4, 2:5],
    ]
    for place, crop in enumerate(corners):
        assert torch.equal(got[:, place], crop)
        assert torch.equal(got[:, place + 5], crop.flip(3))
    with pytest.raises(ValueError, match="image_size must be at most the images' side for ten crops, got 6 for 5 x 7"):
        ten_crops(pixels, 6)


def test_an_epoch_is_a_permutation_by_seed_and_epoch_whose_incomplete_batch_can_be_dropped():
    recipe = small_recipe(batch_size=16)
    batches = list(epoch_batches(recipe, 70, seed=3, epoch=1))
    assert [len(batch) for batch in batches] == [16, 16, 16, 16, 6]
    assert torch.cat(batches).sort().values.tolist() == list(range(70))
    torch.rand(5)  # whatever else is drawn
    orders = [torch.cat(list(epoch_batches(recipe, 70, seed=s, epoch=e))) for s, e in ((3, 1), (3, 2), (4, 1))]
    assert [torch.equal(order, torch.cat(batches)) for order in orders] == [True, False, False]
    dropped = replace(recipe, drop_last=True)
    assert [len(batch) for batch in epoch_batches(dropped, 70, seed=3, epoch=1)] == [16] * 4
    assert (steps_per_epoch(recipe, 70), steps_per_epoch(dropped, 70)) == (5, 4)
    with pytest.raises(
        ValueError, match=r"at least one batch, got 15 training examples for batch_size = 16.*drop_last"
    ):
        steps_per_epoch(dropped, 15)
    with pytest.raises(ValueError, match="data must have training examples, got none"):
        steps_per_epoch(recipe, 0)
