"""`python -m paper.operating_point`: the cells of all rounds in one table, and how often the rule held."""

import csv
import sys

import paper.operating_point.__main__ as command
import pytest
from paper.record import here
from support.ideal_networks import IdealNetworks

STUDY = """
title = "Two settings"
seeds = [0, 1]
[[settings]]
recipe = "digits_mlp_lite"
[[settings]]
recipe = "digits_mlp_lite"
epochs = 7
[[objectives]]
name = ["ce", "focal"]
"""


def test_the_table_has_every_setting_and_role(tmp_path, monkeypatch, capsys):
    (tmp_path / "two.toml").write_text(STUDY)
    words = [tmp_path / "two.toml", "--store", tmp_path / "runs", "--out", tmp_path / "cells.csv"]
    monkeypatch.setattr(sys, "argv", ["operating_point", *map(str, words)])
    monkeypatch.setattr(command, "LocalExecutor", lambda jobs: IdealNetworks(1.4))
    command.main()
    printed, told = capsys.readouterr()
    assert "|log T| <= 0.1 in 12 of 12 predicted cells where FCL is said to help" in printed
    with open(tmp_path / "cells.csv") as file:
        cells = list(csv.DictReader(file))
    assert {cell["setting"] for cell in cells} == {"digits/mlp epochs=100", "digits/mlp epochs=7"}
    assert len(cells) == 2 * 2 * 10
    assert all(here().items() <= cell.items() for cell in cells)  # where the runs come from
    assert float(cells[0]["validation_temperature"]) == pytest.approx(1.4, abs=0.1)  # of the ideal cross-entropy
    assert sum(line.startswith("| digits/mlp") for line in printed.splitlines()) == 2 * 10  # the seeds are averaged
    assert "[40/40]" in told
