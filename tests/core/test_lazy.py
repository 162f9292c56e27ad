"""Names that are imported when they are first used."""

import sys

import pytest


@pytest.fixture
def package(tmp_path, monkeypatch):
    folder = tmp_path / "late"
    folder.mkdir()
    (folder / "__init__.py").write_text(
        "from focalcal.core.lazy import lazy_names\n"
        '__getattr__, __dir__ = lazy_names(__name__, {"answer": "numbers_of"}, submodules=("other",))\n'
    )
    (folder / "numbers_of.py").write_text("answer = object()\n")
    (folder / "other.py").write_text("")
    monkeypatch.syspath_prepend(tmp_path)
    yield __import__("late")
    for name in [name for name in sys.modules if name == "late" or name.startswith("late.")]:
        del sys.modules[name]


def test_a_name_is_imported_when_it_is_used_and_then_kept(package):
    assert "late.numbers_of" not in sys.modules
    answer = package.answer
    assert "late.numbers_of" in sys.modules
    assert vars(package)["answer"] is answer is package.answer


def test_submodules_are_attributes_and_all_names_are_listed(package):
    assert package.other is sys.modules["late.other"]
    assert {"answer", "other"} <= set(dir(package))


def test_an_unknown_name_lists_the_public_ones(package):
    with pytest.raises(AttributeError, match=r"late has no attribute .anser.; did you mean answer\? It has answer"):
        _ = package.anser
