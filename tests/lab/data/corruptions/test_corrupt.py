"""What holds for every corruption, and how damage grows with severity."""

import json
import re
from pathlib import Path

import numpy as np
import pytest
import torch

from focalcal.lab.data import DataSet, Examples
from focalcal.lab.data.corruptions import CORRUPTIONS, SEVERITIES, corrupt, corrupted

PUBLISHED = [
    *("gaussian_noise", "shot_noise", "impulse_noise", "defocus_blur", "glass_blur", "motion_blur", "zoom_blur"),
    *("snow", "frost", "fog", "brightness", "contrast", "elastic_transform", "pixelate", "jpeg_compression"),
]
WITHOUT_CHANCE = {"defocus_blur", "zoom_blur", "brightness", "contrast", "pixelate", "jpeg_compression"}
# Squared error is no measure of these: frost darkens more than it covers from 3 on, elastic_transform moves less as a
# whole but more from pixel to pixel, glass_blur blurs what it shuffles, motion_blur 3 and 4 differ by taps of weight
# 1e-9. Each has its own measure below or in its own file.
NOT_BY_SQUARED_ERROR = {"frost", "elastic_transform", "glass_blur", "motion_blur"}


def scenes(count=12, side=32):
    """Smooth synthetic images: sums of a few waves, with an edge."""
    generator = np.random.default_rng(0)
    y, x = np.mgrid[:side, :side] / side
    images = np.zeros((count, side, side, 3))
    for image in images:
        for _ in range(6):
            fx, fy, phase = generator.uniform(-6, 6, 3)
            image += generator.uniform(-1, 1, 3) * np.sin(2 * np.pi * (fx * x + fy * y) + phase)[..., None]
        image += (
            generator.uniform(-2, 2, 3) * (x + generator.uniform(-1, 1) * y > generator.uniform(0.2, 0.8))[..., None]
        )
    return np.clip(128 + 30 * images, 0, 255).astype(np.uint8)


def psnr(clean, damaged):
    return 10 * np.log10(255**2 / np.mean((clean.astype(float) - damaged) ** 2))


def test_the_published_fifteen_in_their_order():
    assert list(CORRUPTIONS) == PUBLISHED
    assert all(len(corruption.strengths) == 5 for corruption in CORRUPTIONS.values())
    assert all(name == corruption.function.__name__ for name, corruption in CORRUPTIONS.items())


def test_the_guides_table_has_these_strengths():
    guide = Path(__file__).parents[4] / "docs" / "guide" / "augmentation.md"
    rows = re.findall(r"^\| `(\w+)` \| .* \| ([^|]*) \|$", guide.read_text(), re.M)
    assert [name for name, _ in rows] == PUBLISHED
    for name, cell in rows:
        strengths = np.concatenate([np.atleast_1d(strength) for strength in CORRUPTIONS[name].strengths])
        assert [float(number) for number in re.findall(r"[\d.]+", cell)] == strengths.tolist()


def within_a_level(images, others):
    """The same but for what rounding decides: other batches and layouts may be computed in another order."""
    return np.abs(images.astype(int) - others.astype(int)).max() <= 1


@pytest.mark.parametrize("name", PUBLISHED)
def test_each_image_has_its_own_chance_by_seed_and_id_in_any_batch_and_layout(name):
    images = scenes(4)
    before, chance = images.copy(), name not in WITHOUT_CHANCE
    whole = corrupt(images, name, 3, seed=1)
    assert np.array_equal(images, before)
    assert (whole.dtype, whole.shape) == (np.uint8, images.shape)
    assert not np.array_equal(whole, images)
    assert np.array_equal(corrupt(images, name, 3, seed=1), whole)
    assert np.array_equal(corrupt(images, name, 3, seed=2), whole) != chance
    assert within_a_level(corrupt(images[[3, 0]], name, 3, seed=1, ids=[3, 0]), whole[[3, 0]])
    first = corrupt(np.ascontiguousarray(images.transpose(0, 3, 1, 2)), name, 3, seed=1)
    assert first.flags.c_contiguous
    assert within_a_level(first.transpose(0, 2, 3, 1), whole)
    same = corrupt(np.repeat(images[:1], 3, 0), name, 5, seed=0)
    assert len(np.unique(same.reshape(3, -1), axis=0)) == (3 if chance else 1)
    other = np.random.default_rng(0).integers(0, 256, (1, 20, 37, 3), dtype=np.uint8)
    assert corrupt(other, name, 5, seed=0).shape == other.shape


@pytest.mark.parametrize("name", PUBLISHED)
def test_black_and_white_images_stay_in_range(name):
    images = np.repeat(np.array([0, 255], np.uint8), 32 * 32 * 3).reshape(2, 32, 32, 3)
    result = corrupt(images, name, 5, seed=0)
    if name in {"defocus_blur", "glass_blur", "motion_blur", "zoom_blur", "contrast", "elastic_transform", "pixelate"}:
        assert np.array_equal(result, images)  # what only moves or mixes pixels leaves one colour alone
    elif name in {"snow", "brightness"}:
        assert result[1].min() == 255


@pytest.mark.parametrize("name", [name for name in PUBLISHED if name not in NOT_BY_SQUARED_ERROR])
def test_damage_grows_with_severity(name):
    images = scenes()
    values = [psnr(images, corrupt(images, name, severity, seed=0)) for severity in SEVERITIES]
    assert values == sorted(values, reverse=True)
    assert values[0] - values[4] > 2


def test_frost_hides_more_with_severity():
    images = scenes(24)
    hidden = []
    for severity in SEVERITIES:
        frosted = corrupt(images, "frost", severity, seed=0)
        kept = [np.corrcoef(a.ravel(), b.ravel())[0, 1] for a, b in zip(images, frosted, strict=True)]
        hidden.append(1 - np.mean(kept))
    assert hidden == sorted(hidden)


def test_ids_of_any_kind():
    images = scenes(3)
    expected = corrupt(images, "fog", 2, seed=0, ids=[7, 8, 9])
    assert np.array_equal(corrupt(torch.from_numpy(images), "fog", 2, seed=0, ids=[7, 8, 9]).numpy(), expected)
    for ids in (np.array([7, 8, 9], dtype=np.int32), torch.tensor([7, 8, 9]), range(7, 10)):
        assert np.array_equal(corrupt(images, "fog", 2, seed=0, ids=ids), expected)
    named = corrupt(images, "fog", 2, seed=0, ids=np.array(["test-7", "test-8", "test-9"]))
    assert not np.array_equal(named, expected)
    assert within_a_level(corrupt(images[1:2], "fog", 2, seed=0, ids=["test-8"]), named[1:2])


def test_more_images_than_a_chunk_holds():
    many = np.repeat(scenes(1), 501, 0)
    assert within_a_level(
        corrupt(many, "gaussian_noise", 1, seed=0)[500], corrupt(many[:1], "gaussian_noise", 1, seed=0, ids=[500])[0]
    )
    assert corrupt(many[:0], "fog", 1, seed=0).shape == (0, 32, 32, 3)


def test_an_unknown_name_lists_the_known_and_severities_run_from_1_to_5():
    with pytest.raises(ValueError, match=r"name must be one of 'gaussian_noise', .*'jpeg_compression', got 'rain'"):
        corrupt(scenes(1), "rain", 1, seed=0)
    for severity in (0, 6, 2.5, True):
        with pytest.raises(ValueError, match="severity must be a whole number >= 1 and <= 5"):
            corrupt(scenes(1), "fog", severity, seed=0)


@pytest.mark.parametrize(
    ("images", "error", "message"),
    [
        (np.zeros((1, 32, 32, 3)), TypeError, "images must be uint8, got float64"),
        (
            np.zeros((1, 1, 32, 32), dtype=np.uint8),
            ValueError,
            r"\(N, 3, H, W\) or \(N, H, W, 3\), got \(1, 1, 32, 32\); repeat a grey channel",
        ),
        (np.zeros((2, 3, 9, 3), dtype=np.uint8), ValueError, r"got \(2, 3, 9, 3\)"),  # of either layout
        (np.zeros((2, 3, 0, 9), dtype=np.uint8), ValueError, r"got \(2, 3, 0, 9\)"),
        (np.zeros((32, 32, 3), dtype=np.uint8), ValueError, r"\(N, H, W, 3\)"),
        ([[0]], TypeError, "NumPy array or a tensor, got list"),
    ],
)
def test_bad_images_are_refused(images, error, message):
    with pytest.raises(error, match=message):
        corrupt(images, "fog", 1, seed=0)


def test_bad_ids_and_seeds_are_refused():
    with pytest.raises(ValueError, match="ids must be one per image, 2, got 1"):
        corrupt(scenes(2), "fog", 1, seed=0, ids=[3])
    for bad in ([0, 1.5], [True, False], [0, None], torch.tensor([0.0, 1.0])):
        with pytest.raises(TypeError, match="ids must be whole numbers or strings, got"):
            corrupt(scenes(2), "fog", 1, seed=0, ids=bad)
    with pytest.raises(ValueError, match="seed must be a whole number"):
        corrupt(scenes(1), "fog", 1, seed=-1)


def colours(count, prefix):
    images = np.random.default_rng(len(prefix)).integers(0, 256, (count, 3, 32, 32), dtype=np.uint8)
    ids = np.array([f"{prefix}-{i}" for i in range(count)])
    return Examples(images, np.arange(count, dtype=np.int64) % 4, ids)


@pytest.fixture
def data():
    parts = [colours(count, prefix) for count, prefix in ((6, "train"), (5, "val"), (9, "test"))]
    return DataSet("colours", ("a", "b", "c", "d"), *parts, provenance={"split": "by hand"})


def test_the_test_split_is_corrupted_keeps_labels_and_ids_and_says_so(data):
    snowed = corrupted(data, "snow", np.int64(3), seed=5)
    assert np.array_equal(snowed.test.inputs, corrupt(data.test.inputs, "snow", 3, seed=5, ids=data.test.ids))
    assert np.array_equal(snowed.test.labels, data.test.labels)
    assert np.array_equal(snowed.test.ids, data.test.ids)
    assert (snowed.classes, snowed.name) == (data.classes, "colours_snow_3")
    provenance = json.loads(json.dumps(snowed.provenance))
    assert provenance["corrupted"] == {"corruption": "snow", "severity": 3, "seed": 5, "regenerated": True}
    assert (provenance["corrupted_from"], provenance["split"]) == ("colours", "by hand")
    assert provenance["counts"] == {"train": 0, "val": 0, "test": 9}
