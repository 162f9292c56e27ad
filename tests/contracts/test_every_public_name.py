"""What the reference has of every public function and class: each argument or field, what is returned, an example."""

import inspect
import re
from enum import Enum
from importlib import import_module

import pytest

PACKAGES = ("theory", "stats", "losses", "losses.functional", "posthoc", "pages", "predictions", "auditing", "metrics")


def _explained():
    for package in PACKAGES:
        module = import_module(f"focalcal.{package}")
        for name in module.__all__:
            value = getattr(module, name)
            plain = inspect.isclass(value) and not issubclass(value, (Enum, Exception))
            if inspect.isfunction(value) or plain:
                yield pytest.param(value, id=f"{package}.{name}")


@pytest.mark.parametrize("value", [*_explained()])
def test_arguments_result_and_example_are_there(value):
    text = inspect.getdoc(value)
    assert ">>> " in text
    assert inspect.isclass(value) or re.search(r"^Returns:\n    \S", text, re.MULTILINE)
    described = re.findall(r"^    (\w+(?:, \w+)*): \S", text, re.MULTILINE)
    expected = [n for n, each in inspect.signature(value).parameters.items() if each.kind is not each.VAR_KEYWORD]
    assert set(expected) <= {name for line in described for name in line.split(", ")}
