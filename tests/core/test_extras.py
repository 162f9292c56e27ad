"""A missing package is named with a command that installs it from where focalcal came from."""

import json
import sys

import pytest

from focalcal.core import extras


class _Installed:
    def __init__(self, origin):
        self._origin = origin

    def read_text(self, name):
        assert name == "direct_url.json"
        return None if self._origin is None else json.dumps(self._origin)


@pytest.fixture
def clone(tmp_path):
    folder = tmp_path / "a clone"
    folder.mkdir()
    (folder / "pyproject.toml").write_text("")
    (folder / "constraints.txt").write_text("")
    return folder


def _command(monkeypatch, origin, package="rich", **options):
    monkeypatch.setattr("importlib.metadata.distribution", lambda name: _Installed(origin))
    return extras.install_command(package, **options)


def test_from_a_folder_the_extra_is_installed_with_its_constraints(monkeypatch, clone):
    origin = {"url": clone.as_uri(), "dir_info": {}}
    assert _command(monkeypatch, origin) == f"pip install -c '{clone}/constraints.txt' '{clone}[lab]'"
    (clone / "constraints.txt").unlink()
    origin["dir_info"]["editable"] = True
    assert _command(monkeypatch, origin, extra="ray") == f"pip install -e '{clone}[ray]'"


@pytest.mark.parametrize(
    "origin", [None, {"url": "file:///gone", "dir_info": {}}, {"url": "file:///a.whl", "archive_info": {}}]
)
def test_otherwise_the_package_itself_is_named_by_its_project(monkeypatch, origin):
    assert _command(monkeypatch, origin) == "pip install rich"
    assert _command(monkeypatch, origin, "PIL") == "pip install pillow"


def test_the_error_has_the_command(monkeypatch):
    monkeypatch.setitem(sys.modules, "rich", None)
    monkeypatch.setattr(extras, "_source", lambda: None)
    with pytest.raises(ModuleNotFoundError, match=r"^A bar needs the package rich: pip install rich$"):
        extras.required("rich", purpose="A bar")
