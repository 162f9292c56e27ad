"""Commands in the documents can be typed: every option is there, and those of the quickstart do what it says."""

import re
import shlex
from itertools import takewhile
from pathlib import Path

import typer.main
from typer.testing import CliRunner

from focalcal.cli.app import app

ROOT = Path(__file__).parents[2]
DOCUMENTS = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
_FENCED = re.compile(r"^```(\w*)\n(.*?)^```", re.DOTALL | re.MULTILINE)
_CALL = re.compile(r"^(?:    |srun )?(focalcal (?!\.\.\.).*)$", re.MULTILINE)


def inner_command(command, name):
    return command.get_command(None, name) if hasattr(command, "get_command") else None


def commands(text):
    """Those of shell blocks, fenced or indented."""
    shell = "".join(body for language, body in _FENCED.findall(text) if language in ("sh", "bash", "console"))
    indented = re.findall(r"^    focalcal .*$", _FENCED.sub("", text), re.MULTILINE)
    return _CALL.findall(shell + "\n".join(indented))


CALLS = sorted({(path.name, call) for path in DOCUMENTS for call in commands(path.read_text())})


def test_documents_have_commands():
    assert len(CALLS) > 50


def test_every_command_can_be_parsed():
    root = typer.main.get_command(app)
    for document, call in CALLS:
        _, *words = takewhile(lambda word: word != ">", shlex.split(call, comments=True))
        command = root
        while words and (inner := inner_command(command, words[0])) is not None:
            command, words = inner, words[1:]
        if words or not hasattr(command, "get_command"):
            try:  # parsed, and not run
                command.make_context("focalcal", words, resilient_parsing=words == ["--version"])
            except Exception as error:
                raise AssertionError(f"{document} has {call!r}, which is refused: {error}") from error


def test_the_quickstart_goes_through(tmp_path, monkeypatch):
    """Its Python and its commands in the order of the page."""
    monkeypatch.chdir(tmp_path)
    namespace = {}
    for language, body in _FENCED.findall((ROOT / "docs" / "quickstart.md").read_text()):
        if language == "python":
            exec(compile(body, "docs/quickstart.md", "exec"), namespace)
        for call in _CALL.findall(body) if language == "sh" else ():
            result = CliRunner().invoke(app, shlex.split(call)[1:], catch_exceptions=False)
            assert result.exit_code == 0, result.output
            if " audit " in call:
                assert "Over-confident" in result.output
    assert (tmp_path / "audit" / "audit.html").exists()
    assert (tmp_path / "fixed.csv").exists()
