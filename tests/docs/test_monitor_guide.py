"""The Python of the guide to monitoring runs."""

import re
from pathlib import Path

PAGE = Path(__file__).parents[2] / "docs" / "guide" / "monitor.md"


def test_the_page_goes_through(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for body in re.findall(r"^```python\n(.*?)^```", PAGE.read_text(), re.DOTALL | re.MULTILINE):
        exec(compile(body, "docs/guide/monitor.md", "exec"), {})
    assert (tmp_path / "monitor.html").exists()
