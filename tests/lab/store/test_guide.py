"""What docs/guide/runs.md says can be done."""

import re
from pathlib import Path

import pytest

from focalcal.lab.evidence.comparisons import comparisons
from focalcal.lab.evidence.evidence import gather_metrics
from focalcal.lab.store import Store

ROOT = Path(__file__).parents[3]
GUIDE = (ROOT / "docs" / "guide" / "runs.md").read_text()


def blocks(language):
    return re.findall(rf"```{language}\n(.*?)```", GUIDE, re.DOTALL)


@pytest.fixture
def store(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    exec(compile(blocks("python")[0], "docs/guide/runs.md", "exec"), {})
    return Store("focalcal-runs", create=False)


def test_the_example_stores_four_runs(store):
    assert len(store.runs()) == 4
    assert store.problems(contents=True) == []
    assert not list(store.path.glob("work/*"))


def test_the_example_of_another_librarys_runs_can_be_compared(store):
    _, elsewhere = blocks("python")
    exec(compile(elsewhere, "docs/guide/runs.md", "exec"), {})
    runs = [run for run in store.runs() if run.trained_elsewhere]
    assert {(run.settings["objective_options"]["C"], run.settings["seed"]) for run in runs} == {
        (strength, seed) for strength in (0.01, 1) for seed in range(3)
    }
    families = comparisons(gather_metrics(runs, title="linear"), "logistic C=1", metrics=["nll"])
    assert [comparison.test.mean < 0 for family in families for comparison in family.comparisons] == [True]


def test_the_queries_answer(store):
    means, splits, chosen = (store.sql(query).fetchall() for query in blocks("sql"))
    assert [(*row[:2], round(row[2], 9), row[4]) for row in means] == [("fcl", 0.5, 0.7, 2), ("fcl", 1.0, 0.7, 2)]
    assert sorted(splits) == sorted([("fcl", 0, "test", 0.2), ("fcl", 1, "test", 1.2)] * 2)
    assert sorted(row[1:] for row in chosen) == [(0.1, 1.5)] * 2


def test_every_command_and_column_is_there(store):
    from focalcal.lab.cli.runs import app

    commands = {command.name or command.callback.__name__ for command in app.registered_commands}
    assert set(re.findall(r"focalcal runs (\w+) ", GUIDE)) == commands
    columns = {row[0] for row in store.sql("select column_name from (describe runs)").fetchall()}
    (listed,) = re.findall(r"\| `runs` \| (.*) \|", GUIDE)
    assert set(re.findall(r"`(\w+)`", listed)) == columns
