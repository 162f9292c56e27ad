"""The pictures of docs/gallery.md, drawn by the page's own lines, each below the lines that save it."""

import re
import tempfile
from pathlib import Path
from typing import Any

import matplotlib
from mkdocs.structure.files import File, Files

_BLOCK = re.compile(r"^```python\n(.*?)^```\n", re.DOTALL | re.MULTILINE)
_SAVED = re.compile(r'savefig\("(\w+\.svg)"\)')


def on_files(files: Files, config: Any) -> Files:
    """Run the page and add what it saves."""
    matplotlib.use("Agg")
    page = (Path(config["docs_dir"]) / "gallery.md").read_text()
    names: dict[str, Any] = {}
    with tempfile.TemporaryDirectory() as folder:
        undated = rf'savefig(r"{folder}/\1", metadata={{"Date": None}})'
        for block in _BLOCK.findall(page):
            exec(compile(_SAVED.sub(undated, block), "gallery.md", "exec"), names)
        for picture in sorted(Path(folder).glob("*.svg")):
            files.append(File.generated(config, f"gallery/{picture.name}", content=picture.read_text()))
    return files


def on_page_markdown(markdown: str, page: Any, **_: Any) -> str:
    """Put each picture below its lines."""
    if page.file.src_uri != "gallery.md":
        return markdown

    def drawn(block: re.Match[str]) -> str:
        return block[0] + "".join(f"\n![{name}](gallery/{name})\n" for name in _SAVED.findall(block[1]))

    return _BLOCK.sub(drawn, markdown)
