"""The guide shows the shipped studies as they are, and its example is one."""

import re
from pathlib import Path

import pytest

from focalcal.experiments import StudyError, parse_study
from focalcal.experiments.shipped import study_table

GUIDE = Path(__file__).parents[2] / "docs" / "guide" / "studies.md"


def example():
    (text,) = re.findall(r"```toml\n(.*?)```", GUIDE.read_text("utf-8"), re.DOTALL)
    return text


def test_the_guide_repeats_the_table():
    assert study_table() in GUIDE.read_text("utf-8")


def test_the_guides_example_has_the_cells_it_says():
    specs = parse_study(example()).specs()
    assert len(specs) == 72
    assert "= 72 cells" in GUIDE.read_text("utf-8")


def test_the_guides_faults_are_reported_like_that():
    wrong = example().replace("lr = 0.02 ", "lr = -1 ").replace('"fcl"', '"fcll"')
    with pytest.raises(StudyError) as caught:
        parse_study(wrong, "mine.toml")
    with pytest.raises(StudyError) as other:
        parse_study(example().replace("lam =", "lamda ="), "mine.toml")
    reported = [*str(caught.value).splitlines(), *str(other.value).splitlines()]
    shown = re.findall(r"^    (mine\.toml: .*)$", GUIDE.read_text("utf-8"), re.MULTILINE)
    assert len(reported) == len(shown) == 3
    for line, wanted in zip(reported, shown, strict=True):
        assert line.startswith(wanted.removesuffix(" ..."))
