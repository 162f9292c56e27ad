import csv
import io
import math
import re

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from focalcal.pages.numbers import Mean, Printed
from focalcal.pages.tables import Table, number


@given(st.lists(st.floats(allow_nan=False), max_size=20))
def test_csv_gives_every_float_back(values):
    table = Table({"value": np.array(values, dtype=np.float64), "row": np.arange(len(values))})
    names, *rows = csv.reader(io.StringIO(table.csv()))
    assert names == ["value", "row"]
    assert [float(value) for value, _ in rows] == values
    assert [int(row) for _, row in rows] == list(range(len(values)))


@given(st.lists(st.text(alphabet=st.characters(exclude_categories=["Cs", "Cc"]), min_size=1), min_size=1, max_size=5))
def test_csv_gives_text_back(texts):
    _, *rows = csv.reader(io.StringIO(Table({"text": texts, "other": [1] * len(texts)}).csv()))
    assert all(read in (text, f"'{text}") for text, (read, _) in zip(texts, rows, strict=True))
    assert all(read == text for text, (read, _) in zip(texts, rows, strict=True) if text[0] not in "=+-@")


def test_csv_has_no_formulas_and_keeps_negative_numbers():
    cells = ["=1+1", "+cmd", "-cmd|' /C calc'!A0", "@SUM(A1)", "\t=1", "-0.5", "-", "a=b", -0.5, -3, None]
    names, *rows = csv.reader(io.StringIO(Table({"=name": cells, "-1": cells}).csv()))
    assert names == ["'=name", "-1"]  # a number is no formula
    assert [first for first, _ in rows] == [
        *("'=1+1", "'+cmd", "'-cmd|' /C calc'!A0", "'@SUM(A1)", "'\t=1"),
        *("-0.5", "-", "a=b", "-0.5", "-3", ""),
    ]


def test_csv_keeps_nan_and_leaves_none_empty():
    _, first, second = csv.reader(io.StringIO(Table({"a": [math.nan, 1.0], "b": [None, 2]}).csv()))
    assert math.isnan(float(first[0]))
    assert first[1] == ""
    assert second == ["1.0", "2"]


def test_markdown_aligns_and_escapes():
    table = Table({"name": ["a|b", "x_y*"], "value": [0.5, -12.25]}, headings={"value": "the | value"})
    assert table.markdown() == (
        "| name   | the \\| value |\n"
        "| ------ | -----------: |\n"
        "| a\\|b   |         0.50 |\n"
        "| x\\_y\\* |       -12.25 |\n"
    )


def test_a_markdown_row_is_one_line_whatever_the_cells_hold():
    assert Table({"a": ["one\ntwo"]}).markdown().splitlines()[2] == "| one two |"


def test_latex_escapes_and_writes_powers_of_ten():
    table = Table({"a_b": ["50 % & more", "#1 {x} \\ ~^"], "size": [1.5e-13, 2.0]}, headings={"size": "size_%"})
    assert table.latex().splitlines() == [
        r"\begin{tabular}{lr}",
        r"\toprule",
        r"a\_b & size\_\% \\",
        r"\midrule",
        r"50 \% \& more & $1.50\times 10^{-13}$ \\",
        r"\#1 \{x\} \textbackslash{} \textasciitilde{}\textasciicircum{} & $2.00\times 10^{0}$ \\",
        r"\bottomrule",
        r"\end{tabular}",
    ]


@given(st.lists(st.text(alphabet="ab_%&#${}\\~^<>|", min_size=1), min_size=1, max_size=4))
def test_latex_stays_balanced_whatever_the_cells_hold(texts):
    latex = Table({"text": texts, "number": [-1.5] * len(texts)}).latex()
    bare = re.sub(r"\\[&%$#_{}]", "", latex)  # escaped characters open and close nothing
    assert bare.count("{") == bare.count("}")
    assert bare.count("$") % 2 == 0
    assert bare.count(r"\begin{tabular}") == bare.count(r"\end{tabular}") == 1
    rows = bare.split(r"\midrule")[1].split(r"\bottomrule")[0].strip().splitlines()
    assert [row.count("&") for row in rows] == [1] * len(texts)


def test_latex_headings_go_in_as_they_are():
    assert r"$\gamma$ & b \\" in Table({"a": [1], "b": [2]}).latex(headings={"a": r"$\gamma$"})


def test_a_column_has_one_notation():
    fixed = Table({"slope": [-0.99412, -1.00049, -0.9]}).rows()
    assert fixed == [["-0.994"], ["-1.000"], ["-0.900"]]
    assert Table({"gap": [35.4, 0.612, 11.2]}).rows() == [["35.40"], ["0.61"], ["11.20"]]
    powers = Table({"error": [0.5, 1.25e-9, 0.0]}).rows()
    assert powers == [["5.00e-01"], ["1.25e-09"], ["0"]]
    assert Table({"gamma": [1.0, 32768.0]}).rows() == [["1"], ["32768"]]
    assert Table({"any": [math.nan, math.inf, -math.inf]}).rows() == [["-"], ["inf"], ["-inf"]]
    assert Table({"sure": [True, np.False_]}).rows() == [["yes"], ["no"]]


@given(st.lists(st.floats(1e-12, 1e12), min_size=1, max_size=8), st.integers(2, 6))
def test_what_is_printed_is_near_what_is_meant(values, digits):
    for value, (cell,) in zip(values, Table({"a": values}, digits=digits).rows(), strict=True):
        assert float(cell) == pytest.approx(value, rel=0.051)


def test_text_lines_up():
    assert Table({"class": ["a", "bb"], "q": [0.25, 10.5]}).text() == "class      q\na       0.25\nbb     10.50\n"


def test_one_number():
    assert [number(0.01234), number(4.0), number(1.2e-13), number(math.nan)] == ["0.0123", "4", "1.20e-13", "-"]


def test_zero_has_no_sign_and_no_power_of_ten():
    assert Table({"a": [-0.0, 1.0]}).rows() == [["0"], ["1"]]
    assert Table({"a": [-0.0, 0.25]}).rows() == [["0.000"], ["0.250"]]
    assert r"0 \\" in Table({"a": [0.0, 1.5e-13]}).latex().splitlines()


def test_what_was_printed_is_shown_as_it_was():
    table = Table({"a": [Printed("0.01"), Printed("-1.990"), 0.5]})
    assert table.rows() == [["0.01"], ["-1.990"], ["0.500"]]
    assert table.csv().splitlines() == ["a", "0.01", "-1.99", "0.5"]
    assert table.numeric == [True]
    assert r"$-1.990$ \\" in table.latex().splitlines()


def test_latex_groups_columns_under_one_heading():
    table = Table({"a": [1], "b": [2], "c": [3], "d": [4]})
    lines = table.latex(groups={"two": ["b", "c"]}, caption=r"Of $\gamma$.", label="tab:x").splitlines()
    assert lines[:4] == [r"\begin{table}", r"\centering", r"\caption{Of $\gamma$.}", r"\label{tab:x}"]
    assert lines[6:8] == [r" & \multicolumn{2}{c}{two} &  \\", r"\cmidrule(lr){2-3}"]
    assert lines[8] == r"a & b & c & d \\"
    assert lines[-1] == r"\end{table}"
    with pytest.raises(ValueError, match="groups must name adjacent columns"):
        table.latex(groups={"two": ["b", "d"]})


@pytest.mark.parametrize(
    ("columns", "options", "message"),
    [
        ({}, {}, "at least one column"),
        ({"a": [1, 2], "b": [1]}, {}, "equally long"),
        ({"a": [1]}, {"headings": {"z": "Z"}}, "'z'"),
        ({"a": [1]}, {"digits": 0}, "digits must be >= 1, got 0"),
    ],
)
def test_wrong_tables_are_refused(columns, options, message):
    with pytest.raises(ValueError, match=message):
        Table(columns, **options)


BOLD = Table(
    {"name": ["a_b", "c"], "value": [Mean([4.0, 5.0], decimals=2), Mean([-1.25], decimals=2)], "plain": [1, 2]},
    bold={"value": [True, False]},
)


def test_a_bold_cell_stands_out_in_every_format_but_csv():
    assert BOLD.text().splitlines() == [
        "name        value   plain",
        "a_b   4.50 ± 0.71*      1",
        "c           -1.25       2",
    ]
    assert BOLD.markdown().splitlines()[2:] == [
        "| a\\_b | **4.50 ± 0.71** |     1 |",
        "| c    |           -1.25 |     2 |",
    ]
    assert BOLD.latex().splitlines()[4:6] == [
        r"a\_b & \textbf{\boldmath 4.50 $\pm$ 0.71} & 1 \\",
        r"c & $-1.25$ & 2 \\",
    ]
    assert "*" not in BOLD.csv()
    assert BOLD.bold_rows() == [[False, True, False], [False, False, False]]


def test_csv_has_the_spread_and_count_of_a_mean_with_every_digit():
    rows = list(csv.DictReader(io.StringIO(BOLD.csv())))
    assert float(rows[0]["value_std"]) == math.sqrt(0.5)  # n - 1
    assert [row["value_n"] for row in rows] == ["2", "1"]
    assert math.isnan(float(rows[1]["value_std"]))


def test_bold_must_fit_the_table():
    with pytest.raises(ValueError, match="bold must have 2 values"):
        Table({"a": [1, 2]}, bold={"a": [True]})
    with pytest.raises(ValueError, match="bold"):
        Table({"a": [1, 2]}, bold={"b": [True, False]})
