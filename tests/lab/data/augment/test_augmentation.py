"""What holds for every augmentation."""

import math
from functools import partial

import pytest
import torch

from focalcal.lab.data.augment import (
    Compose,
    PadCropFlip,
    RandAugment,
    RandomErasing,
    RandomFlip,
    RandomResizedCrop,
)
from focalcal.lab.data.augment.counter_rng import derived_keys, example_keys
from focalcal.lab.training.determinism import stream

EVERY = {
    "pad_crop_flip": PadCropFlip(2),
    "flip": RandomFlip(),
    "erasing": RandomErasing(0.5),
    "resized_crop": RandomResizedCrop(12),
    "rand_augment": RandAugment(),
    "compose": Compose(RandomResizedCrop(12), RandomFlip(), RandAugment(), RandomErasing(0.5)),
}


@pytest.fixture(params=EVERY)
def augmentation(request):
    return EVERY[request.param]


def batch(count=40, dtype=torch.uint8, shape=(3, 12, 12)):
    images = torch.randint(0, 256, (count, *shape), dtype=torch.uint8, generator=stream(0, "images"))
    return images if dtype == torch.uint8 else images.to(dtype) / 255


def tolerance(dtype):
    """Matrix products may round otherwise in batches of another size."""
    return {"rtol": 0, "atol": 1 if dtype == torch.uint8 else 1e-6}


@pytest.mark.parametrize("dtype", [torch.uint8, torch.float32])
def test_an_image_depends_on_its_key_alone(augmentation, dtype):
    """The same images in any order, any batches, of any strides: the number of workers cannot matter."""
    images, ids = batch(dtype=dtype), torch.arange(40) + 1000
    whole = augmentation(images, example_keys(1, "augment", 2, ids=ids))
    order = torch.randperm(40)
    parts = [
        augmentation(images[part], example_keys(1, "augment", 2, ids=ids[part])) for part in order.split([1, 7, 20, 12])
    ]
    torch.testing.assert_close(torch.cat(parts)[order.argsort()], whole, **tolerance(dtype))
    for shape in ((1, 1, 1), (3, 2, 3), (1, 9, 17)):
        few, keys = batch(4, dtype, shape), example_keys(0, "augment", ids=range(4))
        whole = augmentation(few, keys)
        strided = augmentation(few.permute(0, 2, 3, 1).contiguous().permute(0, 3, 1, 2), keys)
        same = augmentation(few[:1].expand(4, -1, -1, -1), keys)  # four times one image in memory
        for result, expected in ((strided, whole), (same[:1], whole[:1])):
            torch.testing.assert_close(result, expected, **tolerance(dtype))


def test_a_generator_repeats_without_global_random_numbers_and_seeds_and_epochs_differ(augmentation):
    images, before = batch(), torch.get_rng_state()
    first = augmentation(images, stream(1, "augment", 0, 5))
    assert torch.equal(torch.get_rng_state(), before)
    torch.manual_seed(2)
    assert torch.equal(augmentation(images, stream(1, "augment", 0, 5)), first)
    for other in (stream(2, "augment", 0, 5), stream(1, "augment", 1, 5), stream(1, "augment", 0, 6)):
        assert not torch.equal(augmentation(images, other), first)


@pytest.mark.parametrize("dtype", [torch.uint8, torch.float16, torch.bfloat16, torch.float32, torch.float64])
def test_type_and_device_stay_and_the_input_is_left_alone(augmentation, dtype):
    images = batch(dtype=dtype)
    before = images.clone()
    result = augmentation(images, stream(0, "types"))
    assert (result.dtype, result.device, result.shape) == (dtype, images.device, images.shape)
    assert torch.equal(images, before)
    assert result.data_ptr() != images.data_ptr()


def test_nothing_is_made_on_the_default_device(augmentation):
    """What follows the images' device runs on any; what follows the default one meets another here, and fails."""
    images, keys = batch(), example_keys(0, "augment", ids=range(40))
    expected = augmentation(images, keys)
    with torch.device("meta"):
        assert torch.equal(augmentation(images, example_keys(0, "augment", ids=range(40))), expected)


def test_composition_is_the_steps_in_turn():
    images, keys = batch(), example_keys(0, "augment", ids=range(40))
    expected = RandomFlip()(PadCropFlip()(images, derived_keys(keys, 0)), derived_keys(keys, 1))
    assert torch.equal(Compose(PadCropFlip(), RandomFlip())(images, keys), expected)
    assert torch.equal(Compose()(images, keys), images)
    # The same step twice draws twice: an even number of the same flips would do nothing.
    assert not torch.equal(Compose(RandomFlip(), RandomFlip())(images, keys), images)


@pytest.mark.parametrize(
    ("images", "keys", "error", "message"),
    [
        ([[1]], None, TypeError, "images must be a torch.Tensor, got list"),
        (torch.zeros(3, 8, 8), None, ValueError, r"shape \(N, C, H, W\) .*got \(3, 8, 8\); add the batch dimension"),
        (torch.zeros(1, 3, 0, 8), None, ValueError, "without empty"),
        (torch.zeros(1, 3, 8, 8, dtype=torch.int64), None, TypeError, "uint8 or floating point, got torch.int64"),
        (batch(), 3, TypeError, "torch.Generator or int64"),
        (batch(), torch.zeros(40), TypeError, "got torch.float32"),
        (batch(), torch.zeros(39, dtype=torch.int64), ValueError, r"shape \(40,\), one per image, got \(39,\)"),
    ],
)
def test_bad_images_and_keys_are_refused(images, keys, error, message):
    with pytest.raises(error, match=message):
        RandomFlip()(images, stream(0, "bad") if keys is None else keys)


CROP = partial(RandomResizedCrop, 8)


@pytest.mark.parametrize(
    ("build", "arguments", "message"),
    [
        (Compose, {"steps": lambda images: images}, "steps must be augmentations, got function"),
        *((PadCropFlip, {"pad": pad}, "pad must be (>= 0|a whole number)") for pad in (-1, 1.5)),
        *((RandomFlip, {"flip": flip}, "flip must be a probability") for flip in (1.1, "half", math.nan)),
        (RandAugment, {"magnitude": 11}, "magnitude must be from 0 to 10"),
        (RandAugment, {"spread": math.nan}, "spread must be finite"),
        (RandAugment, {"layers": 1.5}, "layers must be a whole number"),
        (RandAugment, {"probability": 2}, "probability must be a probability"),
        *((RandAugment, {"fill": fill}, "fill must be one number from 0") for fill in ((1, 2), 256, "grey")),
        *((RandomResizedCrop, {"size": size}, "size must be") for size in (0, (8, 8, 8), None)),
        *((CROP, {"scale": scale}, r"scale must be \(low, high\) with 0 <") for scale in ((0.0, 1.0), 0.5, ("a", "b"))),
        (CROP, {"ratio": (1.0, math.inf)}, "ratio must be .* both finite"),
        (CROP, {"interpolation": "nearest"}, "'bilinear', 'bicubic', got 'nearest'"),
        (RandomErasing, {"probability": 1.2}, "probability must be a probability"),
        (RandomErasing, {"area": (0.5, 0.2)}, r"area must be \(low, high\) with 0 < low <= high <= 1"),
        (RandomErasing, {"aspect": (-1, 2)}, "aspect must be"),
    ],
)
def test_bad_arguments_are_refused(build, arguments, message):
    with pytest.raises((TypeError, ValueError), match=message):
        build(*arguments.values()) if build is Compose else build(**arguments)
