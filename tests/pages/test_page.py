import doctest
import re
from importlib.resources import files

import pytest
import quickjs
from support.external_tools import needs

from focalcal.pages import page as kit
from focalcal.pages.numbers import Mean
from focalcal.pages.page import Page, Section, constant_columns, html_table, render, typeset
from focalcal.pages.tables import Table

EVIL = "</script><b>x</b>"
TABLE = Table({"name": ["b", EVIL], "value": [0.5, 2.0], "same": ["ce", "ce"]}, bold={"value": [True, False]})


def page(**changed):
    body = html_table("small", f"Small {EVIL}", TABLE, EVIL, names={"ce": "Cross-entropy"}, meanings={"value": EVIL})
    parts = {"title": EVIL, "sections": [Section("one", EVIL, body), Section("two", "Two", EVIL)]}
    return Page(**(parts | {"tables": {"small": TABLE}, "data": {"name": EVIL}} | changed)).html()


def test_all_that_is_not_markup_is_escaped():
    assert "<b>" not in page()
    assert page(lead=render("kit/only.js")).count("Kit.start();") == 2  # what `render` gives goes in as it is


def test_a_column_of_one_value_is_said_in_the_caption():
    assert constant_columns(TABLE) == {"same": ("same", "ce")}
    shown = html_table("small", "Small", TABLE, names={"ce": "Cross-entropy"})
    assert "<caption>Small (same Cross-entropy)</caption>" in shown
    assert re.findall(r"<th scope[^>]*>(.*?)</th>", shown) == ["name", "value"]
    one_row = Table({"name": ["a"], "value": [1.0]})
    assert constant_columns(one_row) == {}
    empty = Table({"name": ["a", "b"], "value": [None, None]})
    assert "<caption>Empty</caption>" in html_table("empty", "Empty", empty)
    assert html_table("all", "All", Table({"a": ["x", "x"]})).count("<td") == 2  # never nothing


def test_cells_carry_the_exact_number():
    shown = html_table("means", "Means", Table({"m": [Mean([1 / 3, 1 / 3], decimals=2), Mean([2.0], decimals=2)]}))
    assert f'data-value="{1 / 3}"' in shown
    assert "0.33\N{NO-BREAK SPACE}\N{PLUS-MINUS SIGN}\N{NO-BREAK SPACE}0.00" in shown  # which never wraps


def test_a_page_needs_a_section():
    with pytest.raises(ValueError, match="sections must hold one at least"):
        Page(title="x", sections=[]).html()


@pytest.mark.parametrize(
    ("package", "folder"),
    [
        ("focalcal.pages", "kit"),
        ("focalcal.auditing", "."),
        ("focalcal.lab.studies.tuning", "."),
        ("focalcal.lab.report", "live"),
        ("focalcal.lab.report", "study"),
        ("paper.theory", "."),
    ],
)
def test_every_script_can_be_parsed_and_stays_in_its_element(package, folder):
    scripts = [path for path in (files(package) / "templates" / folder).iterdir() if path.suffix == ".js"]
    assert scripts
    for script in scripts:
        text = script.read_text("utf-8")
        quickjs.Context().eval(f"(async function () {{ {text} }})")
        assert "</script" not in text.lower(), script.name
        with pytest.raises(quickjs.JSException):
            quickjs.Context().eval(f"(async function () {{ {text} }} }})")


def test_examples():
    assert doctest.testmod(kit) == doctest.TestResults(failed=0, attempted=2)


def test_signs():
    assert typeset("or 25 % of it") == "or 25\u00a0% of it"
    assert typeset("4.5 ± 0.1 and mean ± deviation") == "4.5\u00a0±\u00a00.1 and mean ± deviation"


@needs("chromium")
def test_a_page_without_scripts_of_its_own_works(tab, tmp_path):
    (tmp_path / "page.html").write_text(page(), encoding="utf-8")
    shown = tab.open(tmp_path / "page.html")
    assert shown.inner_text("h1") == EVIL
    shown.locator("#table-small th:nth-child(2) button").click()
    shown.locator("#table-small th:nth-child(2) button").click()
    assert shown.locator("#table-small td:nth-child(2)").all_inner_texts() == ["2.00", "0.50"]
    with shown.expect_download() as download:
        shown.locator("button[data-table=small]").click()
    assert download.value.suggested_filename == "small.csv"
    shown.locator("nav a", has_text="Two").click()
    assert shown.evaluate("location.hash") == "#at=two"
