"""The list of decisions, from their files: a new record needs no entry anywhere."""

from pathlib import Path
from typing import Any

from mkdocs.structure.files import File, Files

_INTRO = "Choices that the code cannot explain, numbered. A record is superseded by a later one, never edited."


def on_config(config: Any) -> Any:
    """Put every record into the navigation, after its index."""
    pages: list[str | dict[str, str]] = ["decisions/index.md"]
    pages += [{title: f"decisions/{path.name}"} for path, title in _records(config)]
    config["nav"][-1]["Project"].append({"Decisions": pages})
    return config


def on_files(files: Files, config: Any) -> Files:
    """Add the index."""
    links = [f"- [{title}]({path.name})" for path, title in _records(config)]
    content = "\n".join(["# Decisions", "", _INTRO, "", *links, ""])
    files.append(File.generated(config, "decisions/index.md", content=content))
    return files


def _records(config: Any) -> list[tuple[Path, str]]:
    paths = sorted((Path(config["docs_dir"]) / "decisions").glob("0*.md"))
    return [(path, path.read_text().partition("\n")[0].removeprefix("# ")) for path in paths]
