"""The Python of the guide to audits runs, and what it quotes is what is said."""

import re
from pathlib import Path

PAGE = Path(__file__).parents[2] / "docs" / "guide" / "audit.md"


def test_the_page_goes_through():
    text, names = PAGE.read_text(), {}
    for body in re.findall(r"^```python\n(.*?)^```", text, re.DOTALL | re.MULTILINE):
        exec(compile(body, "docs/guide/audit.md", "exec"), names)
    quoted = " ".join(text.replace("\n> ", " ").split())
    scorecard = names["scorecard"]
    assert scorecard.headline in quoted
    assert scorecard.decisions.sentence in quoted
