"""Random resized crop and random erasing."""

import math

import numpy as np
import pytest
import torch
from PIL import Image

from focalcal.lab.data.augment import RandomErasing, RandomResizedCrop
from focalcal.lab.data.augment.counter_rng import example_keys

FILTERS = {"bilinear": Image.Resampling.BILINEAR, "bicubic": Image.Resampling.BICUBIC}


def keys(count):
    return example_keys(0, "rectangles", ids=range(count))


@pytest.mark.parametrize("interpolation", FILTERS)
@pytest.mark.parametrize("size", [(24, 24), (9, 40), (60, 13)])
def test_crops_are_pillows(interpolation, size):
    images = torch.rand(20, 1, 24, 31)
    crop = RandomResizedCrop(size, scale=(0.1, 1.0), interpolation=interpolation)
    result = crop(images, keys(20))
    assert result.shape == (20, 1, *size)
    for image, got, (top, left, tall, wide) in zip(images, result, crop.boxes(keys(20), 24, 31).tolist(), strict=True):
        picture = Image.fromarray(image[0].numpy()).crop((left, top, left + wide, top + tall))
        expected = np.asarray(picture.resize(size[::-1], FILTERS[interpolation]))
        np.testing.assert_allclose(got[0].numpy(), expected, rtol=0, atol=1e-5)


def test_levels_are_the_rounded_and_clipped_crop():
    levels = torch.randint(0, 256, (20, 3, 12, 12), dtype=torch.uint8)
    crop = RandomResizedCrop(16)
    expected = crop(levels.double(), keys(20)).round().clamp(0, 255)
    assert expected.min() == 0  # bicubic weights overshoot
    off = (crop(levels, keys(20)).double() - expected).abs()
    assert off.max() <= 1  # float32 may lie on the other side of a half
    assert (off == 0).double().mean() > 0.999


def test_boxes_lie_inside_with_area_and_ratio_as_asked():
    crop = RandomResizedCrop(8)
    top, left, tall, wide = crop.boxes(keys(20_000), 100, 100).unbind(1)
    assert bool(((top >= 0) & (left >= 0) & (top + tall <= 100) & (left + wide <= 100)).all())
    share, ratio = tall * wide / 10_000, wide / tall
    assert 0.79 < share.min() < 0.81
    assert share.max() > 0.98
    assert 0.75 - 0.01 < ratio.min() < ratio.max() < 4 / 3 + 0.02
    assert ratio.log().mean() == pytest.approx(0, abs=0.005)
    spare = (100 - tall) > 10
    assert (top / (100 - tall))[spare].mean() == pytest.approx(0.5, abs=0.02)


def test_proposals_that_never_fit_give_the_central_crop():
    crop = RandomResizedCrop(4, scale=(1.0, 1.0))
    assert crop.boxes(keys(5), 10, 40).unique(dim=0).tolist() == [[0, 13, 10, 13]]
    assert crop.boxes(keys(5), 40, 10).unique(dim=0).tolist() == [[13, 0, 13, 10]]


def rectangle(mask):
    rows, columns = mask.any(1).nonzero()[:, 0], mask.any(0).nonzero()[:, 0]
    return int(rows[0]), int(columns[0]), len(rows), len(columns)


def test_what_is_erased_is_one_rectangle_of_the_asked_area_and_shape():
    side, erasing = 32, RandomErasing(1.0)
    masks = erasing.boxes(keys(1500), side, side)
    shares, logs = [], []
    for mask in masks:
        top, left, tall, wide = rectangle(mask)
        assert mask.sum() == tall * wide  # full
        assert bool(mask[top : top + tall, left : left + wide].all())
        shares.append(tall * wide / side**2)
        logs.append(math.log(tall / wide))
    shares, logs = torch.tensor(shares), torch.tensor(logs)
    assert 0.01 < shares.min() < 0.03
    assert 0.30 < shares.max() < 0.36
    assert shares.mean() == pytest.approx((0.02 + 1 / 3) / 2, abs=0.01)
    assert logs.abs().max() < math.log(1 / 0.3) + 0.3  # rounding of small sides
    assert abs(logs.mean()) < 0.05
    assert logs.std() == pytest.approx(2 * math.log(1 / 0.3) / 12**0.5, rel=0.07)


def test_places_are_uniform():
    masks = RandomErasing(1.0, area=(0.25, 0.25), aspect=(1.0, 1.0)).boxes(keys(4000), 8, 8)
    corners = torch.tensor([rectangle(mask) for mask in masks])
    assert corners[:, 2:].unique(dim=0).tolist() == [[4, 4]]
    counts = torch.bincount(corners[:, 0] * 5 + corners[:, 1], minlength=25).double()
    assert ((counts - 160) ** 2 / 160).sum() < 51.2  # chi-squared, 24 degrees of freedom, p = 0.001


def test_the_share_of_erased_images():
    images = torch.zeros(20_000, 1, 8, 8)
    for share in (0.0, 0.25, 1.0):
        touched = RandomErasing(share)(images, keys(20_000)).flatten(1).any(1).double().mean()
        assert touched == pytest.approx(share, abs=0.015 * (0 < share < 1))


def test_the_noise_is_normal_in_floats_and_uniform_in_levels_and_the_rest_stays():
    erasing = RandomErasing(1.0, area=(0.3, 0.3))
    box = erasing.boxes(keys(100), 32, 32)[:, None].expand(-1, 3, -1, -1)
    images = torch.full((100, 3, 32, 32), 9.0)
    result = erasing(images, keys(100))
    assert torch.equal(result[~box], images[~box])
    assert result[box].mean() == pytest.approx(0, abs=0.015)
    assert result[box].std() == pytest.approx(1, abs=0.015)
    levels = erasing(torch.full((100, 3, 32, 32), 9, dtype=torch.uint8), keys(100))
    assert levels[~box].unique().tolist() == [9]
    counts = torch.bincount(levels[box].int(), minlength=256).double()
    assert ((counts - counts.mean()) ** 2 / counts.mean()).sum() < 330  # 255 degrees of freedom, p = 0.001
    # No two images, and no two channels, get the same noise.
    assert result[box].unique().numel() > 0.95 * int(box.sum())
