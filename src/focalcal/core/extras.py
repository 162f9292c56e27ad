"""Packages that only some parts need, imported when they do."""

from __future__ import annotations

from importlib import import_module
from typing import Any


def required(module: str, *, purpose: str, extra: str = "study") -> Any:
    """The module, or an error that names the extra it comes with.

    >>> required("json", purpose="This").dumps([1])
    '[1]'
    """
    try:
        return import_module(module)
    except ModuleNotFoundError as error:
        package = module.partition(".")[0]
        if error.name is None or error.name.partition(".")[0] != package:
            raise  # the package is there, and something that it needs is not
        message = f"{purpose} needs the package {package}: pip install 'focalcal[{extra}]'"
        raise ModuleNotFoundError(message, name=package) from error
