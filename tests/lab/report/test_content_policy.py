"""The Content-Security-Policy of every page: its own scripts run, from a file and from a server, and no others."""

import base64
import hashlib
import re
import threading
from contextlib import contextmanager
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer

import pytest
from paper.theory.theory_page import theory_page
from paper.theory.theory_study import run_study
from support.browser import Tab, wait_until
from support.external_tools import needs
from support.noisy_networks import NoisyNetworks
from support.prediction_samples import sample
from support.small_runs import digits_recipe
from support.synthetic_study import evidence_of, study_store

from focalcal.auditing import audit
from focalcal.lab.report.live_report import LiveReport
from focalcal.lab.report.page_sections import study_page
from focalcal.lab.report.study_tables import all_tables
from focalcal.lab.studies.tuning import tune
from focalcal.pages.page import Page, Section

DRAWN = {  # what a script has made on each page
    "study": "document.querySelectorAll('#chart-dots .lane').length > 2 && Charts.made('pareto')",
    "audit": "document.querySelectorAll('figure.chart svg path').length > 5",
    "tuning": "document.querySelectorAll('#chart-finalists path.point').length > 0",
    "theory": "document.querySelector('#check.good')",
    "live": "document.querySelectorAll('#chart-dots .lane').length > 2 && !document.getElementById('live').hidden",
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Every kind of page, as `NAME.html`."""
    folder = tmp_path_factory.mktemp("pages")
    store = study_store(folder / "runs")
    evidence = evidence_of(store, details=True)
    options = {"objectives": ("fcl", "focal"), "trials": 6, "seeds": 2}
    tune(digits_recipe(), folder / "tuned", executor=NoisyNetworks(), **options).html(folder / "tuning.html")
    audit(sample(600, 4, split="test"), resamples=200).html(folder / "audit.html")
    (folder / "study.html").write_text(study_page(evidence, tables=all_tables(evidence)), encoding="utf-8")
    (folder / "theory.html").write_text(theory_page(run_study(cross_check=False)), encoding="utf-8")
    (folder / "live.html").write_bytes(LiveReport([store], title="A study").page())
    return folder


class Quiet(SimpleHTTPRequestHandler):
    def log_message(self, format, *args):
        pass


@contextmanager
def served(folder):
    """Any server, without headers of its own that could help."""
    with ThreadingHTTPServer(("127.0.0.1", 0), partial(Quiet, directory=folder)) as server:
        threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.1}, daemon=True).start()
        try:
            yield f"http://127.0.0.1:{server.server_port}"
        finally:
            server.shutdown()


def directives(page):
    [policy] = re.findall(r'<meta http-equiv="Content-Security-Policy" content="([^"]*)">', page)
    return {name: sources for name, _, sources in (one.strip().partition(" ") for one in policy.split(";"))}


@pytest.mark.parametrize("name", DRAWN)
def test_the_policy_has_the_hash_of_every_script_and_nothing_else(folder, name):
    page = (folder / f"{name}.html").read_text("utf-8")
    head, *rest = page.split("<script>")
    scripts = [part.partition("</script>")[0] for part in rest]
    assert len(scripts) >= 10
    assert "http-equiv" in head  # a policy holds for what follows it
    hashes = [f"'sha256-{base64.b64encode(hashlib.sha256(one.encode()).digest()).decode()}'" for one in scripts]
    found = directives(page)
    assert found["script-src"].split() == hashes
    assert found["default-src"] == found["base-uri"] == found["form-action"] == "'none'"
    assert found.get("connect-src") == ("'self'" if name == "live" else None)


@needs("chromium")
@pytest.mark.parametrize("name", DRAWN)
def test_every_page_works_from_a_file_without_complaints(folder, tab, name):
    page = tab.open(folder / f"{name}.html")
    wait_until(page, DRAWN[name])
    for section in page.locator("main > section").all():  # charts are drawn when they come into sight
        section.scroll_into_view_if_needed()
    page.emulate_media(color_scheme="dark")
    page.locator("#theme").click()
    if name == "live":
        assert "a copy of a live page" in page.inner_text("#live-left")


@needs("chromium")
def test_a_page_works_from_a_server_without_complaints(folder, chrome):
    name = "study"  # test_live_report.py has more
    tab = Tab(chrome)
    with served(folder) as address:
        tab.page.goto(f"{address}/{name}.html")
        wait_until(tab.page, DRAWN[name])
        for section in tab.page.locator("main > section").all():
            section.scroll_into_view_if_needed()
        asked = [one for one in tab.asked if not one.startswith(("data:", "blob:"))]
        assert {one.partition("#")[0] for one in asked} <= {f"{address}/{name}.html", f"{address}/favicon.ico"}
    tab.context.close()
    assert [complaint for complaint in tab.complaints if "404" not in complaint] == []  # of the icon it asks for


@needs("chromium")
def test_what_gets_into_a_page_does_not_run(chrome, tmp_path):
    page = Page(title="x", sections=[Section("one", "One", "text")]).html()
    worse = "<script>window.ran = 1</script><img src=x: onerror='window.ran = 1'><script src='data:,ran=1'></script>"
    (tmp_path / "page.html").write_text(page.replace("<main>", f"<main>{worse}"), encoding="utf-8")
    tab = Tab(chrome)
    shown = tab.open(tmp_path / "page.html")
    wait_until(shown, "Kit.data !== undefined")
    with pytest.raises(AssertionError):
        tab.check()
    assert shown.evaluate("window.ran") is None
    refused = [complaint for complaint in tab.complaints if "Content Security Policy" in complaint]
    assert len(refused) >= 3, tab.complaints
    tab.context.close()
