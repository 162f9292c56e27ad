"""Decisions and results in the navigation, from their files: a new one needs no entry anywhere."""

from pathlib import Path
from typing import Any

from mkdocs.structure.files import File, Files, InclusionLevel

_INTRO = "Choices that the code cannot explain, numbered. Those that no longer hold are in a list of their own."


def on_config(config: Any) -> Any:
    """Put every page after the index of its folder."""
    sections = {
        name: pages for section in config["nav"] if isinstance(section, dict) for name, pages in section.items()
    }
    sections["Results"][:0] = ["results/index.md", *_entries(config, "results")]
    sections["Project"].append({"Decisions": ["decisions/index.md", *_entries(config, "decisions")]})
    return config


def on_files(files: Files, config: Any) -> Files:
    """Add the list of decisions; results have an index of their own. A README keeps its name beside an index.html."""
    for readme in sorted(Path(config["docs_dir"]).glob("results/*/README.md")):
        name = readme.relative_to(config["docs_dir"]).as_posix()
        page = File(name, config["docs_dir"], config["site_dir"], False, dest_uri=name.replace(".md", ".html"))
        page.inclusion = InclusionLevel.INCLUDED
        files.append(page)
    links = [
        f"- [{title}]({Path(page).name})" for entry in _entries(config, "decisions") for title, page in entry.items()
    ]
    content = "\n".join(["# Decisions", "", _INTRO, "", *links, ""])
    files.append(File.generated(config, "decisions/index.md", content=content))
    return files


def on_page_markdown(markdown: str, page: Any, **_: Any) -> str:
    """Leave the width of the contents at the side to the tables of results."""
    if page.file.src_uri.startswith("results/"):
        page.meta["hide"] = ["toc"]
    return markdown


def _entries(config: Any, folder: str) -> list[dict[str, str]]:
    """A page's title, which is its first line, and its address."""
    docs = Path(config["docs_dir"])
    pages = [*(docs / folder).glob("*.md"), *(docs / folder).glob("*/README.md")]
    return [
        {page.read_text().partition("\n")[0].removeprefix("# "): page.relative_to(docs).as_posix()}
        for page in sorted(pages)
        if page.name != "index.md"
    ]
