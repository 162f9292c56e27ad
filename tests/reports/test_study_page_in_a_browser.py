"""The study's page in Chromium: clicked, typed at, resized and printed."""

import csv
import io
import json
import math
from types import SimpleNamespace

import pytest
from support.external_tools import needs
from support.synthetic_study import add, spec, study_store

from focalcal.analysis.evidence import gather, reading_order
from focalcal.analysis.gaps import EvidenceGap
from focalcal.reports.study_page import study_page
from focalcal.reports.tables import Table
from focalcal.results import Store

pytestmark = needs("chromium")
EVIL = "<script>alert(1)</script>"
DRAWN = "document.querySelectorAll('.chart .main-svg').length > 0"


@pytest.fixture
def browser(tab):
    return tab


@pytest.fixture(scope="module")
def evidence(tmp_path_factory):
    store = study_store(tmp_path_factory.mktemp("store"))
    for seed in (0, 1):
        add(store, spec("ce", seed, data_set="letters"))
    return gather(reading_order(store.runs()), title="A study")


@pytest.fixture(scope="module")
def path(evidence, tmp_path_factory):
    columns = {
        "name": ["b", "a", "c", "d"],
        "value": [9.04, 10.01, None, -1.5],
        "text": ["2 of 3", "10 of 3", "1 of 3", "-"],
        "endless": [9.0, math.inf, 10.0, math.nan],
    }
    tables = {"small": SimpleNamespace(title="Small", table=Table(columns), note="A note.")}
    path = tmp_path_factory.mktemp("page") / "report.html"
    path.write_text(study_page(evidence, tables=tables), encoding="utf-8")
    return path


@pytest.fixture
def page(browser, path):
    browser.prefers("light")
    browser.open(path)
    browser.until(DRAWN)
    yield browser
    assert browser.complaints == []
    assert browser.dialogs == []
    assert {one.partition(":")[0] for one in browser.asked} <= {"file", "blob", "data"}


def column(page, place):
    return page.texts(f"#table-small tbody td:nth-child({place})")


def traces(page, chart):
    return page.evaluate(f"document.getElementById('{chart}-chart').data.length")


def test_the_charts_are_drawn(page):
    assert page.evaluate("document.querySelectorAll('.chart').length") == 2  # no grid, so no surface
    assert page.evaluate("[...document.querySelectorAll('.chart')].every((c) => c.querySelector('svg.main-svg'))")
    assert traces(page, "reliability") == 1 + 3  # the diagonal; line, marks and counts of one run
    assert traces(page, "curves") == 9  # three objectives, three seeds, one setting
    assert page.evaluate("document.querySelectorAll('#curves-chart .scatterlayer .trace').length") == 9


def test_headings_sort_by_mouse_and_by_keyboard(page):
    heading = "#table-small th:nth-child(2)"
    sorting = f"document.querySelector('{heading}').getAttribute('aria-sort')"
    assert column(page, 1) == ["b", "a", "c", "d"]
    page.click(f"{heading} button")
    assert column(page, 1) == ["d", "b", "a", "c"]  # -1.5, 9.04, 10.01, then what is missing
    assert page.evaluate(sorting) == "ascending"
    page.press("Enter")  # the button has the focus
    assert column(page, 1) == ["a", "b", "d", "c"]
    assert page.evaluate(sorting) == "descending"
    page.press(" ")
    assert column(page, 1) == ["b", "a", "c", "d"]
    assert page.evaluate(sorting) == "none"
    page.click("#table-small th:nth-child(3) button")
    assert column(page, 3) == ["1 of 3", "2 of 3", "10 of 3", "-"]
    page.click("#table-small th:nth-child(4) button")
    assert column(page, 1) == ["b", "c", "a", "d"]  # 9, 10, infinity, then NaN
    assert page.evaluate(sorting) == "none"


def test_choosing_shows_another_diagram(page, evidence):
    said = page.text("#reliability-said")
    assert said.startswith("digits/small_cnn, seed 0, not scaled")
    page.choose("#reliability-objective", str(evidence.objectives.index("fcl")))
    page.choose("#reliability-seed", "2")
    page.click("input[name=reliability-state][value=after]")
    run = evidence.of("digits/small_cnn", "fcl")[2]
    said = page.text("#reliability-said")
    assert f"ECE {100 * run.scaled.after['ece']:.3g} %" in said
    assert f"T = {run.scaled.temperature:.3g}" in said
    counts = page.evaluate("document.getElementById('reliability-chart').data[3].y")
    assert counts == [one for one in run.scaled.reliability_after.count.tolist() if one]
    page.choose("#reliability-other", str(evidence.objectives.index("ce")))
    assert traces(page, "reliability") == 1 + 2 * 3
    page.choose("#reliability-setting", "1")
    assert page.texts("#reliability-objective option") == ["ce"]
    assert page.texts("#reliability-seed option") == ["0", "1"]


def test_every_chart_has_a_table_and_says_what_it_shows(page):
    page.click("#reliability .alternative summary")
    assert len(page.texts("#reliability-table tbody tr")) > 3
    assert page.evaluate("document.getElementById('reliability-chart').getAttribute('aria-label')") == page.text(
        "#reliability-said"
    )
    page.click("#curves .alternative summary")
    assert len(page.texts("#curves-table tbody tr")) == 9


def test_training_curves_follow_the_choice(page):
    page.choose("#curves-series", "train loss")
    page.choose("#curves-seed", "1")
    assert traces(page, "curves") == 3
    assert page.evaluate("document.getElementById('curves-chart').data[0].y") == [1, 0.5]
    assert page.evaluate("document.getElementById('curves-chart').layout.yaxis.type") == "log"
    page.click("#curves-log")
    assert page.evaluate("document.getElementById('curves-chart').layout.yaxis.type") != "log"


def test_colours_follow_the_system_until_chosen_and_are_remembered(page, path):
    ground = "getComputedStyle(document.body).backgroundColor"
    paper = "document.getElementById('curves-chart').layout.paper_bgcolor"
    assert page.evaluate(ground) == "rgb(255, 255, 255)"
    page.prefers("dark")
    page.until(f"{ground} === 'rgb(20, 23, 27)' && {paper} === '#14171b'")
    page.click("#theme")
    assert page.text("#theme") == "Colours: light"
    assert page.evaluate(ground) == "rgb(255, 255, 255)"
    page.open(path)
    page.until(DRAWN)
    assert page.text("#theme") == "Colours: light"
    page.click("#theme")
    assert page.evaluate(ground) == "rgb(20, 23, 27)"
    page.click("#theme")
    assert page.text("#theme") == "Colours: as the system"


def test_what_is_downloaded_is_what_was_measured(page, evidence):
    made = page.evaluate(
        "Downloads.content(JSON.parse(document.getElementById('data').textContent), { csv: 'metrics' })"
    )
    assert made[1:] == ["metrics.csv", "text/csv"]
    rows = list(csv.DictReader(io.StringIO(made[0])))
    run = evidence.runs[0]
    (ece,) = (
        float(row["value"])
        for row in rows
        if (row["key"], row["split"], row["scaling"], row["metric"]) == (run.key, "test", "none", "ece")
    )
    assert ece == run.metrics["test"]["ece"]
    table = page.evaluate(
        "Downloads.content(JSON.parse(document.getElementById('data').textContent), { table: 'small' })"
    )
    assert table[0].splitlines()[:2] == ["name,value,text,endless", "b,9.04,2 of 3,9.0"]
    page.evaluate(
        "(() => { window.saved = []; HTMLAnchorElement.prototype.click = function () {"
        "saved.push([this.download, this.href.slice(0, 5)]); }; })()"
    )
    page.click("#table-small button.download")
    assert page.evaluate("saved") == [["small.csv", "blob:"]]


def test_what_is_downloaded_has_no_formulas_and_keeps_negative_numbers(page):
    made = page.evaluate(
        "(() => { const data = JSON.parse(document.getElementById('data').textContent);"
        "data.settings[0] = '=1+1'; data.runs[0].metrics = { test: { '@a': -0.5, '-b': '-Infinity' } };"
        "return Downloads.content({ ...data, runs: data.runs.slice(0, 1) }, { csv: 'metrics' }); })()"
    )
    first, second, *_ = csv.DictReader(io.StringIO(made[0]))
    assert (first["setting"], first["metric"], first["value"]) == ("'=1+1", "'@a", "-0.5")
    assert (second["metric"], second["value"]) == ("'-b", "-Infinity")


def test_the_keyboard_reaches_everything_in_order(page):
    page.press("Tab")
    assert page.evaluate("document.activeElement.className") == "skip"
    page.press("Tab")
    assert page.evaluate("document.activeElement.id") == "theme"
    page.press("Tab")
    assert page.evaluate("document.activeElement.getAttribute('href')") == "#summary"
    unreachable = (
        "[...document.querySelectorAll('button, select, input, summary, a')].filter((e) => e.tabIndex < 0).length"
    )
    assert page.evaluate(unreachable) == 0
    unnamed = (
        "[...document.querySelectorAll('button')]"
        ".filter((e) => !e.textContent.trim() && !e.ariaLabel && !e.title).length"
    )
    assert page.evaluate(unnamed) == 0


def test_a_link_to_a_run_opens_it(page, evidence):
    key = evidence.runs[0].key
    page.click(f"#table-runs a[href='#run-{key}']")
    page.until(f"document.getElementById('run-{key}').open")
    assert "spec.seed" in page.text(f"#run-{key}")


@pytest.mark.parametrize("width", [320, 390, 1200])
def test_nothing_is_wider_than_the_window(page, path, width):
    page.open(path, width=width)
    page.until(DRAWN)
    assert page.evaluate("document.documentElement.scrollWidth") <= width


def test_it_prints_in_light_colours_and_comes_back(page):
    page.prefers("dark")
    page.evaluate(
        "window.addEventListener('beforeprint', () => { window.printed = document.documentElement.dataset.colours; })"
    )
    page.until("document.documentElement.dataset.colours === 'dark'")
    page.evaluate("new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))")
    assert page.pdf().startswith(b"%PDF")
    assert page.evaluate("printed") == "light"
    page.until("document.documentElement.dataset.colours === 'dark'")


def test_a_grid_has_a_surface(browser, tmp_path):
    store = Store(tmp_path / "store")
    for gamma in (1.0, 3.0):
        for lam in (0.0, 0.5, 1.0):
            if (gamma, lam) != (3.0, 0.5):
                add(store, spec("fcl", 0, gamma=gamma, lam=lam), changed={"ece": gamma / 100 + lam / 1000})
    path = tmp_path / "grid.html"
    grid = gather(reading_order(store.runs()), title="A grid")
    path.write_text(study_page(grid, operating_points={"digits/small_cnn": (3.0, 1.0)}), encoding="utf-8")
    browser.open(path)
    browser.until("document.querySelector('#surfaces-chart .heatmaplayer image, #surfaces-chart .heatmaplayer path')")
    lower, upper = browser.evaluate("document.getElementById('surfaces-chart').data[0].z")
    assert lower == pytest.approx([1.0, 1.05, 1.1])
    assert (upper[0], upper[1], upper[2]) == (pytest.approx(3.0), None, pytest.approx(3.1))
    said = browser.text("#surfaces-said")
    assert "Lowest (star) at gamma 1, lam 0." in said
    assert "Operating point (red frame) at gamma 3, lam 1." in said
    texts = browser.evaluate("document.getElementById('surfaces-chart').data[0].text")
    assert [cell.startswith("\N{BLACK STAR}") for row in texts for cell in row] == [True] + [False] * 5
    (frame,) = browser.evaluate("document.getElementById('surfaces-chart').layout.shapes")
    assert (round(frame["x0"]), round(frame["x1"]), round(frame["y0"]), round(frame["y1"])) == (2, 2, 1, 1)
    browser.choose("#surfaces-metric", "2")
    assert browser.text("#surfaces-said").startswith("NLL of fcl")
    assert browser.complaints == []


def test_a_name_that_is_a_script_does_nothing(browser, tmp_path):
    store = Store(tmp_path / "store")
    for objective in (EVIL, "<img src=x onerror=alert(2)>", "fcl"):
        for seed in (0, 1):
            add(store, spec(objective, seed, data_set=EVIL, model="</script><b>x</b>"))
    path = tmp_path / "evil.html"
    path.write_text(study_page(gather(reading_order(store.runs()), title=EVIL)), encoding="utf-8")
    browser.open(path)
    browser.until(DRAWN)
    for place in range(3):
        browser.choose("#reliability-objective", str(place))
        assert f"{EVIL}/</script><b>x</b>, seed 0" in browser.text("#reliability-said")
    legend = json.dumps(
        browser.evaluate("[...document.querySelectorAll('#curves-chart .legendtext')].map((e) => e.textContent)")
    )
    assert EVIL in legend
    assert browser.text("h1") == EVIL
    assert browser.evaluate("document.querySelectorAll('main b, main img, main script').length") == 0
    assert (browser.dialogs, browser.complaints) == ([], [])


def test_a_page_without_runs_works(browser, tmp_path):
    path = tmp_path / "empty.html"
    path.write_text(study_page(gather([], title="Nothing", missing=[EvidenceGap("no runs")])), encoding="utf-8")
    browser.open(path)
    assert "The store holds no whole run." in browser.text("#summary")
    assert browser.complaints == []
