"""The two ways through the data: the native pass, where it was built, and torch operations."""

import pytest

from focalcal import _native

ENGINES = ["native", "torch"] if _native.available() else ["torch"]


def use(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    if name == "torch":
        monkeypatch.setattr("focalcal._native.scores.usable", lambda probs: False)
