import numpy as np
import pytest
from scipy import ndimage

from focalcal.lab.data.corruptions import CORRUPTIONS, SEVERITIES
from focalcal.lab.data.corruptions.blur import disk_kernel, magnify, streak_weights

DISKS = CORRUPTIONS["defocus_blur"].strengths


def generators(count):
    return [np.random.default_rng(i) for i in range(count)]


def spread(kernel):
    """Variance along each axis of a kernel about its middle."""
    offsets = np.arange(len(kernel)) - len(kernel) // 2
    return (kernel * offsets**2).sum(), (kernel * offsets[:, None] ** 2).sum()


@pytest.mark.parametrize("severity", SEVERITIES)
def test_disk_kernels_have_mass_one_and_their_second_moments(severity):
    radius, alias = DISKS[severity - 1]
    kernel = disk_kernel(radius, alias)
    assert kernel.sum() == pytest.approx(1, abs=1e-12)
    assert np.allclose(kernel, kernel.T)
    assert np.allclose(kernel, kernel[::-1, ::-1])
    disk = {0: 0.0, 1.0: 2 / 5, 1.5: 2 / 3}[radius if radius >= 1 else 0]  # one pixel, a plus, a square
    side = np.exp(-1 / (2 * alias**2))
    assert spread(kernel) == pytest.approx([disk + 2 * side / (1 + 2 * side)] * 2, abs=1e-12)
    point, reach = np.zeros((1, 15, 15, 3), dtype=np.float32), len(kernel) // 2
    point[0, 7, 7] = 1
    blurred = CORRUPTIONS["defocus_blur"].function(point, generators(1), (radius, alias))[0, ..., 1]
    assert np.allclose(blurred[7 - reach : 8 + reach, 7 - reach : 8 + reach], kernel, atol=1e-7)
    assert blurred.sum() == pytest.approx(1, abs=1e-6)


@pytest.mark.parametrize("strength", CORRUPTIONS["motion_blur"].strengths)
def test_streaks_have_mass_one_and_half_a_bells_moments(strength):
    radius, sigma = strength
    weights = streak_weights(radius, sigma)
    assert len(weights) == 2 * radius + 1
    assert weights.sum() == pytest.approx(1, abs=1e-12)
    assert np.all(np.diff(weights) < 0)
    index = np.arange(len(weights))
    # E i and E i^2 of a half-normal law on whole numbers: Euler and Maclaurin's first correction, 1/2 at i = 0.
    bell = np.exp(-(np.arange(200.0) ** 2) / (2 * sigma**2))
    assert (weights * index**2).sum() == pytest.approx((bell * np.arange(200.0) ** 2).sum() / bell.sum(), rel=5e-3)
    assert weights[1] / weights[0] == pytest.approx(np.exp(-0.5 / sigma**2))


def test_motion_blurs_angles_lie_within_45_degrees():
    image = np.zeros((150, 41, 41, 3), dtype=np.float32)
    image[:, 20, 20] = 1
    blurred = CORRUPTIONS["motion_blur"].function(image, generators(150), (9, 2.5))[..., 0]
    rows, columns = np.mgrid[:41, :41] - 20.0
    down, right = (blurred * rows).sum((1, 2)), (blurred * columns).sum((1, 2))
    angle = np.rad2deg(np.arctan2(-down, -right))
    assert abs(angle).max() < 47
    assert angle.std() == pytest.approx(90 / 12**0.5, rel=0.15)


@pytest.mark.parametrize(("factor", "side"), [(1.0, 32), (1.01, 45), (1.13, 32), (1.25, 45), (2.25, 32)])
def test_zooms_are_scipys(factor, side):
    image = np.random.default_rng(0).random((1, side, side, 2)).astype(np.float32)
    crop = int(np.ceil(side / factor))
    start = (side - crop) // 2
    large = ndimage.zoom(image[0, start : start + crop, start : start + crop], (factor, factor, 1), order=1)
    trim = (len(large) - side) // 2
    expected = large[trim : trim + side, trim : trim + side]
    assert np.allclose(magnify(image, factor)[0], expected, atol=1e-5)


@pytest.mark.parametrize("severity", [1, 5])
def test_zoom_blur_is_the_mean_of_its_zooms(severity):
    image = np.random.default_rng(0).random((2, 32, 32, 3)).astype(np.float32)
    zooms = [1 + k / 100 for k in range(5 * severity + 1)]
    expected = (image + sum(magnify(image, factor) for factor in zooms)) / (len(zooms) + 1)
    strength = CORRUPTIONS["zoom_blur"].strengths[severity - 1]
    assert strength == pytest.approx(zooms[-1])
    assert np.allclose(CORRUPTIONS["zoom_blur"].function(image, generators(2), strength), expected, atol=1e-6)


def test_glass_takes_each_pixel_from_itself_or_its_upper_left_neighbours():
    # Without blur (sigma 0.05 has no neighbour's weight) one sweep only copies.
    image = np.random.default_rng(0).permutation(1024)[:768].reshape(1, 16, 16, 3) % 256 / 255
    image = image.astype(np.float32)
    shuffled = CORRUPTIONS["glass_blur"].function(np.repeat(image, 200, 0), generators(200), (0.05, 1, 1))
    offsets = np.zeros((2, 2))
    for row in range(2, 16):
        for column in range(2, 16):
            sources = image[0, row - 1 : row + 1, column - 1 : column + 1]
            same = np.isclose(shuffled[:, row, column][:, None, None], sources, atol=2e-3).all(-1)
            assert same.any((1, 2)).all()
            offsets += same.mean(0)
    assert np.allclose(offsets / 14**2, 0.25, atol=0.01)
    assert np.allclose(shuffled[:, :2], image[:, :2], atol=2e-3)
    assert np.allclose(shuffled[:, :, :2], image[:, :, :2], atol=2e-3)
