"""The page of an audit in Chromium: nothing cut, nothing blank, the same digits everywhere, and on paper."""

import json

import numpy as np
import pytest
from scipy.special import expit
from support.browser import Tab, chromium, wait_until

from focalcal.auditing import audit
from focalcal.pages import pdf
from focalcal.posthoc import load_calibrator
from focalcal.predictions import Predictions

CHARTS = {"rare": 5, "classes": 5, "clustered": 6}


def binary(rows, base, **more):
    draws = np.random.default_rng(0)
    x = base + 1.2 * draws.normal(size=rows)
    happened = draws.random(rows) < expit(x + 0.7)
    return Predictions(probs=expit(x), labels=happened.astype(int), split="test", **more)


def classes():
    draws = np.random.default_rng(0)
    logits = 2 * draws.normal(size=(2000, 4))
    labels = np.argmax(logits / 1.7 + draws.gumbel(size=logits.shape), axis=1)
    groups = {"site": draws.choice(["north", "south"], 2000), "age": draws.choice(["old", "young"], 2000)}
    about = {"classes": ["ant", "bee", "cat", "dog"], "provenance": {"model": "resnet20"}}
    return Predictions(logits=logits, labels=labels, split="test", groups=groups, **about)


@pytest.fixture(scope="module")
def audits():
    rows = 3000
    day = np.datetime64("2025-01-01") + np.arange(rows) * 365 // rows
    sampled = {"clusters": np.arange(rows) % 100, "times": day, "weights": 1.0 + np.arange(rows) % 3}
    return {
        "rare": audit(binary(12_000, -6, groups=np.arange(12_000) % 2), calibrate="platt", resamples=100),
        "classes": audit(classes(), calibrate="temperature", resamples=100),
        "clustered": audit(
            binary(rows, -1, groups=np.arange(rows) % 3, **sampled),
            calibrate=["platt", "temperature"], cost="fp=1,fn=5", resamples=100,
        ),
    }  # fmt: skip


@pytest.fixture(scope="module")
def browser():
    with chromium() as started:
        yield started


@pytest.mark.parametrize("which", CHARTS)
@pytest.mark.parametrize("width", [1400, 390])
def test_nothing_is_cut_and_every_chart_is_drawn(which, width, audits, browser, tmp_path):
    audits[which].html(tmp_path / "audit.html")
    tab = Tab(browser, width=width)
    page = tab.open(tmp_path / "audit.html")
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    for at, chart in enumerate(page.locator(".chart").all()):
        chart.scroll_into_view_if_needed()
        wait_until(page, f"document.querySelectorAll('.chart')[{at}].querySelector('svg').children.length > 3")
    assert page.locator(".chart svg").count() == CHARTS[which]
    if width == 1400:
        scrolled = "[...document.querySelectorAll('.scroll')].filter((box) => box.scrollWidth > box.clientWidth + 1)"
        assert page.evaluate(f"{scrolled}.map((box) => box.ariaLabel)") == []
        ends = (
            "[...document.querySelectorAll('.pair')].map((pair) => [...pair.children].map((part) => part.clientWidth))"
        )
        assert min(width for widths in page.evaluate(ends) for width in widths) > 350
    tab.check()


def test_headline_figures_and_table_have_the_same_digits(audits, browser, tmp_path):
    audits["clustered"].html(tmp_path / "audit.html")
    page = Tab(browser, width=1400).open(tmp_path / "audit.html")
    cells = page.evaluate("[...document.querySelectorAll('#table-metrics td')].map((cell) => cell.textContent)")
    headline = page.inner_text(".sentence").replace("\N{NO-BREAK SPACE}", " ")
    for name in ("Observed rate", "Predicted rate", "O/E", "Calibration slope"):
        value = cells[cells.index(name) + 1].replace("\N{NO-BREAK SPACE}", " ")
        assert value in headline
    figures = page.evaluate("[...document.querySelectorAll('.figure strong')].map((figure) => figure.textContent)")
    assert set(figures) <= set(cells)


def test_the_page_carries_the_calibrator(audits, browser, tmp_path):
    found = audits["rare"]
    found.html(tmp_path / "audit.html")
    page = Tab(browser, width=1400).open(tmp_path / "audit.html")
    with page.expect_download() as download:
        page.click("#calibrator")
    download.value.save_as(tmp_path / "calibrator.json")
    scores = np.array([[0.9, 0.1], [0.999, 0.001]])
    carried = load_calibrator(tmp_path / "calibrator.json").predict_proba(probs=scores)
    np.testing.assert_array_equal(carried, found.fixes.calibrator.predict_proba(probs=scores))
    assert json.loads((tmp_path / "calibrator.json").read_text()) == json.loads(
        json.dumps(found.fixes.calibrator.record())
    )


def test_it_prints_without_splitting_a_paragraph(audits, browser, tmp_path):
    audits["clustered"].html(tmp_path / "audit.html")
    page = Tab(browser, width=1400).open(tmp_path / "audit.html")
    page.emulate_media(media="print")
    broken = page.evaluate(
        "[...document.querySelectorAll('p, li, tr, .chart')].map((e) => getComputedStyle(e).breakInside)"
    )
    assert set(broken) == {"avoid"}
    assert page.evaluate("document.documentElement.scrollWidth") <= 1400
    audits["clustered"].pdf(tmp_path / "audit.pdf")
    assert (tmp_path / "audit.pdf").read_bytes().startswith(b"%PDF")
    assert (tmp_path / "audit.pdf").stat().st_size > 30_000


def test_without_a_browser_one_sentence_says_what_to_install(audits, monkeypatch, tmp_path):
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr(pdf, "BROWSERS", ("chromium",))
    with pytest.raises(FileNotFoundError, match="none is installed here; install chromium"):
        audits["rare"].pdf(tmp_path / "audit.pdf")
    monkeypatch.setenv("FOCALCAL_BROWSER", "lynx9")
    with pytest.raises(FileNotFoundError, match="FOCALCAL_BROWSER must name a browser, got 'lynx9'"):
        audits["rare"].pdf(tmp_path / "audit.pdf")
    assert not (tmp_path / "audit.pdf").exists()
