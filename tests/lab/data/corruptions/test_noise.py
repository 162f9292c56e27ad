import numpy as np
import pytest

from focalcal.lab.data.corruptions import CORRUPTIONS, SEVERITIES, corrupt


def flat(level, count=30):
    return np.full((count, 32, 32, 3), level, dtype=np.uint8)


@pytest.mark.parametrize("severity", SEVERITIES)
def test_gaussian_noise_has_its_deviation(severity):
    noise = corrupt(flat(128), "gaussian_noise", severity, seed=0).astype(float) - 128
    expected = 255 * (0.04, 0.06, 0.08, 0.09, 0.10)[severity - 1]
    assert noise.mean() == pytest.approx(-0.5, abs=0.4)  # truncated to whole levels
    assert (noise.var() - 1 / 12) ** 0.5 == pytest.approx(expected, rel=0.01)
    # Normal: skewness and excess kurtosis of 92,160 numbers.
    z = (noise - noise.mean()) / noise.std()
    assert abs((z**3).mean()) < 0.04
    assert abs((z**4).mean() - 3) < 0.08


@pytest.mark.parametrize("severity", SEVERITIES)
@pytest.mark.parametrize("level", [40, 128])
def test_shot_noise_has_poissons_variance(severity, level):
    photons = (500, 250, 100, 75, 50)[severity - 1]
    clean = (flat(level) / 255).astype(np.float32)
    generators = [np.random.default_rng(i) for i in range(len(clean))]
    counts = CORRUPTIONS["shot_noise"].function(clean, generators, photons) * photons
    assert np.allclose(counts, counts.round(), atol=1e-3)
    assert counts.mean() == pytest.approx(photons * level / 255, rel=0.01)
    assert counts.var() / counts.mean() == pytest.approx(1, abs=0.02)
    assert CORRUPTIONS["shot_noise"].strengths[severity - 1] == photons


@pytest.mark.parametrize("severity", SEVERITIES)
def test_impulse_noise_has_its_share_of_salt_and_pepper(severity):
    result = corrupt(flat(100, 100), "impulse_noise", severity, seed=0)
    share = (0.01, 0.02, 0.03, 0.05, 0.07)[severity - 1]
    error = 4 * (share / result.size) ** 0.5
    assert (result == 255).mean() == pytest.approx(share / 2, abs=error)
    assert (result == 0).mean() == pytest.approx(share / 2, abs=error)
    assert set(np.unique(result)) == {0, 100, 255}
    # Channels are struck apart: all three at once is as rare as chance makes it.
    assert ((result != 100).all(3)).mean() < 10 * share**3 + 1e-4
