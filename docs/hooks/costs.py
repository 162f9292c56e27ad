"""The measured cost of an objective on its page: the rows of docs/costs.md with its name, in place of a comment."""

import re
from pathlib import Path
from typing import Any

from mkdocs.exceptions import PluginError

_COMMENT = re.compile(r"<!-- cost of (\w+) -->")


def on_page_markdown(markdown: str, config: Any, **_: Any) -> str:
    """Replace `<!-- cost of fcl -->` by the table's head and the rows of fcl."""
    lines = (Path(config["docs_dir"]) / "costs.md").read_text().splitlines()
    head = next(at for at, line in enumerate(lines) if line.startswith("| objective |"))

    def rows(match: re.Match[str]) -> str:
        found = [line for line in lines[head:] if line.startswith(f"| {match[1]} |")]
        if not found:
            raise PluginError(f"docs/costs.md has no row for {match[1]!r}, which a page asks for")
        return "\n".join([*lines[head : head + 2], *found])

    return _COMMENT.sub(rows, markdown)
