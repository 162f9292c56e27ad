"""No package outgrows the number that docs/architecture.md has for it."""

import runpy
from pathlib import Path

ROOT = Path(__file__).parents[2]
LINES = runpy.run_path(str(ROOT / ".ci" / "lines.py"))
PAGE = (ROOT / "docs" / "architecture.md").read_text()


def test_every_package_keeps_its_budget():
    assert LINES["excesses"](LINES["lines_per_package"](), LINES["budgets"](PAGE)) == []


def test_growth_and_new_packages_are_found():
    budget = {"src/focalcal/core": 1000}
    assert LINES["excesses"]({"src/focalcal/core": 1020}, budget) == []
    assert "core has 1,021" in LINES["excesses"]({"src/focalcal/core": 1021}, budget)[0]
    assert "new has 5" in LINES["excesses"]({"src/focalcal/new": 5}, budget)[0]


def test_the_table_that_is_written_is_the_one_that_is_read():
    assert LINES["budgets"](LINES["rewritten"](PAGE, {"paper": 12345})) == {"paper": 12345}
