"""What docs/guide/runs.md says can be done."""

import re
from pathlib import Path

import pytest

from focalcal.results import Store

GUIDE = (Path(__file__).parents[2] / "docs" / "guide" / "runs.md").read_text()


def blocks(language):
    return re.findall(rf"```{language}\n(.*?)```", GUIDE, re.DOTALL)


@pytest.fixture
def store(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (python,) = blocks("python")
    exec(compile(python, "docs/guide/runs.md", "exec"), {})
    return Store("focalcal-runs", create=False)


def test_the_example_stores_four_runs(store):
    assert len(store.runs()) == 4
    assert store.problems(contents=True) == []
    assert not list(store.path.glob("work/*"))


def test_the_queries_answer(store):
    means, pivot, chosen = (store.sql(query).fetchall() for query in blocks("sql"))
    assert [(*row[:2], round(row[2], 9), row[4]) for row in means] == [("fcl", 0.5, 0.7, 2), ("fcl", 1.0, 0.7, 2)]
    assert sorted(pivot) == [("fcl", 0, 0.2), ("fcl", 1, 1.2)]
    assert sorted(row[1:] for row in chosen) == [(0.1, 1.5)] * 2


def test_every_command_and_column_is_there(store):
    from focalcal.cli.runs import app

    commands = {command.name or command.callback.__name__ for command in app.registered_commands}
    assert set(re.findall(r"focalcal runs (\w+) ", GUIDE)) == commands
    columns = {row[0] for row in store.sql("select column_name from (describe runs)").fetchall()}
    (listed,) = re.findall(r"\| `runs` \| (.*) \|", GUIDE)
    assert set(re.findall(r"`(\w+)`", listed)) == columns
