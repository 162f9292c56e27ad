import numpy as np
import pytest
import torch

from focalcal.lab.data.augment import PadCropFlip, RandomFlip
from focalcal.lab.data.augment.pad_crop_flip import crop_and_flip
from focalcal.lab.training.determinism import stream


def one_by_one(image, pad, top, left, mirrored):
    """Pixel by pixel: where each one comes from."""
    height, width = image.shape[1:]
    result = torch.zeros_like(image)
    for i in range(height):
        for j in range(width):
            row, column = top + i - pad, left + (width - 1 - j if mirrored else j) - pad
            if 0 <= row < height and 0 <= column < width:
                result[:, i, j] = image[:, row, column]
    return result


@pytest.mark.parametrize("dtype", [torch.uint8, torch.float32, torch.float16, torch.float64])
@pytest.mark.parametrize(("shape", "pad"), [((3, 5, 7), 2), ((1, 4, 4), 3), ((2, 6, 3), 0), ((3, 1, 1), 1)])
def test_every_offset_is_the_pixel_by_pixel_result(shape, pad, dtype):
    places = [(t, s, m) for t in range(2 * pad + 1) for s in range(2 * pad + 1) for m in (False, True)]
    images = torch.randint(1, 256, (len(places), *shape)).to(dtype)
    top, left, mirrored = (torch.tensor(part) for part in zip(*places, strict=True))
    result = crop_and_flip(images, pad, top, left, mirrored)
    expected = torch.stack([one_by_one(image, pad, *place) for image, place in zip(images, places, strict=True)])
    assert result.dtype == dtype
    assert torch.equal(result, expected)


def test_reflected_borders_are_those_of_numpy():
    pad, images = 3, torch.randint(0, 256, (5, 2, 4, 6), dtype=torch.uint8)
    padded = torch.from_numpy(np.pad(images.numpy(), ((0, 0), (0, 0), (pad, pad), (pad, pad)), mode="reflect"))
    top, left = torch.tensor([0, 6, 3, 1, 5]), torch.tensor([6, 0, 3, 2, 4])
    mirrored = torch.tensor([False, True, False, True, True])
    result = crop_and_flip(images, pad, top, left, mirrored, reflect=True)
    for image, whole, t, s, turned in zip(result, padded, top, left, mirrored, strict=True):
        expected = whole[:, t : t + 4, s : s + 6]
        assert torch.equal(image, expected.flip(2) if turned else expected)
    with pytest.raises(ValueError, match="pad must be less than the sides of the images to reflect them, got 4 for 4"):
        PadCropFlip(4, reflect=True)(images, stream(0, "reflect"))


def test_offsets_and_mirrors_are_uniform_and_independent():
    count, pad = 40_000, 2
    # One marked pixel in the centre of 9 x 9, and one to its right, tell offset and mirroring.
    images = torch.zeros(count, 1, 9, 9, dtype=torch.uint8)
    images[:, 0, 4, 4], images[:, 0, 4, 5] = 2, 1
    result = PadCropFlip(pad)(images, stream(1, "offsets"))
    place, beside = (result.flatten(1) == 2).int().argmax(1), (result.flatten(1) == 1).int().argmax(1)
    down, right, mirrored = place // 9 - 4 + pad, place % 9 - 4 + pad, (beside < place).long()
    cells = torch.bincount((down * 5 + right) * 2 + mirrored, minlength=50).double()
    expected = count / 50
    assert cells.numel() == 50
    assert ((cells - expected) ** 2 / expected).sum() < 85.4  # chi-squared, 49 degrees of freedom, p = 0.001


def test_flip_probability_is_kept():
    images = torch.arange(4, dtype=torch.uint8).view(1, 1, 1, 4).expand(10_000, -1, -1, -1)
    for share in (0.0, 0.3, 1.0):
        for augmentation in (PadCropFlip(0, flip=share), RandomFlip(share)):
            result = augmentation(images, stream(0, "flips"))
            assert (result[:, 0, 0, 0] == 3).double().mean() == pytest.approx(share, abs=0.02 * (0 < share < 1))
            assert result.sort(3).values.eq(images).all()


def test_without_padding_and_mirroring_nothing_changes():
    images = torch.rand(5, 3, 6, 6)
    result = PadCropFlip(0, flip=0.0)(images, stream(0, "none"))
    assert torch.equal(result, images)
    result.zero_()
    assert images.abs().sum() > 0
