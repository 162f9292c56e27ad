"""`focalcal calibrate` on what production has: no labels, other columns, folders and streams."""

import io
import json
import tracemalloc

import numpy as np
import pandas
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from typer.testing import CliRunner

from focalcal.cli.app import app
from focalcal.posthoc import MultilabelCalibration, PlattScaling, TemperatureScaling, load_calibrator
from focalcal.posthoc.calibrated_tables import calibrate_tables
from focalcal.predictions import Predictions, PredictionsFileError

DRAWS = np.random.default_rng(0)
ODDS = 2 * DRAWS.normal(size=3000)
SCORE = 1 / (1 + np.exp(-ODDS))
WORDS = np.where(DRAWS.random(3000) < 1 / (1 + np.exp(-ODDS / 2)), "default", "paid")
QUERIES = pandas.DataFrame(
    {
        "id": [f"{n:05d}" for n in range(500)],
        "score": SCORE[:500],
        "note": ['said "no", then left', "x\ny", "a,b", "", "plain"] * 100,
        "when": pandas.Timestamp("2026-01-01"),
    }
)


def run(*arguments, **more):
    return CliRunner().invoke(app, [str(argument) for argument in arguments], **more)


@pytest.fixture(scope="module")
def audited(tmp_path_factory):
    """A calibrator that an audit of one column with names as labels recommended."""
    folder = tmp_path_factory.mktemp("audit")
    pandas.DataFrame({"score": SCORE, "y": WORDS}).to_csv(folder / "rows.csv", index=False)
    options = ("--score", "score", "--labels", "y", "--positive", "default", "--calibrate", "platt")
    done = run("audit", folder / "rows.csv", *options, "--out", folder / "out")
    assert done.exit_code == 0, done.output
    return folder / "out" / "calibrator.json"


def calibrated(path, column):
    return load_calibrator(path).predict_proba(probs=np.asarray(column, dtype=np.float64))[:, 1]


def test_the_audit_remembers_classes_and_columns(audited):
    fitted = load_calibrator(audited)
    assert fitted.classes_.tolist() == ["paid", "default"]
    assert (fitted.columns_.kind, fitted.columns_.names) == ("probs", ("score",))
    stored = json.loads((audited.parent / "metrics.json").read_text())["fixes"]["calibrator"]
    assert stored == json.loads(audited.read_text())


def test_rows_without_labels_keep_every_other_column(audited, tmp_path):
    QUERIES.to_parquet(tmp_path / "new.parquet", index=False)
    done = run("calibrate", audited, tmp_path / "new.parquet", tmp_path / "out.parquet")
    assert done.exit_code == 0, done.output
    found = pandas.read_parquet(tmp_path / "out.parquet")
    np.testing.assert_allclose(found["score"], calibrated(audited, QUERIES["score"]), rtol=1e-12)
    pandas.testing.assert_frame_equal(found.assign(score=QUERIES["score"]), QUERIES)
    assert pq.read_schema(tmp_path / "out.parquet").equals(pq.read_schema(tmp_path / "new.parquet"))


def test_text_of_a_csv_stays_what_it_was_in_files_and_streams(audited, tmp_path):
    text = QUERIES.assign(empty="", odd="=1+1").to_csv(index=False)
    (tmp_path / "new.csv").write_text(text)
    assert run("calibrate", audited, tmp_path / "new.csv", tmp_path / "out.csv").exit_code == 0
    read = {"dtype": str, "keep_default_na": False}
    found, given = pandas.read_csv(tmp_path / "out.csv", **read), pandas.read_csv(io.StringIO(text), **read)
    np.testing.assert_allclose(found["score"].astype(float), calibrated(audited, QUERIES["score"]), rtol=1e-12)
    pandas.testing.assert_frame_equal(found.drop(columns="score"), given.drop(columns="score"))
    assert list(found) == list(given)
    done = run("calibrate", audited, "-", "-", input=text)
    assert done.exit_code == 0, done.output
    assert done.stdout == (tmp_path / "out.csv").read_text()


def test_blocks_end_where_lines_end(audited, tmp_path, monkeypatch):
    QUERIES.to_csv(tmp_path / "new.csv", index=False)
    calibrate_tables(load_calibrator(audited), tmp_path / "new.csv", tmp_path / "whole.csv")
    monkeypatch.setattr("focalcal.predictions.text_tables._BLOCK", 97)
    calibrate_tables(load_calibrator(audited), tmp_path / "new.csv", tmp_path / "pieces.csv")
    whole, pieces = (pandas.read_csv(tmp_path / f"{name}.csv", dtype=str) for name in ("whole", "pieces"))
    pandas.testing.assert_frame_equal(whole, pieces)


def test_a_partitioned_folder_becomes_one(audited, tmp_path):
    for site, rows in (("a", QUERIES[:300]), ("b", QUERIES[300:])):
        (tmp_path / "new" / f"site={site}").mkdir(parents=True)
        rows.to_parquet(tmp_path / "new" / f"site={site}" / "part-0.parquet", index=False)
    (tmp_path / "new" / "_SUCCESS").touch()
    assert run("calibrate", audited, tmp_path / "new", tmp_path / "out").exit_code == 0
    found, given = pandas.read_parquet(tmp_path / "out"), pandas.read_parquet(tmp_path / "new")
    assert found["site"].value_counts().to_dict() == {"a": 300, "b": 200}
    pandas.testing.assert_frame_equal(found.drop(columns="score"), given.drop(columns="score"))
    np.testing.assert_allclose(found["score"], calibrated(audited, given["score"]), rtol=1e-12)
    refused = run("calibrate", audited, tmp_path / "new", tmp_path / "one.parquet")
    assert refused.exit_code == 2
    assert "out must be the name of a new folder" in refused.stderr


def test_logits_become_probabilities_in_their_place(tmp_path):
    logits = 2 * DRAWS.normal(size=(800, 3))
    labels = np.argmax(logits / 2 + DRAWS.gumbel(size=logits.shape), 1)
    names = np.array(["cat", "dog", "emu"])
    fitted = TemperatureScaling().fit(logits, names[labels], classes=names)
    fitted.save(tmp_path / "calibrator.json")
    table = pandas.DataFrame(logits[:, [2, 0, 1]], columns=["logit_emu", "logit_cat", "logit_dog"])
    table = table.assign(last=1).astype({"logit_emu": np.float32})
    table.to_parquet(tmp_path / "new.parquet")
    done = run("calibrate", tmp_path / "calibrator.json", tmp_path / "new.parquet", tmp_path / "out.parquet")
    assert done.exit_code == 0, done.output
    found = pandas.read_parquet(tmp_path / "out.parquet")
    assert list(found) == ["prob_emu", "prob_cat", "prob_dog", "last"]  # the columns had another order than the fit
    wanted = fitted.predict_proba(logits)
    np.testing.assert_allclose(found[["prob_cat", "prob_dog", "prob_emu"]], wanted, atol=1e-6)


def test_lists_decimals_and_several_labels(tmp_path):
    fitted = TemperatureScaling(temperature=2.0)
    probs = DRAWS.dirichlet(np.ones(3), size=50)
    pq.write_table(pa.table({"p": probs.tolist(), "at": range(50)}), tmp_path / "lists.parquet")
    calibrate_tables(fitted, tmp_path / "lists.parquet", tmp_path / "out.parquet", probs=["p"])
    found = pq.read_table(tmp_path / "out.parquet")
    np.testing.assert_allclose(found["p"].to_pylist(), fitted.predict_proba(probs=probs))
    decimals = pa.array(np.round(SCORE[:9], 4).astype(str).tolist()).cast(pa.decimal128(6, 4))
    pq.write_table(pa.table({"score": decimals}), tmp_path / "decimals.parquet")
    calibrate_tables(fitted, tmp_path / "decimals.parquet", tmp_path / "out.parquet", probs=["score"])
    wanted = fitted.predict_proba(probs=np.round(SCORE[:9], 4))[:, 1]
    np.testing.assert_allclose(pq.read_table(tmp_path / "out.parquet")["score"], wanted)
    logits = DRAWS.normal(size=(400, 2))
    several = MultilabelCalibration(PlattScaling()).fit(logits, (DRAWS.random((400, 2)) < 0.5) * 1)
    several.save(tmp_path / "several.json")
    pandas.DataFrame(logits, columns=["logit_0", "logit_1"]).to_parquet(tmp_path / "several.parquet")
    restored = load_calibrator(tmp_path / "several.json")
    calibrate_tables(restored, tmp_path / "several.parquet", tmp_path / "out.parquet")
    np.testing.assert_allclose(pandas.read_parquet(tmp_path / "out.parquet"), several.predict_proba(logits))


def test_a_file_of_ours_stays_one(tmp_path):
    logits = 2 * DRAWS.normal(size=(800, 3))
    rows = Predictions(logits=logits, labels=DRAWS.integers(0, 3, 800), split="test", groups=["a", "b"] * 400)
    fitted = TemperatureScaling(temperature=3.0)
    for suffix in ("parquet", "csv"):
        rows.save(tmp_path / f"rows.{suffix}")
        calibrate_tables(fitted, tmp_path / f"rows.{suffix}", tmp_path / f"out.{suffix}")
        found = Predictions.load(tmp_path / f"out.{suffix}")
        assert (found.kind, found.split, found.provenance["calibrator"]) == ("probs", "test", "TemperatureScaling")
        np.testing.assert_allclose(found.probs, fitted.predict_proba(logits), rtol=1e-12)
        assert (found.labels == rows.labels).all()
        assert found.groups.tolist() == rows.groups.tolist()


def test_no_rows_give_no_rows(audited, tmp_path):
    QUERIES[:0].to_parquet(tmp_path / "new.parquet", index=False)
    (tmp_path / "new.csv").write_text("id,score\n")
    for suffix in ("parquet", "csv"):
        assert run("calibrate", audited, tmp_path / f"new.{suffix}", tmp_path / f"out.{suffix}").exit_code == 0
    assert list(pandas.read_parquet(tmp_path / "out.parquet")) == list(QUERIES)
    assert (tmp_path / "out.csv").read_text() == "id,score\n"


@pytest.mark.parametrize(
    ("table", "message"),
    [
        ({"score": [0.5, None, 0.5]}, "column 'score' must have a value in every row, got 1 null.*in row 1; fill"),
        ({"score": [0.5, 1.5]}, r"probs must be probabilities from 0 to 1, got 1.5 in row 1"),
        ({"score": ["high"]}, "column 'score' must hold numbers, got the text 'high' in row 0"),
        ({"rating": [0.5]}, "the table must have columns of scores \\('score'\\), got 'rating'; name them by --probs"),
        ({"prob_0": [0.5], "prob_1": [0.25], "prob_2": [0.25]}, "must be in 2 columns, .* got 3: prob_0"),
    ],
)
def test_what_cannot_be_calibrated_is_named_and_nothing_is_written(audited, tmp_path, table, message):
    pq.write_table(pa.table(table), tmp_path / "new.parquet")
    with pytest.raises(PredictionsFileError, match=message):
        calibrate_tables(load_calibrator(audited), tmp_path / "new.parquet", tmp_path / "out.parquet")
    assert [path.name for path in tmp_path.iterdir()] == ["new.parquet"]


def test_rows_are_counted_from_the_first_of_the_file(audited, tmp_path, monkeypatch):
    monkeypatch.setattr("focalcal.predictions.table_rows._BATCH", 10)
    pq.write_table(pa.table({"score": [0.5] * 24 + [None]}), tmp_path / "new.parquet")
    with pytest.raises(PredictionsFileError, match="the first in row 24"):
        calibrate_tables(load_calibrator(audited), tmp_path / "new.parquet", tmp_path / "out.parquet")


def test_memory_does_not_grow_with_the_rows(audited, tmp_path, monkeypatch):
    monkeypatch.setattr("focalcal.predictions.table_rows._BATCH", 1 << 12)
    schema, fitted = pa.schema([("score", pa.float64())]), load_calibrator(audited)
    peaks = []
    for groups in (2, 16):
        with pq.ParquetWriter(tmp_path / "new.parquet", schema) as writer:
            for _ in range(groups):
                writer.write_table(pa.table({"score": DRAWS.random(1 << 14)}))
        tracemalloc.start()
        calibrate_tables(fitted, tmp_path / "new.parquet", tmp_path / "out.parquet")
        peaks.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
    assert peaks[1] < 1.5 * peaks[0]
