"""`focalcal audit` and `focalcal calibrate`, as a user and as a build would call them."""

import json
from xml.etree import ElementTree

import numpy as np
import pytest
from typer.testing import CliRunner

from focalcal.cli.app import app
from focalcal.metrics import METRICS, ece
from focalcal.posthoc import TemperatureScaling
from focalcal.predictions import Predictions


def run(*arguments):
    return CliRunner().invoke(app, [str(argument) for argument in arguments])


@pytest.fixture
def file(tmp_path):
    draws = np.random.default_rng(0)
    logits = 2 * draws.normal(size=(1500, 4))
    labels = np.argmax(logits / 2 + draws.gumbel(size=logits.shape), axis=1)
    Predictions(logits=logits, labels=labels, split="test").save(tmp_path / "rows.parquet")
    return tmp_path / "rows.parquet"


def test_the_answer_comes_first_and_fits_a_terminal(file):
    done = run("audit", file, "--calibrate", "temperature")
    assert done.exit_code == 0, done.output
    assert done.output.startswith("Over-confident by ")
    assert "Use temperature" in done.output
    assert max(map(len, done.output.splitlines())) <= 80


def test_gates_decide_the_exit_code(file, tmp_path):
    passed = run("audit", file, "--calibrate", "none", "--fail-if", "ece > 0.9")
    assert passed.exit_code == 0
    assert "passed: fail if ece > 0.9" in passed.output
    failed = run(
        "audit",
        file,
        "--calibrate",
        "none",
        "--fail-if",
        "ece > 1 %",
        "--fail-if",
        "error > 0.99",
        "--junit",
        tmp_path / "gates.xml",
    )
    assert failed.exit_code == 1
    suite = ElementTree.parse(tmp_path / "gates.xml").getroot()
    assert (suite.get("tests"), suite.get("failures")) == ("2", "1")
    assert "ece is" in suite.find("testcase/failure").get("message")


def test_what_a_user_trips_over_is_said(tmp_path):
    """A scale that is not theirs, a name that no terminal holds, one column for two things."""
    draws = np.random.default_rng(0)
    p, far = draws.uniform(size=60), f"{'north ' * 20}end"
    lines = [f"{a:.4f},{b:d},{far if k % 2 else 'south'},2" for k, (a, b) in enumerate(zip(p, p > 0.5, strict=True))]
    table = tmp_path / "rows.csv"
    table.write_text("\n".join(["score,y,site,w", *lines]))
    command = ("audit", table, "--score", "score", "--labels", "y", "--calibrate", "none")
    done = run(*command, "--groups", "site", "--out", tmp_path / "out")
    assert "No percentage" not in done.output
    assert "\nnorth north north no...h north north end " in done.output
    assert far in (tmp_path / "out" / "metrics.json").read_text()
    assert "No percentage is above 1" in run(*command, "--scale", "percent").output
    assert "--groups and --weights name one column, 'w'" in run(*command, "--groups", "site,w", "--weights", "w").output
    assert "--out must be a folder" in run(*command, "--out", tmp_path / "page.html").output


def test_what_is_written_and_applied(file, tmp_path):
    out = tmp_path / "audit"
    done = run("audit", file, "--calibrate", "temperature,vector", "--out", out, "--json")
    assert done.exit_code == 0, done.output
    record = json.loads(done.stdout)
    assert json.loads((out / "metrics.json").read_text())["verdict"] == record["verdict"]
    page = (out / "audit.html").read_text()
    assert record["verdict"]["sentence"].split(" (")[0] in page
    assert "http" not in page.replace("http://www.w3.org/", "").replace("http-equiv", "")
    calibrated = run("calibrate", out / "calibrator.json", file, tmp_path / "fixed.npz")
    assert calibrated.exit_code == 0, calibrated.output
    assert run("audit", tmp_path / "fixed.npz", "--calibrate", "none").output.startswith("Calibrated, as far as 1,500")


def test_a_table_of_somebody_else(file, tmp_path):
    import pandas

    rows = Predictions.load(file)
    table = pandas.DataFrame(rows.probs, columns=[f"p_{k}" for k in range(4)])
    table["y"], table["site"] = rows.labels, np.where(np.arange(len(table)) % 2, "a", "b")
    table.to_csv(tmp_path / "theirs.csv", index=False)
    (tmp_path / "names.txt").write_text("cat\ndog\nbird\nfish\n")
    done = run(
        "audit", tmp_path / "theirs.csv", "--probs", "p_*", "--labels", "y", "--groups", "site",
        "--classes", tmp_path / "names.txt", "--calibrate", "none",
    )  # fmt: skip
    assert done.exit_code == 0, done.output
    assert "Groups, worst first" in done.output
    assert "fish" in done.output


def test_one_column_of_scores(tmp_path):
    """Of a binary model, with names for labels: the numbers are those of both columns."""
    import pandas

    draws = np.random.default_rng(0)
    risk = draws.beta(1, 6, 1000)
    bad = draws.random(1000) < risk
    table = pandas.DataFrame({"customer": np.arange(1000), "pd": risk, "outcome": np.where(bad, "default", "repaid")})
    table.to_csv(tmp_path / "credit.csv", index=False)
    told = ["--score", "pd", "--labels", "outcome", "--positive", "default", "--calibrate", "none"]
    done = run("audit", tmp_path / "credit.csv", *told, "--json")
    assert done.exit_code == 0, done.output
    record = json.loads(done.stdout)
    both = np.stack([1 - risk, risk], 1)
    for name in ("nll", "ece", "brier", "error"):
        assert record["metrics"][name]["estimate"] == pytest.approx(METRICS[name](both, bad.astype(int)), abs=1e-12)
    assert {part["name"] for part in record["per_class"]} <= {"default", "repaid"}
    assert "give one" in run("audit", tmp_path / "credit.csv", *told, "--probs", "pd").output


@pytest.mark.parametrize(
    ("labels", "positive"), [(("0", "1"), "1"), (("1", "0"), "0"), (("0.0", "1.0"), "1"), (("False", "True"), "true")]
)
def test_the_positive_class_by_what_the_file_says(tmp_path, labels, positive):
    """A text in the command, numbers or booleans in the file."""
    lines = [f"{labels[row % 3 == 0]},{0.1 + 0.8 * (row % 3 == 0)},{row % 2 or ''}" for row in range(30)]
    (tmp_path / "t.csv").write_text("\n".join(["y,p,patient", *lines, ""]))
    found = Predictions.load(tmp_path / "t.csv", probs=["p"], labels="y", positive=positive)
    assert found.labels.tolist() == [int(row % 3 == 0) for row in range(30)]
    assert found.probs[:2, 1] == pytest.approx([0.9, 0.1])
    told = ["audit", tmp_path / "t.csv", "--labels", "y", "--score", "p", "--calibrate", "none"]
    assert "positive must be one of the labels" in run(*told, "--positive", "2").output
    assert "clusters must name the cluster of every row" in run(*told, "--clusters", "patient").output


def test_the_column_of_times_has_two_names_in_both_commands(tmp_path):
    lines = [f"{row % 2},0.{4 + row % 3},2026-03-{1 + row % 28:02d}" for row in range(60)]
    (tmp_path / "t.csv").write_text("\n".join(["y,p,day", *lines, ""]))
    told = ["--labels", "y", "--score", "p"]
    assert "By week" in run("audit", tmp_path / "t.csv", *told, "--time", "day", "--calibrate", "none").output
    done = run("monitor", tmp_path / "s.json", tmp_path / "t.csv", *told, "--times", "day")
    assert "60 rows in 28 periods" in done.output.replace("\n", " ")


def test_top1_rows_under_other_names(tmp_path):
    import pandas

    draws = np.random.default_rng(0)
    sure = draws.uniform(0.5, 1, 2000)
    right = draws.random(2000) < sure
    pandas.DataFrame({"max_prob": sure, "hit": right}).to_csv(tmp_path / "top1.csv", index=False)
    done = run("audit", tmp_path / "top1.csv", "--confidence", "max_prob", "--correct", "hit", "--calibrate", "none")
    assert done.exit_code == 0, done.output
    assert done.output.startswith("Calibrated, as far as 2,000 rows can tell")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--fail-if", "ece above 1"], "a gate must be a metric"),
        (["--fail-if", "ecce > 1"], "did you mean 'ece'"),
        (["--fail-on", "mean"], "--fail-on must be interval or estimate, got 'mean'"),
        (["--calibrate", "tempreature"], "calibrate must name calibrators, got 'tempreature'"),
        (["--baseline", "absent.npz"], "absent.npz"),
    ],
)
def test_bad_input_is_one_sentence(file, arguments, message, tmp_path):
    done = run("audit", file, *arguments, "--out", tmp_path / "nothing")
    assert done.exit_code == 2
    assert message in done.output
    assert done.output.count("\n") <= 2
    assert not (tmp_path / "nothing").exists()


TABLE = {"p_0": [0.5, 0.2, 0.9], "p_1": [0.5, 0.8, 0.1], "y": [0, 1, 0]}


@pytest.mark.parametrize(
    ("change", "more", "message"),
    [
        ({"p_0": [0.5, None, 0.9]}, [], "column 'p_0' must hold a number in every row, got '' in row 1"),
        ({"p_0": [0.5, 0.4, 0.9]}, [], "summing to 1 within 0.001 over the classes, got a sum of 1.2 in row 1"),
        ({"y": None}, [], "the table must have a column 'label'"),
        ({"site": ["a", None, "b"]}, ["--groups", "site"], "must name the group of every row, got an empty name"),
        ({"p_0": [], "p_1": [], "y": []}, [], "the file must hold at least one row, got none"),
        ({"c": [1, 0, 2]}, ["--confidence", "p_0", "--correct", "c"], "'p_0' must be confidences from 0 to 1"),
        ({}, ["--confidence", "p_0", "--labels", "y"], "confidence and correct take the place of labels"),
        ({}, ["--classes", "names.txt"], "classes must be 2 different names"),
    ],
)
def test_bad_files_are_one_sentence(change, more, message, tmp_path, monkeypatch):
    import pandas

    monkeypatch.chdir(tmp_path)
    (tmp_path / "names.txt").write_text("cat\ndog\nemu\n")
    columns = {name: values for name, values in (TABLE | change).items() if values is not None}
    pandas.DataFrame(columns).to_csv("rows.csv", index=False)
    done = run("audit", "rows.csv", *more, "--out", "nothing")
    assert done.exit_code == 2, done.output
    assert message in done.output
    assert done.output.startswith("focalcal: ")
    assert done.output.count("\n") == 1
    assert not (tmp_path / "nothing").exists()


@pytest.mark.filterwarnings("default::UserWarning")
def test_printed_digits_are_divided_by_their_sums_where_that_is_said(tmp_path):
    """As the numbers are after `normalize=True`, in an audit and in a calibrated table, with the miss in a note."""
    import pandas

    draws = np.random.default_rng(0)
    probs = draws.dirichlet(np.ones(4), 500)
    printed = probs.round(2)
    labels = (probs.cumsum(1) < draws.random((500, 1))).sum(1)
    table = pandas.DataFrame(printed, columns=[f"p_{k}" for k in range(4)]).assign(y=labels)
    table.to_csv(tmp_path / "rows.csv", index=False)
    table.to_parquet(tmp_path / "rows.parquet")
    refused = run("audit", tmp_path / "rows.csv")
    assert refused.exit_code == 2
    assert "rounded, divide each row by its sum, where it is taken with --normalize rows; name" in refused.output
    assert "normalize=True" not in refused.output
    miss = np.abs(printed.sum(1) - 1).max()
    said = f"miss the sum one by up to {miss:.2g}; they were divided by their sums."
    wanted = ece(printed / printed.sum(1, keepdims=True), labels)
    for name in ("rows.csv", "rows.parquet"):
        done = run("audit", tmp_path / name, "--normalize", "rows", "--calibrate", "none", "--json")
        record = json.loads(done.stdout)
        assert record["metrics"]["ece"]["estimate"] == pytest.approx(wanted, rel=1e-12)
        assert any(note.endswith(said) for note in record["notes"])
    scaling = TemperatureScaling().fit(np.log(printed + 0.01), labels)
    scaling.save(tmp_path / "calibrator.json")
    arguments = (tmp_path / "calibrator.json", tmp_path / "rows.csv", tmp_path / "out.csv", "--normalize", "rows")
    done = run("calibrate", *arguments)
    assert done.exit_code == 0, done.output
    assert f"by up to {miss:.2g}, and they are divided by their sums" in done.stderr
    written = pandas.read_csv(tmp_path / "out.csv").filter(like="p_")
    np.testing.assert_allclose(written, scaling.predict_proba(probs=printed / printed.sum(1, keepdims=True)), rtol=1e-9)


@pytest.mark.filterwarnings("default::UserWarning")
def test_warnings_are_plain_notes(file, tmp_path):
    import pandas

    rows = Predictions.load(file)
    table = pandas.DataFrame(rows.probs, columns=[f"p_{k}" for k in range(4)]).assign(y=rows.labels)
    table.to_csv(tmp_path / "theirs.csv", index=False)
    TemperatureScaling().fit(rows.logits, rows.labels).save(tmp_path / "calibrator.json")
    done = run("calibrate", tmp_path / "calibrator.json", tmp_path / "theirs.csv", tmp_path / "fixed.npz")
    assert done.exit_code == 0, done.output
    assert "focalcal: note: probs were taken from 'p_0'" in done.stderr
    assert "Warning" not in done.stderr
