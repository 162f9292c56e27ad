"""What the reference has of every public function and class: each argument or field, what is returned, an example."""

import inspect
import re
from enum import Enum
from importlib import import_module

import pytest

PACKAGES = (
    *("theory", "stats", "losses", "losses.functional", "posthoc", "pages", "predictions", "auditing", "metrics"),
    *("lab.data", "lab.models", "lab.store", "lab.studies", "lab.studies.tuning", "lab.training"),
    *("lab.report.figures", "lab.report.study_tables"),
    *(f"integrations.{name}" for name in ("hugging_face", "lightning", "rewards", "token_scores")),
)


@pytest.mark.filterwarnings("ignore")  # frameworks warn about themselves
@pytest.mark.parametrize("package", PACKAGES)
def test_arguments_result_and_example_are_there(package):
    module = import_module(f"focalcal.{package}")
    lacking = {}
    for name in module.__all__:
        value = getattr(module, name)
        plain = inspect.isclass(value) and not issubclass(value, (Enum, Exception))
        if inspect.isfunction(value) or plain:
            text = inspect.getdoc(value)
            result = plain or re.search(r"^Returns:\n    \S", text, re.MULTILINE)
            lacking[name] = undescribed(value) | ({">>>"} - {*text.split()}) | (set() if result else {"Returns"})
    assert {name: parts for name, parts in lacking.items() if parts} == {}


@pytest.mark.filterwarnings("ignore")
def test_arguments_of_every_torchmetric_are_there():
    """Their examples are computed when the site is built."""
    module = import_module("focalcal.integrations.torchmetrics")
    assert {name: undescribed(getattr(module, name)) for name in module.__all__} == {
        name: set() for name in module.__all__
    }


def undescribed(value):
    text = inspect.getdoc(value)
    described = re.findall(r"^    (\w+(?:, \w+)*): \S", text, re.MULTILINE)
    expected = [n for n, each in inspect.signature(value).parameters.items() if each.kind is not each.VAR_KEYWORD]
    return set(expected) - {name for line in described for name in line.split(", ")}
