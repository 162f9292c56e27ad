"""What holds for every sub-command: help with an example that can be typed, one name for the store, how it ends."""

import os
import shlex
import subprocess
import sys

import pytest
import typer.main
from typer.testing import CliRunner

from focalcal.cli import app as app_module
from focalcal.cli.app import app


def inner_commands(command):
    """By name; those of installed packages are loaded when they are asked for."""
    names = command.list_commands(None) if hasattr(command, "list_commands") else ()
    return {name: command.get_command(None, name) for name in names}


def _commands(command, path=()):
    yield path, command
    for name, inner in inner_commands(command).items():
        yield from _commands(inner, (*path, name))


ROOT = typer.main.get_command(app)
COMMANDS = dict(_commands(ROOT))
USES_RUNS = (
    *("study", "train", "tune", "evaluate", "report", "watch", "compare"),
    *(f"runs {name}" for name in inner_commands(COMMANDS["runs",])),
)


def _invoke(*arguments, **options):
    return CliRunner().invoke(app, list(map(str, arguments)), **options)


@pytest.mark.parametrize("path", COMMANDS, ids=" ".join)
def test_help_says_what_for_and_gives_an_example_that_can_be_typed(path):
    command = COMMANDS[path]
    purpose, *rest = command.help.strip().split("\n\n")
    assert purpose.endswith(".")
    [example] = [part for part in (*rest, command.epilog or "") if part.startswith("Example: ")]
    focalcal, *words = shlex.split(example.removeprefix("Example: "))
    assert focalcal == "focalcal"
    assert tuple(words[: len(path)]) == path
    chosen = ROOT
    while commands := inner_commands(chosen):
        chosen, words = commands[words[0]], words[1:]
    chosen.make_context("focalcal", words)  # parsed, and not run


def test_commands_stand_under_the_heading_of_what_they_are_about():
    told = _invoke("--help").stdout
    headings = ("Predictions", "Theory", "Training", "Studies")
    assert [told.count(f" {heading} ─") for heading in headings] == [1, 1, 1, 1]
    assert "Other packages" not in told


@pytest.mark.parametrize("path", COMMANDS, ids=" ".join)
def test_a_store_is_an_option_and_has_one_default(path):
    stores = [parameter for parameter in COMMANDS[path].params if parameter.name.startswith("store")]
    assert [parameter.opts for parameter in stores] == [["--store"]] * (" ".join(path) in USES_RUNS)
    for parameter in stores:
        assert parameter.help.endswith("default: $FOCALCAL_STORE, else focalcal-runs.")


@pytest.mark.parametrize("arguments", [("--debug", "runs", "list"), ("runs", "list", "--debug")])
def test_debug_shows_where_an_error_arose(arguments, tmp_path):
    plain = _invoke("runs", "list", "--store", tmp_path / "nowhere")
    assert (plain.exit_code, plain.stderr.count("\n")) == (2, 1)
    shown = _invoke(*arguments, "--store", tmp_path / "nowhere")
    assert isinstance(shown.exception, FileNotFoundError)
    assert str(shown.exception) in plain.stderr


def test_output_that_nobody_reads_ends_a_command_without_a_word():
    here, to = os.pipe()
    os.close(here)  # as `head` does when it has its lines
    done = subprocess.run(
        [sys.executable, "-m", "focalcal.cli", "study", "--list"], stdout=to, stderr=subprocess.PIPE, check=False
    )
    os.close(to)
    assert (done.returncode, done.stderr) == (1, b"")


def test_colours_are_left_out_on_request():
    in_colour = {"FORCE_COLOR": "1", "TERM": "xterm-256color", "NO_COLOR": None}
    assert "\x1b[1;36m" in _invoke("--help", env=in_colour, color=True).stdout
    assert "36m" not in _invoke("--help", env=in_colour | {"NO_COLOR": "1"}, color=True).stdout


def test_shells_can_complete_commands():
    words = {"_FOCALCAL_COMPLETE": "complete_bash", "COMP_WORDS": "focalcal th", "COMP_CWORD": "1"}
    assert _invoke(prog_name="focalcal", env=words).stdout.split() == ["theory"]


def test_a_command_whose_extra_is_missing_says_how_to_install_it(monkeypatch):
    class Offered:
        def load(self):
            raise ModuleNotFoundError("No module named 'duckdb'", name="duckdb")

    monkeypatch.setattr(app_module, "_offered", lambda: {"elsewhere": Offered()})
    result = _invoke("elsewhere")
    assert result.exit_code == 2
    assert result.stderr.startswith("focalcal: this command needs the package duckdb: pip install ")
    assert len(result.stderr.splitlines()) == 1
    assert "elsewhere" in _invoke("--help").stdout
