"""Tables as people export them: what is found, what is said of it, and what is refused since two readings would fit."""

import gzip
import json
import re
import warnings

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from focalcal.predictions import InputWarning, Predictions, PredictionsFileError

ROWS = [("Müller", 0.125, 1), ("Groß", 0.5, 0), ("é", 0.875, 1)]
WAYS = {
    "excel": (";", ",", "cp1252", "excel.csv"),
    "excel with a mark": (";", ",", "utf-8-sig", "a.csv"),
    "unicode text": ("\t", ",", "utf-16", "a.txt"),
    "tabs": ("\t", ".", "utf-8", "a.tsv"),
    "bars": ("|", ".", "utf-8", "a.csv"),
    "usual": (",", ".", "utf-8", "a.csv"),
}
NAMED = {"probs": "score", "labels": "y", "ids": "who"}


def written(path, delimiter, decimal, encoding, scores=None, end="\r\n"):
    scores = [str(score).replace(".", decimal) for _, score, _ in ROWS] if scores is None else scores
    lines = [delimiter.join([who, score, str(y)]) for (who, _, y), score in zip(ROWS, scores, strict=True)]
    content = end.join([delimiter.join(["who", "score", "y"]), *lines, ""]).encode(encoding)
    path.write_bytes(gzip.compress(content) if path.suffix == ".gz" else content)
    return path


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("compressed", [False, True])
def test_what_a_text_does_not_say_is_found_and_said(tmp_path, way, compressed):
    delimiter, decimal, encoding, name = WAYS[way]
    path = written(tmp_path / f"{name}{'.gz' * compressed}", delimiter, decimal, encoding)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        found = Predictions.load(path, **NAMED)
    assert found.probs[:, 1].tolist() == [0.125, 0.5, 0.875]
    assert (found.ids.tolist(), found.labels.tolist()) == (["Müller", "Groß", "é"], [1, 0, 1])
    said = " ".join(str(each.message) for each in caught)
    assert ("decimal sign" in said) == (decimal == ",")
    assert ("separated by" in said) == (delimiter not in (",", "\t") or name.endswith(".txt"))
    assert ("Windows-1252" in said) == (encoding == "cp1252")
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # who says it is told nothing
        again = Predictions.load(path, **NAMED, delimiter=delimiter, decimal=decimal, encoding=encoding)
    assert again.equals(found)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", InputWarning)
        assert Predictions.concatenate(Predictions.stream(path, rows=2, **NAMED)).equals(found)


@settings(max_examples=40, deadline=None)
@given(st.lists(st.floats(0, 1).map(lambda value: f"{value:.6f}"), min_size=1, max_size=8), st.sampled_from(";\t|"))
def test_a_decimal_comma_never_gives_another_number(tmp_path_factory, scores, delimiter):
    path = tmp_path_factory.getbasetemp() / "decimals.csv"
    lines = [f"{score.replace('.', ',')}{delimiter}1" for score in scores]
    path.write_text("\n".join([f"score{delimiter}y", *lines, ""]))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", InputWarning)
        loaded = Predictions.load(path, probs="score", labels="y")
    assert loaded.probs[:, 1].tolist() == [float(score) for score in scores]


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("y;logit_0;logit_1\n0;1,234;2,345\n", "may be 1.234 or 1234; say decimal=',', .*--decimal comma"),
        ("y,x;a,prob_1;b\n0,u;v,0.5;w\n", "lines that fit ',' or ';'; say which, .*--delimiter comma"),
        ("y;logit_0;logit_1\n0;1,5;2\n1;0.5;1\n", "must hold a number in every row, got '1,5' in row 0"),
        ("y;logit_0;logit_1\n0;1.234,5;2,5\n", "must hold a number in every row, got '1.234,5' in row 0"),
        ("y,p1\n1,85 %\n", "got '85 %' in row 0; read percentages with scale=.percent."),
        ("y,p1\n1,98.8\n0,12\n", 'got 98.8 in row 0; .*; if 98.8 is a percentage, say scale="percent"$'),
        ("y,prob_a,prob_b,prob_c\na,98.8,1,0.2\n", '; if 98.8 is a percentage, say scale="percent"$'),
        ("y,p1\n1,1.5\n0,1\n", "; name other columns or fix the file$"),
        ("y,prob_a,prob_b,prob_c\na,1.5,0.7,0.1\n", "; name other columns or fix the file$"),
        ("y,prob_a,prob_b,prob_c\na,98.8,98,97\n", "; name other columns or fix the file$"),
    ],
)
@pytest.mark.filterwarnings("ignore::focalcal.InputWarning")
def test_what_could_be_two_numbers_is_refused_with_the_option_that_settles_it(tmp_path, content, message):
    (tmp_path / "a.csv").write_text(content)
    with pytest.raises(PredictionsFileError, match=message):
        Predictions.load(tmp_path / "a.csv")


@pytest.mark.filterwarnings("ignore::focalcal.InputWarning")
def test_a_comma_that_comes_late_is_an_error_and_no_other_number(tmp_path):
    path = tmp_path / "a.csv"
    path.write_text("y;logit_0;logit_1\n" + "0;1;2\n" * 3000 + "0;1,234;2\n")
    with pytest.raises(PredictionsFileError, match=r"got '1,234' in row 3000; say decimal=','"):
        Predictions.load(path)
    path.write_bytes(b"who,y,p1\n" + b"a,0,0.5\n" * 200_000 + "é,1,0.5\n".encode("cp1252"))
    with pytest.raises(PredictionsFileError, match=r"must be in UTF-8, as its first lines are.*--encoding cp1252"):
        Predictions.load(path, ids="who")
    assert Predictions.load(path, ids="who", encoding="cp1252").ids[-1] == "é"
    path.write_bytes("é,".encode() + "é\n".encode("cp1252"))
    with pytest.raises(PredictionsFileError, match="neither that nor Windows-1252"):
        Predictions.load(path)


def test_labels_are_what_the_first_rows_have(tmp_path, monkeypatch):
    """A name below numbers is refused, however it would sort; a number below names is one of the names."""
    monkeypatch.setattr("focalcal.predictions.text_tables._BLOCK", 1000)
    path = tmp_path / "a.csv"
    path.write_text("label,prob_0,prob_1\n" + "0,0.5,0.5\n" * 300 + "cat,0.5,0.5\n")
    for read in (Predictions.load, lambda path: list(Predictions.stream(path, rows=50))):
        with pytest.raises(PredictionsFileError, match=r"column 'label' must hold a number .* got 'cat' in row 300;"):
            read(path)
    path.write_text("label,prob_0,prob_1\n" + "cat,0.5,0.5\n" * 300 + "0,0.5,0.5\n")
    assert Predictions.load(path, classes=["0", "cat"]).labels[[0, -1]].tolist() == [1, 0]


@pytest.mark.parametrize("decimal", [".", ","])
def test_percentages_as_numbers_and_as_text(tmp_path, decimal):
    cells = [f"{score} %".replace(".", decimal) for score in ("12.5", "50", "87.5")]
    path = written(tmp_path / "a.csv", ";", decimal, "utf-8", cells)
    with pytest.warns(InputWarning, match="semicolon"):
        loaded = Predictions.load(path, **NAMED, scale="percent")
    assert loaded.probs[:, 1].tolist() == [0.125, 0.5, 0.875]
    written(path, ";", decimal, "utf-8", [*cells[:2], "0"])
    with pytest.warns(InputWarning, match="semicolon"):
        assert Predictions.load(path, **NAMED, scale="percent").probs[2, 1] == 0
    written(path, ";", decimal, "utf-8", [*cells[:2], f"0{decimal}9"])
    with pytest.raises(
        PredictionsFileError, match=f"a sign of percent in every row or in none, got '0{decimal}9' in row 2"
    ):
        Predictions.load(path, **NAMED, scale="percent", delimiter=";", decimal=decimal)
    numbers = {"labels": [1, 0, 1], "split": "test", "scale": "percent"}
    assert Predictions(probs=[12.5, 50.0, 87.5], **numbers).probs[:, 1].tolist() == [0.125, 0.5, 0.875]
    with pytest.warns(InputWarning, match='no percentage is above 1; say scale="unit"'):
        Predictions(probs=[0.125, 0.5, 0.875], **numbers)
    with pytest.raises(ValueError, match='percentages from 0 to 100 with scale="percent", got 120 in row 1'):
        Predictions(probs=[12.5, 120.0, 87.5], **numbers)
    with pytest.raises(ValueError, match="scale='percent' is for probs="):
        Predictions(logits=[[1.0, 2.0]], labels=[0], split="test", scale="percent")


def test_rows_without_a_value_are_left_out_and_counted(tmp_path):
    arrow, parquet = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    scores, labels = [0.5, None, 0.25, float("nan"), 1.0], [1, 0, None, 1, 0]
    parquet.write_table(arrow.table({"score": scores, "y": labels}), tmp_path / "a.parquet")
    (tmp_path / "a.csv").write_text("score,y\n0.5,1\n,0\n0.25,NA\nnan,1\n1.0,0\n")
    lines = [
        {"score": 0.5, "y": 1},
        {"y": 0},
        {"score": 0.25, "y": None},
        {"score": None, "y": 1},
        {"score": 1.0, "y": 0},
    ]
    (tmp_path / "a.jsonl").write_text("\n".join(map(json.dumps, lines)))
    message = "3 of 5 rows were left out, for a value is missing: 2 in 'score', 1 in 'y'"
    for suffix in ("parquet", "csv", "jsonl"):
        path = tmp_path / f"a.{suffix}"
        with pytest.raises(PredictionsFileError, match=r"row 1.*--drop-missing"):
            Predictions.load(path, probs="score", labels="y")
        for rows in (1, 5):
            with pytest.warns(InputWarning, match=message):
                parts = list(Predictions.stream(path, rows=rows, probs="score", labels="y", drop_missing=True))
            whole = Predictions.concatenate(parts)
            assert whole.probs[:, 1].tolist() == [0.5, 1.0]
            assert whole.ids.tolist() == [0, 4]  # where they stood
    np.savez(tmp_path / "a.npz", probs=np.array([[0.5, 0.5], [np.nan, 1.0], [0.0, 1.0]]), labels=np.array([0, 1, 1]))
    with pytest.warns(InputWarning, match="1 of 3 rows were left out, for a value is missing: 1 in 'probs'"):
        assert Predictions.load(tmp_path / "a.npz", drop_missing=True).ids.tolist() == [0, 2]
    parquet.write_table(arrow.table({"score": [None] * 3, "y": [1, 0, 1]}), tmp_path / "none.parquet")
    with pytest.raises(PredictionsFileError, match="some row must have every value, got none: 3 of 3"):
        Predictions.load(tmp_path / "none.parquet", probs="score", labels="y", drop_missing=True)


def test_json_lines_with_numbers_lists_and_names(tmp_path, monkeypatch):
    path = tmp_path / "a.jsonl"
    lines = [{"label": "dog", "probs": [0, 1], "more": {"any": k}} for k in range(3)]
    path.write_text("\n".join(map(json.dumps, [*lines, {"label": "cat", "probs": [0.25, 0.75]}])))
    loaded = Predictions.load(path, classes=["cat", "dog"])
    assert (loaded.labels.tolist(), loaded.probs[:, 1].tolist()) == ([1, 1, 1, 0], [1.0, 1.0, 1.0, 0.75])
    monkeypatch.setattr("focalcal.predictions.text_tables._BLOCK", 50)
    assert Predictions.concatenate(Predictions.stream(path, rows=2, classes=["cat", "dog"])).equals(loaded)
    for cell, remedy in (('"0.5"', "without quotes"), ('"85 %"', "scale=.percent"), ('["0.5", "0.5"]', "without")):
        path.write_text('{"label": 0, "p": null}\n'.replace("null", cell))
        with pytest.raises(
            PredictionsFileError, match=f"column 'p' must hold numbers, got the text .* row 0; .*{remedy}"
        ):
            Predictions.load(path, probs="p")
    path.write_text('{"label": 0, "p": 0.5}\nno json\n')
    with pytest.raises(PredictionsFileError, match="each line must be a JSON object"):
        Predictions.load(path)


@pytest.mark.parametrize(
    ("name", "content", "line"),
    [
        ("a.xlsx", b"PK\x03\x04", "pandas.read_excel"),
        ("really-excel.csv", b"PK\x03\x04", "pandas.read_excel"),
        ("a.db", b"SQLite format 3\0", "sqlite3 -header -csv .* > rows.csv"),
        ("a.duckdb", bytes(8) + b"DUCK", r'duckdb .* "copy TABLE to'),
        ("a.dump", b"PGDMP", r"psql .*\\copy TABLE to"),
        ("a.sql", b"-- PostgreSQL database dump", r"psql .*\\copy TABLE to"),
        ("a.json", b"[]", "jq -c"),
        ("a.csv", b"PAR1....PAR1", "must be called .parquet"),
    ],
)
def test_a_file_of_another_program_is_answered_by_the_line_that_exports_it(tmp_path, name, content, line):
    (tmp_path / name).write_bytes(content)
    with pytest.raises(PredictionsFileError, match=f"{re.escape(str(tmp_path / name))}: .*{line}"):
        Predictions.load(tmp_path / name)


def test_the_line_for_an_sqlite_database_names_its_table(tmp_path):
    import sqlite3

    connection = sqlite3.connect(tmp_path / "a.db")
    connection.executescript("create table preds (y, p1); insert into preds values (1, 0.75), (0, 0.5);")
    connection.close()
    with pytest.raises(PredictionsFileError, match="select \\* from preds"):
        Predictions.load(tmp_path / "a.db")
