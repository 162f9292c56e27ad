"""Other people's code by name: what is found, what is refused, and the hash that tells versions apart."""

import os
import sys

import pytest

from focalcal.core import plugins
from focalcal.core.source_code import code_hash

SHIPPED = {"ce": dict, "focal": list}


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A current folder that is not on sys.path."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))
    return tmp_path


def test_what_the_package_ships_comes_first_and_has_no_hash(folder):
    assert plugins.resolve("objectives", "ce", SHIPPED) is dict
    assert plugins.source_hash("objectives", "ce", SHIPPED) is None


def test_a_name_is_imported_from_the_current_folder_with_the_hash_of_what_defines_it(folder):
    (folder / "plugin_parts").mkdir()
    (folder / "plugin_parts" / "__init__.py").write_text("from plugin_parts.inner import Mine\n")
    (folder / "plugin_parts" / "inner.py").write_text("class Mine:\n    class Part:\n        pass\n")
    made = plugins.load_plugin("objectives", "plugin_parts:Mine", SHIPPED)
    assert made.target.__name__ == "Mine"
    exported, defined = (str(folder / "plugin_parts" / name) for name in ("__init__.py", "inner.py"))
    assert made.sha256 == code_hash({exported: ["Mine"], defined: ["Mine"]})
    assert plugins.resolve("models", "plugin_parts:Mine.Part", {}) is made.target.Part


def test_an_entry_point_of_an_installed_package_is_a_name(folder, monkeypatch):
    installed = folder / "site"
    (installed / "entry_plugin-1.0.dist-info").mkdir(parents=True)
    (installed / "entry_plugin.py").write_text("def load():\n    return 7\n")
    (installed / "entry_plugin-1.0.dist-info" / "METADATA").write_text("Name: entry-plugin\nVersion: 1.0\n")
    points = "[focalcal.data_sets]\nseven = entry_plugin:load\n"
    (installed / "entry_plugin-1.0.dist-info" / "entry_points.txt").write_text(points)
    monkeypatch.syspath_prepend(str(installed))
    assert plugins.resolve("data_sets", "seven", {})() == 7
    assert plugins.source_hash("data_sets", "seven", {}) is not None
    with pytest.raises(ValueError, match="'sevn' is not a data set; did you mean 'seven'"):
        plugins.check_name("data_sets", "sevn", {})
    with pytest.raises(ValueError, match="'seven' is not an objective"):
        plugins.check_name("objectives", "seven", SHIPPED)


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("focl", "", "'focl' is not an objective; did you mean 'focal'\\? Known: ce, focal; code of your own"),
        ("a b:C", "", "'a b:C' is not an objective"),
        (":C", "", "':C' is not an objective"),
        ("no_such_module_here:C", "", "must be importable, got ModuleNotFoundError: No module named 'no_such_module_h"),
        ("broken_plugin:C", "C = 1 /", "must be importable, got SyntaxError"),
        ("lacking_plugin:C", "D = dict", "AttributeError: .*'C'.*; start from the folder that holds the module"),
        ("number_plugin:C", "C = 3", "got C of number_plugin, which cannot be called"),
    ],
)
def test_what_cannot_be_used_is_refused_with_the_cause(folder, name, content, message):
    (folder / f"{name.partition(':')[0]}.py").write_text(content)
    if "no_such" in name:
        (folder / "no_such_module_here.py").unlink()
    with pytest.raises(ValueError, match=message):
        plugins.resolve("objectives", name, SHIPPED)


def test_other_processes_are_told_where_to_look(folder, monkeypatch):
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(["elsewhere", ""]))
    assert plugins.import_folders() == [str(folder), str(folder / "elsewhere")]
    before = list(sys.path)
    plugins.add_import_folders(["/x", "/x", before[0]])
    assert sys.path == [*before, "/x"]  # after everywhere else, each once
