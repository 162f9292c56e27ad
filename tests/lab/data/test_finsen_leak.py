"""FinSen's text gives its category away: what `benchmarks/finsen_leak.py` prints, and that the guide says the same."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from references.data_fingerprints import OF_FILES
from support.data_folders import finsen

from focalcal.lab.data.finsen import Item, finsen_items
from focalcal.lab.data.source_files import SourceFiles, file_sha256

ROOT = Path(__file__).resolve().parents[3]


def printed(folder):
    """{row: (as it is, stripped)} of the table, in per cent."""
    script = ROOT / "benchmarks" / "finsen_leak.py"
    environment = {**os.environ, "FOCALCAL_DATA": str(folder), "PYTHONPATH": str(ROOT / "src")}
    done = subprocess.run([sys.executable, script], capture_output=True, text=True, check=True, env=environment)
    rows = re.findall(r"\| ([a-z ,]+) \| ([\d.]+) \| ([\d.]+) \|", done.stdout)
    return {name: (float(first), float(second)) for name, first, second in rows}


def test_a_table_of_tags_is_always_right_until_they_are_stripped(tmp_path):
    """In the small file a text begins with its tag, and 12 categories are equally frequent."""
    finsen(tmp_path)
    shares = printed(tmp_path)
    assert shares["the first tag, looked up"] == (100.0, pytest.approx(100 / 12, abs=0.05))
    assert shares["the commonest category, always"][0] == pytest.approx(100 / 12, abs=0.05)


@pytest.mark.slow
def test_the_real_finsen_gives_its_category_away_as_the_guide_says(data_folder):
    shares = printed(data_folder)
    table, constant, words = shares.values()
    assert table[0] > 90 > constant[0] > table[1]
    if file_sha256(data_folder / "finsen" / "FinSen_US_Categorized.csv") != OF_FILES["finsen"][0]:
        pytest.skip("the FinSen at hand is not the part that the guide speaks of")
    guide = " ".join((ROOT / "docs" / "guide" / "data.md").read_text().split())
    told = re.search(
        r"right for (\d+) % .*?strip_tags=True` for (\d+) %.*?category \((\d+) %\).*?(\d+) %.*?(\d+) %", guide
    )
    assert told
    assert [int(number) for number in told.groups()] == [round(x) for x in (*table, constant[0], *words)]


def test_the_real_tags_have_one_category_and_are_stripped_everywhere(data_folder):
    items = finsen_items(SourceFiles("finsen", data_folder))
    category = {item.tag: item.category for item in items}
    assert all(category[item.tag] == item.category for item in items)
    assert not any(item.tag.lower() in item.stripped().lower() for item in items)


def test_stripping_a_tag_is_literal_and_ignores_case():
    item = Item("Up", "GDP (QoQ)", "UpUnited States\xa0GDP (QoQ)The gdp  (qoq) rose, GDP did.", "Other")
    assert item.stripped().split() == ["The", "rose,", "GDP", "did."]
