"""How a command ends that fails: 1 is kept for gates and checks."""

import os
import sys

import numpy as np
import pytest
import typer
from typer.testing import CliRunner

from focalcal.cli.app import app as focalcal_app
from focalcal.cli.output import plain_failures

STUDY = """
title = "its loss cannot be made"
seeds = [0]
settings = [{ recipe = "digits_mlp_lite" }]
objectives = [{ name = "odd_loss:Odd" }]
"""


def _index():
    return {}["absent"]


def _allocate():
    return np.empty(1 << 55)


def _too_deep():
    return _too_deep()


def _check():
    raise typer.Exit(1)


@pytest.mark.parametrize(
    ("work", "code", "told"),
    [
        (_index, 3, "focalcal: an error that should not occur (KeyError: 'absent'); report it with what"),
        (_too_deep, 3, "focalcal: an error that should not occur (RecursionError: maximum recursion depth exceeded"),
        (_allocate, 3, "Unable to allocate 256. PiB"),
        (lambda: int("x"), 2, "focalcal: invalid literal"),
        (lambda: os.stat("/nowhere/at/all"), 2, "focalcal: /nowhere/at/all: No such file"),
        (_check, 1, ""),
    ],
)
def test_an_error_is_one_line_and_its_code_says_whose_it_is(work, code, told):
    app = typer.Typer()
    app.command()(plain_failures()(lambda: work()))
    ended = CliRunner().invoke(app, [])
    assert ended.exit_code == code
    assert told in ended.stderr
    assert ended.stderr.count("\n") == bool(told)


def test_an_error_in_the_code_that_a_study_names_ends_alike_and_is_raised_on_request(tmp_path, monkeypatch):
    (tmp_path / "odd_loss.py").write_text("class Odd:\n    def __init__(self):\n        raise KeyError('odd')\n")
    (tmp_path / "study.toml").write_text(STUDY)
    command = ["study", "study.toml", "--dry-run"]
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [*sys.path])  # to which the command adds the folder
    plain, raised = (CliRunner().invoke(focalcal_app, [*command, *more]) for more in ([], ["--debug"]))
    sys.modules.pop("odd_loss", None)
    assert (plain.exit_code, plain.stderr.count("\n")) == (3, 1)
    assert "an error that should not occur (KeyError: 'odd')" in plain.stderr
    assert isinstance(raised.exception, KeyError)
