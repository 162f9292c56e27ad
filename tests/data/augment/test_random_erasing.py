import math

import pytest
import torch

from focalcal.core.counter_rng import example_keys
from focalcal.core.rng import stream
from focalcal.data.augment import RandomErasing


def keys(count):
    return example_keys(0, "erase", ids=range(count))


def rectangle(mask):
    rows, columns = mask.any(1).nonzero()[:, 0], mask.any(0).nonzero()[:, 0]
    return int(rows[0]), int(columns[0]), len(rows), len(columns)


def test_what_is_erased_is_one_rectangle_of_the_asked_area_and_shape():
    side, erasing = 32, RandomErasing(1.0)
    masks = erasing.boxes(keys(3000), side, side)
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
    assert logs.std() == pytest.approx(2 * math.log(1 / 0.3) / 12**0.5, rel=0.05)


def test_places_are_uniform():
    masks = RandomErasing(1.0, area=(0.25, 0.25), aspect=(1.0, 1.0)).boxes(keys(20_000), 8, 8)
    corners = torch.tensor([rectangle(mask) for mask in masks[:4000]])
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
    box = erasing.boxes(keys(300), 32, 32)[:, None].expand(-1, 3, -1, -1)
    images = torch.full((300, 3, 32, 32), 9.0)
    result = erasing(images, keys(300))
    assert torch.equal(result[~box], images[~box])
    assert result[box].mean() == pytest.approx(0, abs=0.01)
    assert result[box].std() == pytest.approx(1, abs=0.01)
    levels = erasing(torch.full((300, 3, 32, 32), 9, dtype=torch.uint8), keys(300))
    assert levels[~box].unique().tolist() == [9]
    counts = torch.bincount(levels[box].int(), minlength=256).double()
    assert ((counts - counts.mean()) ** 2 / counts.mean()).sum() < 330  # 255 degrees of freedom, p = 0.001
    # No two images, and no two channels, get the same noise.
    assert result[box].unique().numel() > 0.95 * int(box.sum())


def test_what_never_fits_changes_nothing():
    images = torch.rand(10, 1, 4, 4)
    assert torch.equal(RandomErasing(1.0, area=(1.0, 1.0))(images, stream(0, "e")), images)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"probability": 1.2}, "probability must be a probability"),
        ({"area": (0.0, 0.5)}, r"area must be \(low, high\) with 0 < low <= high <= 1"),
        ({"area": (0.5, 0.2)}, "area must be"),
        ({"aspect": (-1, 2)}, "aspect must be"),
    ],
)
def test_bad_arguments_are_refused(arguments, message):
    with pytest.raises(ValueError, match=message):
        RandomErasing(**arguments)
