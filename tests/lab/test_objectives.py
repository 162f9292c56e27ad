import doctest
import itertools

import numpy as np
import pytest
from matplotlib.colors import to_rgb

from focalcal.lab import objectives
from focalcal.lab.objectives import ORDER, full_name, looks, short_name
from focalcal.pages.palette import DARK, LIGHT
from focalcal.pages.style import line_style

# Machado, Oliveira and Fernandes (2009), severity 1, on linear RGB.
SIGHT = {
    "normal": np.eye(3),
    "protanopia": [[0.152286, 1.052583, -0.204868], [0.114503, 0.786281, 0.099216], [-0.003882, -0.048116, 1.051998]],
    "deuteranopia": [[0.367322, 0.860646, -0.227968], [0.280085, 0.672501, 0.047413], [-0.011820, 0.042940, 0.968881]],
}
XYZ = np.array(
    [[0.4124564, 0.3575761, 0.1804375], [0.2126729, 0.7151522, 0.0721750], [0.0193339, 0.1191920, 0.9503041]]
)


def linear(colour):
    rgb = np.array(to_rgb(colour))
    return np.where(rgb <= 0.04045, rgb / 12.92, ((rgb + 0.055) / 1.055) ** 2.4)


def lab(rgb):
    x, y, z = np.cbrt(XYZ @ np.clip(rgb, 0, 1) / [0.95047, 1, 1.08883])  # dark ends are near enough
    return np.array([116 * y - 16, 500 * (x - y), 200 * (y - z)])


def contrast(colour, ground):
    low, high = sorted(float(linear(one) @ XYZ[1]) for one in (colour, ground))
    return (high + 0.05) / (low + 0.05)


@pytest.mark.parametrize("sight", SIGHT)
@pytest.mark.parametrize("colours", [LIGHT, DARK], ids=["light", "dark"])
def test_colours_differ_for_every_sight(colours, sight):
    seen = [lab(np.array(SIGHT[sight]) @ linear(colour)) for colour in colours]
    assert min(np.linalg.norm(a - b) for a, b in itertools.combinations(seen, 2)) > 25


@pytest.mark.parametrize(("colours", "ground"), [(LIGHT, "#ffffff"), (DARK, "#14171b")], ids=["light", "dark"])
def test_colours_stand_out_from_their_ground(colours, ground):
    assert min(contrast(colour, ground) for colour in colours) >= 2.99


def test_a_known_objective_always_looks_the_same():
    alone, beside = looks(["fcl"])["fcl"], looks([*ORDER, "mine"])["fcl"]
    assert alone == beside
    assert looks(["fcl lam=0.5", "ce"])["ce"] == looks(["ce"])["ce"]
    assert looks(["fcl gamma=1", "fcl"])["fcl"] == alone  # whichever comes first
    assert looks(["multilabel_fcl"])["multilabel_fcl"] == alone


def test_no_two_objectives_look_alike():
    many = [*ORDER, *(f"fcl lam={number}" for number in range(60)), "mine"]
    found = looks(many)
    assert len(set(found.values())) == len(many)
    assert len({look.marker for look in looks(ORDER).values()}) == len(ORDER)


def test_figures_have_the_pages_look():
    look = looks(ORDER)["focal"]
    style = line_style(look)
    assert style["color"] == look.light
    assert style["marker"] == "s"
    assert style["linestyle"] == (0, pytest.approx([0.7 * length for length in look.dash]))


def test_names():
    assert short_name("ls") == "Label smoothing"
    assert full_name("fcl gamma=2").startswith("Focal Calibration Loss: focal loss plus")
    assert full_name("fcl gamma=2").endswith(", gamma=2")
    assert doctest.testmod(objectives) == doctest.TestResults(failed=0, attempted=1)
