"""The two ways through the data: the native pass, where it was built, and NumPy."""

import pytest

from focalcal import _native

ENGINES = ["native", "numpy"] if _native.available() else ["numpy"]


def use(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    if name == "numpy":
        monkeypatch.setattr("focalcal._native.scores.usable", lambda probs: False)
