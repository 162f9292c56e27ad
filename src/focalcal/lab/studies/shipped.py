"""The studies that come with the package: their files, names and titles, without what it takes to run them."""

from __future__ import annotations

import tomllib
from importlib import resources
from pathlib import Path


def shipped_studies() -> dict[str, str]:
    """The titles of the studies that come with the package, by name; `digits` first."""
    return {name: tomllib.loads(shipped_file(name).read_text("utf-8"))["title"] for name in shipped_names()}


def shipped_names() -> list[str]:
    """In the order of `shipped_studies`."""
    return sorted((file.stem for file in _folder().glob("*.toml")), key=lambda name: (name != "digits", name))


def shipped_file(name: str) -> Path:
    """Where the study of that name is."""
    return _folder() / f"{name}.toml"


def _folder() -> Path:
    return Path(str(resources.files("focalcal.lab.studies") / "studies"))
