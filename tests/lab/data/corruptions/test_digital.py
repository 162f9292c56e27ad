from io import BytesIO

import numpy as np
import pytest
from PIL import Image
from scipy import ndimage

from focalcal.lab.data.corruptions import CORRUPTIONS, SEVERITIES, corrupt
from focalcal.lab.data.corruptions.pixels import mirror, read_bilinear, reflect


def generators(count):
    return [np.random.default_rng(i) for i in range(count)]


def noise(count=3, side=32):
    return np.random.default_rng(0).integers(0, 256, (count, side, side, 3), dtype=np.uint8)


@pytest.mark.parametrize("severity", SEVERITIES)
def test_contrast_shrinks_each_channel_about_its_mean(severity):
    factor = (0.75, 0.5, 0.4, 0.3, 0.15)[severity - 1]
    images = (noise() / 255 * [1.0, 0.5, 0.2]).astype(np.float32)
    changed = CORRUPTIONS["contrast"].function(images, generators(3), CORRUPTIONS["contrast"].strengths[severity - 1])
    assert np.allclose(changed.mean((1, 2)), images.mean((1, 2)), atol=1e-5)
    assert np.allclose(changed.std((1, 2)), factor * images.std((1, 2)), rtol=1e-4)


@pytest.mark.parametrize("severity", SEVERITIES)
def test_pixelate_is_pillows(severity):
    side = (30, 28, 27, 24, 20)[severity - 1]
    images = noise()
    result = corrupt(images, "pixelate", severity, seed=0)
    for image, got in zip(images, result, strict=True):
        small = Image.fromarray(image).resize((side, side), Image.Resampling.BOX)
        expected = np.asarray(small.resize((32, 32), Image.Resampling.BOX)).astype(int)
        assert abs(got.astype(int) - expected).max() <= 1
        # Blocks: no more different rows and columns than small pixels.
        assert len(np.unique(got.reshape(32, -1), axis=0)) == side
        assert len(np.unique(got.transpose(1, 0, 2).reshape(32, -1), axis=0)) == side


@pytest.mark.parametrize("severity", SEVERITIES)
def test_jpeg_has_the_quality(severity):
    quality = (80, 65, 58, 50, 40)[severity - 1]
    for image, got in zip(noise(), corrupt(noise(), "jpeg_compression", severity, seed=0), strict=True):
        differences = {}
        for candidate in (quality - 10, quality - 1, quality, quality + 1, quality + 10):
            file = BytesIO()
            Image.fromarray(image).save(file, "JPEG", quality=candidate)
            differences[candidate] = abs(np.asarray(Image.open(file)).astype(int) - got).mean()
        assert differences.pop(quality) == 0
        assert min(differences.values()) > 0


@pytest.mark.parametrize(("fold", "mode"), [(mirror, "mirror"), (reflect, "reflect")])
def test_bilinear_reading_is_scipys(fold, mode):
    images = np.random.default_rng(0).random((2, 9, 12, 3)).astype(np.float32)
    rows, columns = np.random.default_rng(1).uniform(-20, 30, (2, 2, 9, 12))
    got = read_bilinear(images, rows, columns, fold)
    for n in range(2):
        for c in range(3):
            expected = ndimage.map_coordinates(images[n, ..., c], [rows[n], columns[n]], order=1, mode=mode)
            assert np.allclose(got[n, ..., c], expected, atol=1e-5)


def coordinates(count):
    """Images whose first two channels are their pixels' own rows and columns, in sides."""
    y, x = np.mgrid[:32, :32] / 32
    return np.repeat(np.stack([y, x, 0 * x], -1)[None], count, 0).astype(np.float32)


def displaced(severity, count=60):
    """Where the inner pixels come from, and the part of that which no affine map explains, in pixels."""
    function, strength = CORRUPTIONS["elastic_transform"].function, CORRUPTIONS["elastic_transform"].strengths
    came = 32 * function(coordinates(count), generators(count), strength[severity - 1])[:, 10:22, 10:22, :2]
    y, x = np.mgrid[10:22, 10:22]
    design = np.stack([y.ravel(), x.ravel(), np.ones(144)], 1)
    points = came.reshape(count, 144, 2)
    left = points - design @ (np.linalg.pinv(design) @ points)
    return came, float(np.sqrt((left**2).mean()))


def test_elastic_1_is_an_affine_map_within_its_reach():
    came, left = displaced(1)
    assert left < 1e-4
    y, x = np.mgrid[10:22, 10:22]
    moved = came - np.stack([y, x], -1)
    assert abs(moved).max() < 4 * 0.08 * 32
    # The corners move by up to 2.56 pixels each way: deviation 2.56 / sqrt(3), less in between.
    assert 0.5 < moved.std() < 2.56 / 3**0.5
    assert abs(moved.mean()) < 0.5


@pytest.mark.parametrize("severity", [3, 5])
def test_elastic_displacement_has_its_amplitude_and_smoothing(severity):
    amplitude, smoothing, _ = CORRUPTIONS["elastic_transform"].strengths[severity - 1]
    function = CORRUPTIONS["elastic_transform"].function
    moved = 32 * (function(coordinates(100), generators(100), (amplitude, smoothing, 0.0)) - coordinates(100))
    inner = moved[:, 6:26, 6:26, :2]
    # Uniform noise of deviation 1/sqrt(3), smoothed by sigma pixels, keeps 1/(2 sqrt(pi) sigma) of it.
    deviation = 32 * amplitude / 3**0.5 / (2 * np.pi**0.5 * 32 * smoothing)
    assert inner.std() == pytest.approx(deviation, rel=0.07)
    # Its neighbours' correlation is exp(-1 / (4 sigma^2)).
    correlation = (inner[:, 1:] * inner[:, :-1]).mean() / inner.var()
    assert correlation == pytest.approx(np.exp(-1 / (4 * (32 * smoothing) ** 2)), abs=0.03)
    assert abs(np.corrcoef(inner[..., 0].ravel(), inner[..., 1].ravel())[0, 1]) < 0.07
