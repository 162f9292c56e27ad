import colorsys

import numpy as np
import pytest

from focalcal.lab.data.corruptions import CORRUPTIONS, SEVERITIES, corrupt
from focalcal.lab.data.corruptions.weather import SIDE, TEXTURES, frost_textures, plasma_fractal


def generators(count):
    return [np.random.default_rng(i) for i in range(count)]


class Fixed:
    """A generator whose uniform numbers are given."""

    def __init__(self, numbers):
        self.numbers = numbers

    def uniform(self, low, high, count):
        return low + (high - low) * self.numbers[:count]


def diamond_square(side, decay, numbers):
    """Point by point, from the same numbers in the same order."""
    heights, taken, wibble, spacing = {(0, 0): 0.0}, iter(2 * numbers - 1), 1.0, side
    while spacing >= 2:
        half = spacing // 2
        grid = [(i, j) for i in range(0, side, spacing) for j in range(0, side, spacing)]
        for down, right in ((half, half), (0, half), (half, 0)):
            reach = [(-half, -half), (-half, half), (half, -half), (half, half)]
            if (down, right) != (half, half):
                reach = [(-half, 0), (half, 0), (0, -half), (0, half)]
            for i, j in grid:
                row, column = i + down, j + right
                around = [heights[(row + a) % side, (column + b) % side] for a, b in reach]
                heights[row, column] = sum(around) / 4 + wibble * next(taken)
        spacing, wibble = half, wibble / decay**2
    result = np.array([[heights[i, j] for j in range(side)] for i in range(side)])
    return (result - result.min()) / (result.max() - result.min())


@pytest.mark.parametrize("decay", [1.75, 3.0])
def test_plasma_is_midpoint_displacement_point_by_point(decay):
    numbers = np.random.default_rng(0).random(255)
    assert np.allclose(plasma_fractal([Fixed(numbers)], 16, decay)[0], diamond_square(16, decay, numbers))


@pytest.mark.parametrize("severity", [1, 3, 5])
def test_fog_is_the_stated_mixture(severity):
    amount, decay = CORRUPTIONS["fog"].strengths[severity - 1]
    image = np.random.default_rng(0).uniform(0, 0.8, (3, 32, 32, 3)).astype(np.float32)
    fogged = CORRUPTIONS["fog"].function(image, generators(3), (amount, decay))
    largest = image.max((1, 2, 3), keepdims=True)
    layer = (fogged * (largest + amount) / largest - image) / amount
    assert np.allclose(layer[..., 0], plasma_fractal(generators(3), 32, decay), atol=1e-5)
    assert np.allclose(layer[..., 0], layer[..., 2], atol=1e-5)
    assert (fogged <= largest + 1e-6).all()


@pytest.mark.parametrize("severity", SEVERITIES)
def test_brightness_adds_to_the_value_alone(severity):
    amount = (0.05, 0.1, 0.15, 0.2, 0.3)[severity - 1]
    image = np.random.default_rng(0).random((1, 8, 8, 3)).astype(np.float32)
    image[0, 0, 0] = 0
    image[0, 0, 1] = (0.0, 0.4, 0.0)
    brighter = CORRUPTIONS["brightness"].function(image, generators(1), amount)
    for before, after in zip(image.reshape(-1, 3), brighter.reshape(-1, 3), strict=True):
        hue, saturation, value = colorsys.rgb_to_hsv(*before.astype(float))
        expected = colorsys.hsv_to_rgb(hue, saturation, min(value + amount, 1))
        assert np.allclose(after, expected, atol=1e-5)
    grey = np.full((1, 8, 8, 3), 100, dtype=np.uint8)
    shift = corrupt(grey, "brightness", severity, seed=0).mean() - 100
    assert shift == pytest.approx(255 * amount, abs=1)


@pytest.mark.parametrize("severity", [1, 3, 5])
def test_frost_is_the_image_and_a_crop_of_a_texture(severity):
    ours, theirs = CORRUPTIONS["frost"].strengths[severity - 1]
    image = np.random.default_rng(0).random((40, 32, 32, 3)).astype(np.float32)
    layer = (CORRUPTIONS["frost"].function(image, generators(40), (ours, theirs)) - ours * image) / theirs
    textures = frost_textures()
    used = set()
    for crop, generator in zip(layer, generators(40), strict=True):
        number, top, left = generator.integers(0, (TEXTURES, SIDE, SIDE))
        rolled = np.roll(textures[number], (-top, -left), (0, 1))[:32, :32]
        assert np.allclose(crop, rolled, atol=1e-5)
        used.add(int(number))
    assert used == set(range(TEXTURES))


@pytest.mark.parametrize("severity", [1, 3, 5])
def test_snow_whitens_and_its_flakes_are_turned_over(severity):
    strength = CORRUPTIONS["snow"].strengths[severity - 1]
    weight = strength[6]
    image = np.full((60, 32, 32, 3), 0.2, dtype=np.float32)
    snowed = CORRUPTIONS["snow"].function(image, generators(60), strength)
    base = weight * 0.2 + (1 - weight) * (1.5 * 0.2 + 0.5)
    flakes = snowed - base
    assert flakes.min() > -1e-5
    assert np.allclose(flakes, flakes[:, ::-1, ::-1], atol=1e-5)
    assert np.allclose(flakes[..., 0], flakes[..., 1], atol=1e-5)
    location, scale, zoom, threshold = strength[:4]
    if zoom == 1.0:  # blurring keeps the mean of the flakes: E[min(z, 1); z > threshold], twice
        numbers = np.random.default_rng(0).normal(location, scale, 200_000)
        expected = 2 * (np.minimum(numbers, 1) * (numbers >= threshold)).mean()
        assert flakes.mean() == pytest.approx(expected, rel=0.15)
    assert flakes.max() > 0.05


def test_snow_falls_within_45_degrees_of_the_vertical():
    """Flakes vary less along their fall than across it."""
    snowed = CORRUPTIONS["snow"].function(
        np.zeros((100, 32, 32, 3), dtype=np.float32), generators(100), CORRUPTIONS["snow"].strengths[1]
    )
    assert (np.diff(snowed, axis=1) ** 2).mean() < 0.6 * (np.diff(snowed, axis=2) ** 2).mean()
