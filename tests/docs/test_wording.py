"""The check of phrases finds them, and leaves alone what only looks like them."""

import runpy
from pathlib import Path

import pytest

FAULTS = runpy.run_path(str(Path(__file__).parents[2] / ".ci" / "wording.py"))["faults"]


@pytest.mark.parametrize(
    "text", ["one value an example", "bytes a class", "a row a run", "it mends", "cannot be had back"]
)
def test_a_phrase_is_found_with_its_line(text):
    assert FAULTS(Path("a.md"), f"first\n{text}")[0].startswith("a.md:2: ")


@pytest.mark.parametrize(
    "text", ["one value per example", "we recommend and amend", "several labels a metric's name", "a few rows of a run"]
)
def test_plain_english_passes(text):
    assert FAULTS(Path("a.md"), text) == []
