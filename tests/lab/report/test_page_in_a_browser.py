"""The study's page in Chromium: clicked, typed at, resized and printed."""

import csv
import io
import math
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from support.browser import Tab, wait_until
from support.external_tools import needs
from support.synthetic_study import add, evidence_of, spec, study_store

from focalcal.lab.report.figures import study_views
from focalcal.lab.report.page_sections import study_page
from focalcal.lab.store import Store
from focalcal.pages.tables import Table

pytestmark = needs("chromium")
EVIL = "<script>alert(1)</script>"
SETTING = "digits/small_cnn"


@pytest.fixture(scope="module")
def evidence(tmp_path_factory):
    store = study_store(tmp_path_factory.mktemp("store"))
    for seed in (0, 1):
        add(store, spec("ce", seed, data_set="letters"))
    return evidence_of(store, details=True)


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
def page(tab, path):
    return opened(tab, path)


def opened(tab, path, fragment=""):
    made = tab.open(path, fragment)
    made.wait_for_selector("#chart-dots .lane")
    return made


def names(page, chart):
    """The lanes or panels of a chart, in order."""
    return page.locator(f"#chart-{chart} [data-name]").evaluate_all("all => all.map((e) => e.dataset.name)")


def seen(page, chart):
    """Scroll to a chart and give the numbers that it shows."""
    page.locator(f"#chart-{chart}").scroll_into_view_if_needed()
    wait_until(page, f"Charts.made('{chart}')")
    return page.evaluate(f"Charts.made('{chart}')")


def means(evidence, metric):
    return {name: np.mean(list(values.values())) for name, values in evidence.values(SETTING, metric).items()}


def test_the_first_screen_shows_every_objective_by_value(page, evidence):
    ece = means(evidence, "ece")
    assert names(page, "dots") == sorted(ece, key=ece.get)
    assert page.locator("#chart-dots .seed").count() == 9
    assert page.locator("#chart-dots .chance").count() == 3
    assert page.locator("#chart-pareto .hollow").count() == 3
    assert page.locator("#chart-pareto .solid").count() == 3
    box = page.locator("#chart-pareto svg").bounding_box()
    assert box["y"] + box["height"] < 900  # in a window of 900 pixels
    shown = seen(page, "dots")
    run = evidence.of(SETTING, "fcl")[1]
    assert ["fcl", 1, run.metrics["test"]["ece"]] in [row[:3] for row in shown["rows"]]


def test_switching_the_metric_sorts_and_draws_again(page, evidence):
    page.locator("#metric label", has_text="NLL").click()
    nll = means(evidence, "nll")
    assert names(page, "dots") == sorted(nll, key=nll.get)
    assert page.evaluate("location.hash") == "#metric=nll"
    assert "log-likelihood" in page.inner_text("#metric-meaning")
    assert seen(page, "forest")["title"] == f"FCL minus each baseline, NLL on {SETTING}"
    page.locator("nav a", has_text="Training").click()  # links keep what is chosen
    assert page.evaluate("location.hash") == "#at=training&metric=nll"
    wait_until(page, "Math.abs(document.getElementById('training').getBoundingClientRect().top) < 120")
    page.locator("#metric label", has_text="smECE").click()
    assert "smECE was not tested; this is ECE." in page.inner_text("#chart-forest .said")


def test_a_chosen_objective_stands_out_everywhere(page):
    assert page.locator("#chart-dots .candidate").all_text_contents() == ["FCL"]
    assert "FCL" in page.locator("#chart-pareto .name").all_text_contents()
    page.locator("#chart-dots [data-name=fcl]").click()
    seen(page, "forest")
    assert names(page, "forest")
    assert page.locator("#chart-forest .dim").count() == 0  # the candidate is in every difference
    page.locator("#chart-dots [data-name=focal]").click()
    assert page.evaluate("location.hash") == "#objective=focal"
    assert page.input_value("#objective") == "focal"
    for chart in ("dots", "pareto", "reliability", "slopes", "training"):
        seen(page, chart)
        dim = f"[...document.querySelectorAll('#chart-{chart} .dim[data-name]')].map((e) => e.dataset.name)"
        wait_until(page, f"[...new Set({dim})].sort().join() === 'ce,fcl'")  # drawn anew when it comes into sight
    seen(page, "dots")
    page.locator("#chart-dots [data-name=focal]").press("Enter")  # once more
    wait_until(page, "!document.querySelector('#chart-dots .dim')")
    assert page.evaluate("location.hash") == ""


def test_the_charts_begin_where_the_sentence_does_and_its_settings_can_be_pressed(tab, tmp_path):
    store = Store(tmp_path / "store")
    for data_set, fcl in (("alpha", 1.4), ("beta", 0.9)):  # better than cross-entropy by less, and by more
        for seed in (0, 1):
            add(store, spec("ce", seed, data_set=data_set), sharpness=2.0)
            add(store, spec("fcl", seed, data_set=data_set), sharpness=fcl)
    path = tmp_path / "two.html"
    path.write_text(study_page(evidence_of(store, temperature="validation")), encoding="utf-8")
    page = opened(tab, path)
    assert page.locator(".sentence .setting").all_text_contents() == ["beta/small_cnn", "alpha/small_cnn"]
    assert page.input_value("#setting") == "beta/small_cnn"
    page.locator(".sentence .setting", has_text="alpha").click()
    assert page.input_value("#setting") == "alpha/small_cnn"
    assert page.evaluate("location.hash") == "#setting=alpha%2Fsmall_cnn"
    assert page.locator(".sentence [aria-pressed=true]").all_text_contents() == ["alpha/small_cnn"]
    # Scaled on the validation rows there are two states, of the same rows.
    assert page.locator("#scaling label").all_text_contents() == ["as trained", "temperature-scaled"]
    page.locator("#scaling label", has_text="temperature-scaled").click()
    assert sum(row[5] for row in seen(page, "reliability")["rows"] if row[0] == "ce") == 800


def test_a_known_posterior_is_shown_whatever_setting_is_chosen(tab, tmp_path):
    store = Store(tmp_path / "store")
    add(store, spec("ce", 0))
    add(store, spec("ce", 0, data_set="teacher"), known=True)
    path = tmp_path / "known.html"
    path.write_text(study_page(evidence_of(store, details=True)), encoding="utf-8")
    page = opened(tab, path)
    shown = seen(page, "posterior")
    assert {row[0] for row in shown["rows"]} == {"ce"}
    assert shown["title"] == "Predicted against true probability on teacher/small_cnn"
    assert "digits/small_cnn has no known posterior; this is teacher" in page.inner_text("#chart-posterior .said")
    page.select_option("#setting", "teacher/small_cnn")
    assert page.inner_text("#chart-posterior .said") == ""


def test_a_view_can_be_sent(tab, path, evidence):
    page = opened(tab, path, "metric=brier&objective=fcl&other=ce&scaling=after&at=reliability")
    assert page.locator("#metric input:checked").input_value() == "brier"
    wait_until(page, "scrollY > 500")  # it scrolls smoothly
    large = page.evaluate("Charts.made('large')")
    assert large["title"] == "Reliability of FCL and Cross-entropy"
    run = [one.scaled.reliability_after.count for one in evidence.of(SETTING, "fcl")]
    assert sum(row[5] for row in large["rows"] if row[0] == "fcl") == np.sum(run)
    page = opened(tab, path, "metric=nonsense&objective=nobody&setting=letters/small_cnn")
    assert page.locator("#metric input:checked").input_value() == "ece"
    assert names(page, "dots") == ["ce"]


def test_the_forest_shows_the_differences_and_training_the_means_and_a_lines_seeds(page, evidence):
    shown = seen(page, "forest")
    assert list(dict.fromkeys(row[0] for row in shown["rows"])) == names(page, "forest")
    values = evidence.values(SETTING, "ece")
    found = [row[:3] for row in shown["rows"] if row[0] == "ce"]
    assert found == [["ce", seed, values["fcl"][seed] - values["ce"][seed]] for seed in (0, 1, 2)]
    assert "too few seeds to tell: 2" in page.inner_text("#chart-forest .said")
    assert page.locator("#chart-forest .seed").count() == 6
    labels = page.locator("#chart-forest text").all_text_contents()
    assert any("better" in text for text in labels)
    assert any("worse" in text for text in labels)
    page.select_option("#series", "train loss")
    assert [row[2] for row in seen(page, "training")["rows"][:2]] == [1, 0.5]
    assert page.locator("#chart-training .seedline").count() == 0
    page.locator("#chart-training .cover").hover()
    assert page.locator("#chart-training .seedline").count() == 3
    assert "seed 2" in page.inner_text(".tip")
    sizes = page.evaluate(
        "[1, 5, 6, 7, 9, 10, 13].map((count) => [1240, 680, 366].map((width) => Panels.layout(width, count).columns))"
    )  # rows of nearly equal length
    assert sizes == [[1, 1, 1], [5, 5, 2], [6, 3, 2], [4, 4, 2], [5, 5, 2], [5, 5, 2], [5, 5, 2]]


def test_reliability_follows_temperature_and_class(page, evidence):
    shown = seen(page, "reliability")
    assert sum(row[5] for row in shown["rows"] if row[0] == "ce") == 1200
    page.locator("#scaling label", has_text="scaled, that half").click()
    assert sum(row[5] for row in seen(page, "reliability")["rows"] if row[0] == "ce") == 600
    page.locator("#scaling label", has_text="as trained, all rows").click()
    page.select_option("#class", "2")
    shares = [run.details.classes[2] for run in evidence.of(SETTING, "ce")]
    right = sum(float(np.nansum(each.count * each.accuracy)) for each in shares)
    rows = [row for row in seen(page, "reliability")["rows"] if row[0] == "ce"]
    assert sum(row[5] * row[7] for row in rows) == pytest.approx(right)
    assert not page.locator("#epoch-control").is_visible()  # no run has stored them


def test_the_slider_goes_through_the_epochs(tab, evidence, tmp_path):
    def with_bins(run):
        counts = [[0] * 14 + [400], [200, *[0] * 13, 200]]
        bins = [
            {"count": one, "confidence": [0.9 * n for n in one], "correct": [n // 2 for n in one]} for one in counts
        ]
        return replace(run, epochs=[{"epoch": at + 1, "bins": one} for at, one in enumerate(bins)])

    (tmp_path / "epochs.html").write_text(
        study_page(replace(evidence, runs=tuple(map(with_bins, evidence.runs)))), encoding="utf-8"
    )
    page = opened(tab, tmp_path / "epochs.html", "at=reliability")
    assert page.inner_text("#epoch-shown") == "2 of 2"
    page.locator("#epoch").press("ArrowLeft")
    assert page.evaluate("location.hash") == "#at=reliability&epoch=1"
    rows = [row for row in seen(page, "reliability")["rows"] if row[0] == "ce"]
    assert [row[5:8] for row in rows] == [[1200, 0.9, 0.5]]


def test_headings_sort_by_mouse_and_by_keyboard(page):
    def column(place):
        return page.locator(f"#table-small tbody td:nth-child({place})").all_inner_texts()

    heading = page.locator("#table-small th:nth-child(2)")
    assert column(1) == ["b", "a", "c", "d"]
    heading.locator("button").click()
    assert column(1) == ["d", "b", "a", "c"]  # -1.5, 9.04, 10.01, then what is missing
    assert heading.get_attribute("aria-sort") == "ascending"
    page.keyboard.press("Enter")  # the button has the focus
    assert column(1) == ["a", "b", "d", "c"]
    page.keyboard.press("Space")
    assert column(1) == ["b", "a", "c", "d"]
    assert heading.get_attribute("aria-sort") == "none"
    page.locator("#table-small th:nth-child(3) button").click()
    assert column(3) == ["1 of 3", "2 of 3", "10 of 3", "-"]
    page.locator("#table-small th:nth-child(4) button").click()
    assert column(1) == ["b", "c", "a", "d"]  # 9, 10, infinity, then NaN


def test_what_is_downloaded_is_what_was_measured(page, evidence):
    def saved(selector):
        with page.expect_download() as download:
            page.locator(selector).click()
        return download.value.suggested_filename, Path(download.value.path()).read_bytes()

    name, content = saved("button[data-csv=metrics]")
    assert name == "metrics.csv"
    rows = list(csv.DictReader(io.StringIO(content.decode())))
    run = evidence.runs[0]
    (ece,) = (
        float(row["value"])
        for row in rows
        if (row["key"], row["split"], row["scaling"], row["metric"]) == (run.key, "test", "none", "ece")
    )
    assert ece == run.metrics["test"]["ece"]
    name, content = saved("#table-small button[data-table]")
    assert (name, content.decode().splitlines()[:2]) == ("small.csv", ["name,value,text,endless", "b,9.04,2 of 3,9.0"])
    name, content = saved("#chart-dots .tools button:nth-child(1)")
    assert name == "dots.csv"
    assert len(content.decode().splitlines()) == 10
    name, content = saved("#chart-dots .tools button:nth-child(2)")
    assert name == "dots.svg"
    assert b"var(--" not in content.split(b"style=")[0]
    assert content.startswith(b"<svg")
    name, content = saved("#chart-dots .tools button:nth-child(3)")
    assert (name, content[:4]) == ("dots.png", b"\x89PNG")
    made = page.evaluate("Downloads.csv([['=1+1', '@a', -0.5], ['-b', '-Infinity', 'a,\"b\"'], [null, NaN, 2]])")
    assert list(csv.reader(io.StringIO(made))) == [  # no formulas, and negative numbers
        ["'=1+1", "'@a", "-0.5"],
        ["'-b", "-Infinity", 'a,"b"'],
        ["", "", "2"],
    ]


def test_colours_follow_the_system_until_chosen_are_remembered_and_light_in_print(tab, path):
    page = opened(tab, path)
    ground = "getComputedStyle(document.body).backgroundColor"
    assert page.evaluate(ground) == "rgb(255, 255, 255)"
    page.emulate_media(color_scheme="dark")
    wait_until(page, f"{ground} === 'rgb(20, 23, 27)'")
    page.locator("#theme").click()
    assert page.inner_text("#theme") == "Theme: light"
    assert page.evaluate(ground) == "rgb(255, 255, 255)"
    # Not opened anew: another process of the browser may then read what this one stored before it is there.
    page.reload()
    page.wait_for_selector("#chart-dots .lane")
    assert page.inner_text("#theme") == "Theme: light"
    page.locator("#theme").click()
    assert page.evaluate(ground) == "rgb(20, 23, 27)"
    page.evaluate(
        "window.addEventListener('beforeprint', () => { window.printed = [document.documentElement.dataset.colours,"
        "[...document.querySelectorAll('.chart:not([hidden]) svg')].every((e) => e.childElementCount)]; })"
    )
    assert page.pdf(prefer_css_page_size=True).startswith(b"%PDF")
    assert page.evaluate("printed") == ["light", True]  # with all charts
    wait_until(page, "document.documentElement.dataset.colours === 'dark'")


def test_the_keyboard_reaches_everything_in_order_terms_say_what_they_mean_and_links_open_runs(page, evidence):
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.className") == "skip"
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.id") == "theme"
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.getAttribute('href')") == "#result"
    unreachable = "all => all.filter((e) => e.tabIndex < 0).length"
    assert page.locator("button, select, input, summary, a, [role=button]").evaluate_all(unreachable) == 0
    unnamed = "all => all.filter((e) => !e.textContent.trim() && !e.ariaLabel).length"
    assert page.locator("button, [role=button]").evaluate_all(unnamed) == 0
    page.locator("#metric label", has_text="Brier").hover()
    assert page.inner_text(".tip").startswith("Brier score: the mean squared distance")
    page.locator(".term", has_text="what chance gives").focus()
    assert "perfectly calibrated" in page.inner_text(".tip")
    page.keyboard.press("Escape")
    assert not page.locator(".tip").is_visible()
    said = page.locator("#chart-dots .lane").first.get_attribute("aria-label")
    assert "mean" in said
    assert "over 3 seeds" in said
    key = evidence.runs[0].key
    assert not page.locator(f"#run-{key}").is_visible()
    page.locator(f"#table-runs a[href='#run-{key}']").click()
    assert page.locator(f"#run-{key}").get_attribute("open") is not None
    assert "spec.seed" in page.inner_text(f"#run-{key}")


@pytest.mark.parametrize("width", [320, 1200])
def test_nothing_is_wider_than_the_window(chrome, path, width):
    tab = Tab(chrome, width=width)
    page = opened(tab, path)
    for chart in ("dots", "pareto", "forest", "reliability", "slopes", "training"):
        seen(page, chart)
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    tab.context.close()
    tab.check()


def test_a_grid_has_a_surface(tab, tmp_path):
    store = Store(tmp_path / "store")
    for gamma in (1.0, 3.0):
        for lam in (0.0, 0.5, 1.0):
            if (gamma, lam) != (3.0, 0.5):
                add(store, spec("fcl", 0, gamma=gamma, lam=lam), changed={"ece": gamma / 100 + lam / 1000})
    path = tmp_path / "grid.html"
    grid = evidence_of(store, title="A grid")
    points, curve = {SETTING: (3.0, 1.0)}, {SETTING: [(1.0, 0.25), (3.0, 1.0)]}
    views = study_views(grid, operating_points=points, operating_curves=curve)
    path.write_text(study_page(grid, views=views), encoding="utf-8")
    page = opened(tab, path)
    shown = seen(page, "surface")
    values = [row[2] for row in shown["rows"]]
    assert values[:3] == pytest.approx([1.0, 1.05, 1.1])
    assert values[3] == pytest.approx(3.0)
    assert page.locator("#chart-surface .heat.missing").count() == 1
    said = page.inner_text("#chart-surface .said")
    assert "Lowest (star) at gamma 1, lam 0." in said
    assert "Operating point (frame) at gamma 3, lam 1." in said
    cells = page.locator("#chart-surface .heat").nth(5).bounding_box()  # gamma 3, lam 1
    frame = page.locator("#chart-surface .operating").bounding_box()
    assert abs(frame["x"] + frame["width"] / 2 - cells["x"] - cells["width"] / 2) < 2
    assert abs(frame["y"] + frame["height"] / 2 - cells["y"] - cells["height"] / 2) < 2
    line = page.locator("#chart-surface .operating-curve.over").bounding_box()
    assert abs(line["x"] + line["width"] - frame["x"] - frame["width"] / 2) < 2  # it ends at lam 1
    assert abs(line["width"] - 1.5 * cells["width"]) < 4  # having begun between 0 and 0.5
    page.select_option("#surface", "fcl nll")
    assert page.inner_text("#chart-surface .said").startswith("NLL of fcl")


def test_of_many_objectives_the_best_are_shown_until_all_are_asked_for(tab, tmp_path):
    store = Store(tmp_path / "store")
    for number in range(30):
        add(store, spec("fcl", 0, gamma=1.0, lam=float(number)), rows=40, changed={"ece": 0.3 - number / 200})
    path = tmp_path / "many.html"
    path.write_text(study_page(evidence_of(store, title="Many")), encoding="utf-8")
    page = opened(tab, path)
    assert page.inner_text(".sentence").startswith("FCL lam=29 has the lowest ECE on digits/small_cnn, 15.50 points")
    assert names(page, "dots")[:2] == ["fcl lam=29", "fcl lam=28"]
    assert len(names(page, "dots")) == 24
    assert "6 more objectives are not shown." in page.inner_text("#chart-dots .said")
    page.locator("#lanes").click()
    assert len(names(page, "dots")) == 30
    page.locator("#lanes").click()
    page.select_option("#objective", "fcl lam=0")  # the worst
    assert names(page, "dots")[-1] == "fcl lam=0"


def test_a_name_that_is_a_script_does_nothing(tab, tmp_path):
    store = Store(tmp_path / "store")
    for objective in (EVIL, "<img src=x onerror=alert(2)>", "fcl"):
        for seed in (0, 1):
            add(store, spec(objective, seed, data_set=EVIL, model="</script><b>x</b>"))
    path = tmp_path / "evil.html"
    made = study_page(evidence_of(store, title=EVIL, details=True))
    path.write_text(made, encoding="utf-8")
    page = opened(tab, path)
    page.locator("#chart-dots .lane").first.click()
    for chart in ("forest", "reliability", "slopes", "training"):
        seen(page, chart)
    assert EVIL in names(page, "dots")
    assert page.inner_text("h1") == EVIL
    assert page.locator("main b, main img, main script").count() == 0
