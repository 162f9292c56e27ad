"""The built site loads nothing from another server."""

import re
from pathlib import Path
from typing import Any

from mkdocs.exceptions import PluginError

_LOADED = (
    r'<(?:script|img|iframe|source|video|audio)\b[^>]*?\bsrc="((?:https?:)?//[^"]*)"',
    r'<link\b(?![^>]*\brel="(?:canonical|next|prev)")[^>]*?\bhref="((?:https?:)?//[^"]*)"',
    r"""(?:url\(|@import )\s*["']?((?:https?:)?//[^"')]*)""",
)


def on_post_build(config: Any, **_: Any) -> None:
    """Fail on an address that a browser would fetch; links to follow are free."""
    folder = Path(config["site_dir"])
    found = [
        f"{path.relative_to(folder)}: {address}"
        for path in sorted(folder.rglob("*"))
        if path.suffix in (".html", ".css", ".svg")
        for pattern in _LOADED
        for address in re.findall(pattern, path.read_text())
    ]
    if found:
        raise PluginError("the site would load from other servers:\n" + "\n".join(found))
