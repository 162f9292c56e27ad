import numpy as np
import pytest
import torch
from PIL import Image, ImageEnhance, ImageOps

from focalcal.lab.data.augment import RandAugment
from focalcal.lab.data.augment.counter_rng import derived_keys, example_keys
from focalcal.lab.data.augment.rand_augment import OPERATIONS
from focalcal.lab.training.determinism import stream

# What maps whole levels to whole levels agrees exactly; what interpolates or blends to a level, by rounding.
EXACT = {"equalize", "invert", "posterize", "solarize", "solarize_add"}


def smooth_images(count, channels, height=33, width=27):
    """Gradients with some noise, so that neither histograms nor edges are trivial."""
    across = torch.linspace(0, 200, width)
    base = across + torch.linspace(0, 50, height)[:, None]
    noise = torch.rand(count, channels, height, width, generator=stream(0, "noise")) * 60 - 10
    tint = torch.rand(count, channels, 1, 1, generator=stream(0, "tint"))
    return (base * tint + noise).clamp(0, 255).to(torch.uint8)


def grey(picture):
    return 128 if picture.mode == "L" else (128, 128, 128)


def transformed(picture, matrix):
    method, fill = Image.Resampling.BILINEAR, grey(picture)
    return picture.transform(picture.size, Image.Transform.AFFINE, matrix, method, fillcolor=fill)


def pillow(picture, name, m, sign):
    """The operation of `name` at magnitude m, as Pillow does it."""
    (width, height), factor = picture.size, max(0.1, 1 + sign * 0.09 * m)
    channels = len(picture.getbands())
    return {
        "auto_contrast": lambda: ImageOps.autocontrast(picture),
        "equalize": lambda: ImageOps.equalize(picture),
        "invert": lambda: ImageOps.invert(picture),
        "rotate": lambda: picture.rotate(sign * 3 * m, Image.Resampling.BILINEAR, fillcolor=grey(picture)),
        "posterize": lambda: ImageOps.posterize(picture, 4 - int(m / 10 * 4)),
        "solarize": lambda: ImageOps.solarize(picture, 256 - int(m / 10 * 256)),
        "solarize_add": lambda: picture.point(
            [min(255, i + int(m / 10 * 110)) if i < 128 else i for i in range(256)] * channels
        ),
        "color": lambda: ImageEnhance.Color(picture).enhance(factor),
        "contrast": lambda: ImageEnhance.Contrast(picture).enhance(factor),
        "brightness": lambda: ImageEnhance.Brightness(picture).enhance(factor),
        "sharpness": lambda: ImageEnhance.Sharpness(picture).enhance(factor),
        "shear_x": lambda: transformed(picture, (1, sign * 0.03 * m, 0, 0, 1, 0)),
        "shear_y": lambda: transformed(picture, (1, 0, 0, sign * 0.03 * m, 1, 0)),
        "translate_x": lambda: transformed(picture, (1, 0, sign * 0.045 * m * width, 0, 1, 0)),
        "translate_y": lambda: transformed(picture, (1, 0, 0, 0, 1, sign * 0.045 * m * height)),
    }[name]()


@pytest.mark.parametrize(("dtype", "channels"), [(torch.uint8, 3), (torch.float32, 1)])
@pytest.mark.parametrize("name", OPERATIONS)
def test_the_operation_is_pillows(name, dtype, channels):
    augmentation = RandAugment(5.0, spread=3.0, layers=1, probability=1.0)
    keys = example_keys(3, "operations", ids=range(300))
    operation, magnitude, sign = augmentation.draws(derived_keys(keys, 0))
    drew = (operation == OPERATIONS.index(name)).nonzero()[:, 0]
    assert len(drew) > 8
    images = smooth_images(len(drew), channels)
    result = augmentation(images if dtype == torch.uint8 else images / 255, keys[drew])
    levels = (result if dtype == torch.uint8 else result * 255).permute(0, 2, 3, 1).double().numpy()
    pictures = images.permute(0, 2, 3, 1).numpy()
    for image, got, m, s in zip(pictures, levels, magnitude[drew].tolist(), sign[drew].tolist(), strict=True):
        picture = Image.fromarray(image[..., 0] if channels == 1 else image)
        expected = np.asarray(pillow(picture, name, m, s), dtype=float).reshape(image.shape)
        difference = abs(got - expected)
        if name in EXACT:
            assert difference.max() < 1e-3
        else:
            # Pillow rounds what it blends with and then cuts fractions off; a fill's edge may round to the other side.
            assert np.mean(difference > 1.6) < 0.004
            assert difference.mean() < 0.8


def test_draws_have_the_stated_laws():
    operation, magnitude, sign = RandAugment().draws(example_keys(0, "draws", ids=range(60_000)))
    assert (operation < 0).double().mean() == pytest.approx(0.5, abs=0.01)
    counts = torch.bincount(operation[operation >= 0], minlength=15).double()
    assert ((counts - counts.mean()) ** 2 / counts.mean()).sum() < 36.1  # 14 degrees of freedom, p = 0.001
    assert magnitude.max() == 10
    assert (magnitude == 10).double().mean() == pytest.approx(0.0228, abs=0.003)  # beyond two deviations
    assert magnitude.median() == pytest.approx(9, abs=0.01)
    assert (magnitude < 8.5).double().mean() == pytest.approx(0.1587, abs=0.005)
    assert sign.mean() == pytest.approx(0, abs=0.02)
    assert sign.unique().tolist() == [-1, 1]


def test_layers_draw_apart_and_an_image_without_operation_is_the_same():
    augmentation, keys = RandAugment(probability=1.0), example_keys(0, "layers", ids=range(5000))
    first, second = (augmentation.draws(derived_keys(keys, layer))[0] for layer in (0, 1))
    assert (first == second).double().mean() == pytest.approx(1 / 15, abs=0.02)
    images, keys = torch.rand(20, 3, 8, 8), example_keys(0, "x", ids=range(20))
    for none in (RandAugment(layers=0), RandAugment(probability=0.0)):
        assert torch.equal(none(images, keys), images)
    untouched = RandAugment(layers=1).draws(derived_keys(keys, 0))[0] < 0
    assert bool(untouched.any())
    assert torch.equal(RandAugment(layers=1)(images, keys)[untouched], images[untouched])


def test_grey_images_and_fills():
    grey = torch.randint(0, 256, (200, 1, 9, 9), dtype=torch.uint8)
    assert RandAugment()(grey, stream(0, "grey")).shape == grey.shape
    moved = RandAugment(layers=1, probability=1.0, fill=(10, 20, 30))
    keys = example_keys(0, "fill", ids=range(200))
    shifted = (moved.draws(derived_keys(keys, 0))[0] == OPERATIONS.index("translate_x")).nonzero()[:, 0]
    corner = moved(torch.full((200, 3, 9, 9), 200, dtype=torch.uint8), keys)[shifted]
    assert {tuple(c) for c in corner[:, :, 0, 0].tolist()} == {(10, 20, 30), (200, 200, 200)}


def test_images_without_colours_are_refused():
    with pytest.raises(ValueError, match="1 or 3 channels"):
        RandAugment()(torch.zeros(1, 4, 8, 8), stream(0, "four"))
    with pytest.raises(ValueError, match="fill must be one number or one for each of 1 channels"):
        RandAugment(fill=(1, 2, 3))(torch.zeros(1, 1, 8, 8), stream(0, "fill"))
    with pytest.raises(ValueError, match=r"must lie in 0 .. 1, got values from -2 to 2; augment before normalising"):
        RandAugment()(torch.tensor([-2.0, 2.0]).view(1, 1, 1, 2), stream(0, "normalised"))
