"""Packages that only some parts need, imported when they do."""

from __future__ import annotations

import json
import shlex
from importlib import import_module
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit
from urllib.request import url2pathname

_PROJECTS = {
    "PIL": "pillow",
    "huggingface_hub": "huggingface-hub",
}  # where a module is called otherwise than its project


def required(module: str, *, purpose: str, extra: str = "lab") -> Any:
    """The module, or an error that says how to install it.

    >>> required("json", purpose="This").dumps([1])
    '[1]'
    """
    try:
        return import_module(module)
    except ModuleNotFoundError as error:
        package = module.partition(".")[0]
        if error.name is None or error.name.partition(".")[0] != package:
            raise  # the package is there, and something that it needs is not
        message = f"{purpose} needs the package {package}: {install_command(package, extra=extra)}"
        raise ModuleNotFoundError(message, name=package) from error


def install_command(package: str, *, extra: str = "lab") -> str:
    """What installs a missing package: the extra, from the folder that focalcal was installed from, if that is there.

    Otherwise the package alone. Never `focalcal[extra]`, which would ask an index for whatever has that name there.
    """
    source = _source()
    if source is None:
        return f"pip install {_PROJECTS.get(package, package)}"
    folder, editable = source
    pinned = folder / "constraints.txt"  # keeps torch on the build that is installed
    constraints = ["-c", str(pinned)] if pinned.is_file() else []
    return shlex.join(["pip", "install", *constraints, *["-e"] * editable, f"{folder}[{extra}]"])


def _source() -> tuple[Path, bool] | None:
    """The folder that pip installed focalcal from, and whether editable; None if it was no folder or is gone."""
    from importlib.metadata import PackageNotFoundError, distribution

    try:
        origin = json.loads(distribution("focalcal").read_text("direct_url.json") or "{}")
    except (PackageNotFoundError, ValueError):
        return None
    if "dir_info" not in origin:
        return None
    folder = Path(url2pathname(urlsplit(origin["url"]).path))
    return (folder, bool(origin["dir_info"].get("editable"))) if (folder / "pyproject.toml").is_file() else None
