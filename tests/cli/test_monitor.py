"""`focalcal monitor`: exit codes, what it writes, and bad input, after which the state is as it was."""

import json
from xml.etree import ElementTree

import numpy as np
import pandas
import pytest
from typer.testing import CliRunner

from focalcal.cli.app import app

COLUMNS = ("--score", "score", "--labels", "y", "--times", "when", "--period", "month", "--ids", "id")


def run(*arguments):
    return CliRunner().invoke(app, ["monitor", *map(str, arguments)])


def table(month, n=1500, gap=0.0):
    draws = np.random.default_rng(month)
    score = draws.beta(2, 3, n)
    return pandas.DataFrame(
        {
            "id": [f"{month}-{at}" for at in range(n)],
            "when": pandas.Timestamp(2026, month, 1) + pandas.to_timedelta(draws.integers(0, 27, n), unit="D"),
            "site": draws.choice(["north", "south"], n),
            "score": score,
            "y": (draws.random(n) < score + gap).astype(int),
        }
    )


@pytest.fixture
def begun(tmp_path):
    """A state after three months, and the folder it is in."""
    for month in range(1, 7):
        table(month, gap=-0.1 * (month > 3)).to_parquet(tmp_path / f"{month}.parquet")
    done = run(tmp_path / "state.json", *(tmp_path / f"{month}.parquet" for month in (1, 2, 3)), *COLUMNS)
    assert done.exit_code == 0, done.output
    assert done.output.startswith("Holds: 4,500 rows in 3 periods")
    return tmp_path


def test_the_day_it_breaks(begun):
    outputs = ("--out", begun / "page.html", "--prometheus", begun / "m.prom", "--junit", begun / "junit.xml")
    done = run(begun / "state.json", begun / "4.parquet", begun / "5.parquet", *COLUMNS, *outputs, "--json")
    assert done.exit_code == 1
    record = json.loads(done.stdout)
    assert (record["schema"], record["alarm"], record["streams"][0]["broke"]["period"]) == (1, True, "2026-04")
    assert 'focalcal_monitor_alarm{group=""} 1\n' in (begun / "m.prom").read_text()
    suite = ElementTree.parse(begun / "junit.xml").getroot()
    assert (suite.get("tests"), suite.get("failures")) == ("1", "1")
    assert "since about 2026-04" in (begun / "page.html").read_text()
    assert run(begun / "state.json", "--out", begun / "pages").exit_code == 1  # an alarm stays
    assert "since about 2026-04" in (begun / "pages" / "monitor.html").read_text()


def test_the_same_file_twice_is_said(begun):
    before = json.loads((begun / "state.json").read_text())
    done = run(begun / "state.json", begun / "3.parquet", *COLUMNS)
    assert done.exit_code == 0
    assert "counted before in 2026-03, and is not counted again" in " ".join(done.stderr.split())
    assert json.loads((begun / "state.json").read_text()) == before


@pytest.mark.parametrize(
    ("make", "options", "said"),
    [
        (lambda t: t.assign(score=2.0), (), "probabilities from 0 to 1"),
        (lambda t: t.drop(columns="y"), (), "must have a column 'y'"),
        (lambda t: t.drop(columns="when"), (), "must have a column 'when'"),
        (lambda t: table(3)[500:], (), "partitions must not overlap, got rows of 2026-03"),
        (lambda t: t, ("--alpha", "0.01"), "alpha must be what the state began with, 0.05, got 0.01"),
        (lambda t: t, ("--model", "other"), "model must be what the state began with"),
        (lambda t: t, ("--mature", "soon"), "--mature must be a number of hours, days or weeks"),
        (lambda t: t, ("--unlabelled", "--outcomes", "x.csv"), "contradict"),
        (lambda t: t[:0], (), "must hold at least one row, got none"),
    ],
)  # fmt: skip
def test_bad_input_is_one_line_and_leaves_the_state(begun, make, options, said):
    before = (begun / "state.json").read_bytes()
    make(table(4)).to_parquet(begun / "bad.parquet")
    done = run(begun / "state.json", begun / "bad.parquet", *COLUMNS, *options)
    assert done.exit_code == 2, done.output
    (line,) = [line for line in done.stderr.splitlines() if "note:" not in line]
    assert said in line
    assert (begun / "state.json").read_bytes() == before


def test_a_look_at_a_state_that_is_not_there_makes_none(tmp_path):
    done = run(tmp_path / "typo.json")
    assert done.exit_code == 2
    assert "must exist where no rows are given" in done.output
    assert not any(tmp_path.iterdir())


@pytest.mark.filterwarnings("default::UserWarning")
def test_the_files_that_people_have_are_counted_as_tidy_ones(tmp_path):
    """Percentages with a decimal comma and rows without a value: the same rows give the same numbers."""
    for month in (1, 2):
        rows = table(month).drop(columns="id").round({"score": 3})
        rows.to_parquet(tmp_path / f"{month}.parquet")
        loose = pandas.concat([rows.assign(score=100 * rows.score), rows[:20].assign(score=np.nan)])
        loose.to_csv(tmp_path / f"{month}.csv", sep=";", decimal=",", index=False, float_format="%.1f")
    columns = (*COLUMNS[:-2], "--json")
    reading = ("--scale", "percent", "--drop-missing", "--delimiter", "semicolon", "--decimal", "comma")
    tidy = run(tmp_path / "a.json", tmp_path / "1.parquet", tmp_path / "2.parquet", *columns)
    done = run(tmp_path / "b.json", tmp_path / "1.csv", tmp_path / "2.csv", *columns, *reading)
    assert (done.exit_code, tidy.exit_code) == (0, 0), done.output
    assert "20 of 1,520 rows were left out" in done.stderr
    of_tidy, of_loose = (json.loads(each.stdout)["streams"][0]["rows"] for each in (tidy, done))
    assert of_tidy == of_loose == 3000
    ended = run(tmp_path / "c.json", tmp_path / "1.csv", "--unlabelled", *COLUMNS[:-2], *reading)
    assert (ended.exit_code, "20 of 1,520 rows were left out" in ended.stderr) == (0, True)
    assert "of 1,500 rows" in ended.output or "1,500" in ended.output


def test_rows_of_another_model_and_a_damaged_state(begun):
    pandas.DataFrame({"prob_0": [0.2], "prob_1": [0.3], "prob_2": [0.5], "label": [1]}).to_csv(begun / "three.csv")
    assert "2 classes, got 3 classes" in run(begun / "state.json", begun / "three.csv", "--at", "2026-05").stderr
    (begun / "state.json").write_text((begun / "state.json").read_text()[:900])
    done = run(begun / "state.json", begun / "4.parquet", *COLUMNS)
    assert (done.exit_code, "it was cut off" in done.stderr) == (2, True)


def test_scores_first_and_outcomes_by_ids_later(begun):
    scored, state = table(4).drop(columns="y"), begun / "later.json"
    scored.to_parquet(begun / "scored.parquet")
    labels = table(4)[["id", "y"]].sample(frac=1, random_state=0)
    labels[:900].to_csv(begun / "some.csv", index=False)
    labels[900:].to_csv(begun / "rest.csv", index=False)
    first = run(state, begun / "scored.parquet", *COLUMNS, "--unlabelled")
    assert (first.exit_code, "% expected" in first.output, "outcomes are as far from the scores" in first.output) == (
        0,
        True,
        True,
    )
    for file, rows in (("some.csv", 900), ("rest.csv", 1500)):
        done = run(state, begun / "scored.parquet", *COLUMNS, "--outcomes", begun / file, "--json")
        assert done.exit_code == 0, done.output
        assert json.loads(done.stdout)["streams"][0]["rows"] == rows
    forecast = json.loads(done.stdout)["forecasts"][0]
    assert forecast["came"] == pytest.approx(table(4).y.mean())
    before = state.read_bytes()
    labels.assign(id="nobody")[:1].to_csv(begun / "unknown.csv", index=False)
    done = run(state, begun / "scored.parquet", *COLUMNS, "--outcomes", begun / "unknown.csv")
    assert (done.exit_code, "1 unknown id(s), the first 'nobody'" in done.stderr) == (2, True)
    assert state.read_bytes() == before


def test_names_of_classes_come_with_the_outcomes(tmp_path):
    rows = table(4).assign(y=lambda t: np.where(t.y == 1, "default", "paid"))
    rows.drop(columns="y").to_parquet(tmp_path / "scored.parquet")
    rows[["id", "y"]].to_csv(tmp_path / "outcomes.csv", index=False)
    given = (tmp_path / "state.json", tmp_path / "scored.parquet", *COLUMNS, "--positive", "default")
    assert run(*given, "--unlabelled").exit_code == 0
    done = run(*given, "--outcomes", tmp_path / "outcomes.csv")
    assert (done.exit_code, "Holds: 1,500 rows" in done.output) == (0, True), done.output


def test_probabilities_corrected_for_a_label_shift(tmp_path):
    table(1, 6000).drop(columns=["id", "when"]).to_parquet(tmp_path / "val.parquet")  # which need neither
    rows = table(2, 6000)
    kept = (rows.y == 0) | (rows.index % 4 == 0)  # a quarter of the events
    rows[kept].drop(columns="y").to_parquet(tmp_path / "new.parquet")
    options = ("--unlabelled", "--baseline", tmp_path / "val.parquet", "--corrected", tmp_path / "corrected.parquet")
    done = run(tmp_path / "state.json", tmp_path / "new.parquet", *COLUMNS, *options)
    assert (done.exit_code, "by label shift" in done.output) == (0, True), done.output
    corrected = pandas.read_parquet(tmp_path / "corrected.parquet")
    assert corrected.id.tolist() == rows[kept].id.tolist()
    assert abs(corrected.prob_1.mean() - rows[kept].y.mean()) < 0.02 < rows[kept].score.mean() - rows[kept].y.mean()


def test_workers_and_a_merge_are_one_process(begun):
    alone, workers = begun / "alone.json", [begun / "w1.json", begun / "w2.json"]
    for file in (alone, *workers):
        file.write_bytes((begun / "state.json").read_bytes())
    run(alone, *(begun / f"{month}.parquet" for month in (4, 5, 6)), *COLUMNS)
    for month, worker in ((6, 0), (4, 1), (5, 0)):
        assert run(workers[worker], begun / f"{month}.parquet", *COLUMNS, "--add-only").exit_code == 0
    assert "4,500 rows were added" in run("merge", begun / "state.json", *workers).output
    merged, single = (json.loads(run(file, "--json").stdout) for file in (begun / "state.json", alone))
    assert [step["period"] for step in merged["streams"][0]["steps"]] == [f"2026-0{month}" for month in range(1, 7)]
    for mine, theirs in zip(merged["streams"][0]["steps"], single["streams"][0]["steps"], strict=True):
        assert mine["log_e"] == pytest.approx(theirs["log_e"])


def test_a_baseline_says_what_still_means(tmp_path):
    """What is 10 points off, as the baseline is, holds; the baseline can be given again, another one cannot."""
    table(1, 8000, gap=0.1).drop(columns="when").to_parquet(tmp_path / "val.parquet")
    table(2, 8000, gap=0.1).to_csv(tmp_path / "new.csv", index=False)
    columns = [each for each in COLUMNS if each not in ("--times", "when", "--period", "month")]
    for month in ("2026-02", "2026-03"):
        done = run(tmp_path / "state.json", tmp_path / "new.csv", *columns, "--at", month, "--period", "month",
                   "--baseline", tmp_path / "val.parquet")  # fmt: skip
        assert done.exit_code == 0, done.output
    other = run(tmp_path / "state.json", tmp_path / "new.csv", *columns, "--baseline", tmp_path / "new.csv")
    assert (other.exit_code, "baseline must be the one that the state began with" in other.stderr) == (2, True)


def test_confidences_alone(tmp_path):
    draws = np.random.default_rng(0)
    sure = draws.beta(8, 2, 3000)
    pandas.DataFrame({"confidence": sure, "correct": draws.random(3000) < sure - 0.1}).to_parquet(
        tmp_path / "a.parquet"
    )
    done = run(tmp_path / "state.json", tmp_path / "a.parquet")
    assert done.exit_code == 1
    assert "a right prediction is" in done.output
