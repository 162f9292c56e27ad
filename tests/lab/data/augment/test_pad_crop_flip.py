import numpy as np
import pytest
import torch

from focalcal.lab.data.augment import PadCropFlip, RandomFlip
from focalcal.lab.data.augment.pad_crop_flip import crop_and_flip
from focalcal.lab.training.determinism import stream


@pytest.mark.parametrize("reflect", [False, True])
@pytest.mark.parametrize(("shape", "pad"), [((3, 5, 7), 2), ((1, 4, 4), 3), ((2, 6, 3), 0)])
def test_every_offset_is_that_window_of_numpys_padded_image(shape, pad, reflect):
    places = [(t, s, m) for t in range(2 * pad + 1) for s in range(2 * pad + 1) for m in (False, True)]
    images = torch.randint(1, 256, (len(places), *shape), dtype=torch.uint8)
    top, left, mirrored = (torch.tensor(part) for part in zip(*places, strict=True))
    result = crop_and_flip(images, pad, top, left, mirrored, reflect=reflect)
    widths = ((0, 0), (0, 0), (pad, pad), (pad, pad))
    padded = torch.from_numpy(np.pad(images.numpy(), widths, mode="reflect" if reflect else "constant"))
    for image, whole, (t, s, turned) in zip(result, padded, places, strict=True):
        expected = whole[:, t : t + shape[1], s : s + shape[2]]
        assert torch.equal(image, expected.flip(2) if turned else expected)


def test_more_than_an_image_is_not_reflected():
    with pytest.raises(ValueError, match="pad must be less than the sides of the images to reflect them, got 4 for 4"):
        PadCropFlip(4, reflect=True)(torch.zeros(1, 1, 4, 4), stream(0, "reflect"))


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
