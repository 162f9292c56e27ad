"""The page of a study that is being run: what is served to whom, and that an open page follows the store."""

import contextlib
import doctest
import http.client
import json
import re
import threading

import pytest
from support.browser import Tab, wait_until
from support.external_tools import needs
from support.synthetic_study import add, spec

from focalcal.lab.evidence import evidence
from focalcal.lab.report import live_report
from focalcal.lab.report.live_report import Activity, CellShare, LiveReport, seconds_left
from focalcal.lab.report.live_server import LiveServer, serve
from focalcal.lab.store import Store

CELLS = [spec(objective, seed) for seed in (0, 1) for objective in ("ce", "fcl")]


class Clock:
    def __init__(self):
        self.now = 0.0

    def __call__(self):
        return self.now


@pytest.fixture
def store(tmp_path):
    return Store(tmp_path / "runs")


@pytest.fixture
def server(store):
    with serve(LiveReport([store], specs=CELLS, title="A study")) as started:
        yield started


def answer(server, path, *, method="GET", host=None):
    connection = http.client.HTTPConnection("127.0.0.1", server.server_port, timeout=30)
    connection.request(method, path, headers={"Host": host} if host else {})
    response = connection.getresponse()
    return response, response.read()


def test_the_page_and_its_progress_are_served_behind_the_token(server, store):
    add(store, CELLS[0])
    root = f"/{server.token}/"
    response, content = answer(server, root)
    assert response.status == 200
    assert b"<title>A study</title>" in content
    [policy] = response.headers.get_all("Content-Security-Policy")
    [stated] = re.findall(rb'<meta http-equiv="Content-Security-Policy" content="([^"]*)">', content)
    assert policy == f"{stated.decode()}; frame-ancestors 'none'"
    assert re.search(r"script-src( 'sha256-[\w+/]{43}=')+;", policy)
    assert "connect-src 'self'" in policy
    assert response.headers["Cache-Control"] == "no-store"
    response, content = answer(server, f"{root}progress")
    assert response.headers["Content-Security-Policy"] == "default-src 'none'; frame-ancestors 'none'"
    progress = json.loads(content)
    assert (progress["done"], progress["cells"], progress["state"]) == (1, 4, "watching")
    response, content = answer(server, root, method="HEAD")
    assert (response.status, content) == (200, b"")
    assert answer(server, root, host=f"localhost:{server.server_port}")[0].status == 200


def test_nothing_else_is_served_and_nobody_else_is_answered(server):
    root = f"/{server.token}/"
    assert server.server_address[0] == "127.0.0.1"
    for path in ("/", "/progress", "/wrong/", f"{root}../", f"{root}runs", f"{root}?x", root.rstrip("/"), "/%00"):
        response, content = answer(server, path)
        assert (response.status, content) == (404, b""), path
    for host in ("evil.example", f"evil.example:{server.server_port}", "127.0.0.1", "127.0.0.1:1"):
        assert answer(server, root, host=host)[0].status == 403, host
    for method in ("POST", "OPTIONS"):
        assert answer(server, root, method=method)[0].status == 501
    own = f"127.0.0.1:{server.server_port}"
    for hosts in ([own, "evil.example"], ["evil.example", own], [own, own]):  # in either order
        connection = http.client.HTTPConnection("127.0.0.1", server.server_port, timeout=30)
        connection.putrequest("GET", root, skip_host=True)
        for host in hosts:
            connection.putheader("Host", host)
        connection.endheaders()
        response = connection.getresponse()
        assert (response.status, response.read()) == (400, b""), hosts


def test_two_hundred_connections_at_once_all_get_the_page(store):
    """They are made before the first is accepted: what the kernel does not keep waiting is not connected."""
    add(store, CELLS[0])
    with contextlib.ExitStack() as opened:
        server = opened.enter_context(LiveServer(LiveReport([store], title="A study")))
        connections = []
        for _ in range(200):
            connection = http.client.HTTPConnection("127.0.0.1", server.server_port, timeout=30)
            opened.callback(connection.close)
            connection.connect()
            connection.request("GET", f"/{server.token}/")
            connections.append(connection)
        threading.Thread(target=server.serve_forever, daemon=True).start()
        opened.callback(server.shutdown)
        answers = [connection.getresponse() for connection in connections]
        assert {response.status for response in answers} == {200}
        assert {response.read() for response in answers} == {server.report.page()}


def test_a_new_version_is_told_of_after_a_pause_and_at_the_end_at_once(store):
    clock, state = Clock(), ["running"]
    live = LiveReport([store], specs=CELLS, clock=clock, activity=lambda: Activity(state[0]))
    live.page()
    first = live.progress()["version"]
    add(store, CELLS[0])
    clock.now = 3.0
    progress = live.progress()
    assert (progress["done"], progress["version"]) == (1, first)
    clock.now = 6.0
    second = live.progress()["version"]
    assert second != first
    live.page()
    assert live.progress()["version"] == second
    add(store, CELLS[1])
    state[0], clock.now = "finished", 8.0
    assert live.progress()["version"] not in (first, second)


def test_a_run_is_read_once(store, monkeypatch):
    read, really = [], evidence._read
    monkeypatch.setattr(evidence, "_read", lambda run, *args, **kw: read.append(run.key) or really(run, *args, **kw))
    clock = Clock()
    live = LiveReport([store], specs=CELLS, clock=clock)
    for cell in CELLS[:3]:
        add(store, cell)
        clock.now += 100
        assert cell.key.encode() in live.page()
    assert read == [cell.key for cell in CELLS[:3]]


def test_failures_and_running_cells_are_told(store):
    store.record_failure(CELLS[1], kind="out of memory", message="no room")
    activity = Activity("running", (CellShare("digits ce seed 0", 0.25, "epoch 1 of 4"),), 30.0)
    progress = LiveReport([store], specs=CELLS, activity=lambda: activity).progress()
    [failure] = progress["failures"]
    assert failure["message"] == "out of memory: no room"
    assert "fcl" in failure["name"]
    assert progress["running"] == [{"name": "digits ce seed 0", "share": 0.25, "note": "epoch 1 of 4"}]
    assert progress["seconds_left"] == 30.0


def test_the_time_left_follows_from_when_cells_were_finished():
    assert doctest.testmod(live_report) == doctest.TestResults(failed=0, attempted=1)
    assert seconds_left([100.0], 3, now=101.0) is None  # one does not tell how fast they are
    assert seconds_left([100.0, 110.0], 3, now=500.0) is None  # nobody seems to run them
    assert seconds_left([100.0, 110.0], 0, now=111.0) is None
    assert seconds_left([0.0, *range(100, 110)], 4, now=109.0) == 4.0  # the last ten


@needs("chromium")
def test_an_open_page_follows_the_store_and_stays_as_the_reader_has_it(chrome, store, monkeypatch):
    monkeypatch.setattr(live_report, "_PAUSE", 0.0)
    monkeypatch.setattr(live_report, "_COSTS", 0)
    for cell in CELLS[:2]:
        add(store, cell)
    tab = Tab(chrome)
    with serve(LiveReport([store], specs=CELLS, title="A study")) as server:
        page = tab.page
        page.goto(server.url)
        wait_until(page, "document.getElementById('live-count').textContent.startsWith('2 of 4')")
        assert page.title() == "(2/4) A study"
        page.locator("#metric label", has_text="NLL").click()
        page.locator("#table-runs th button").first.click()
        page.locator("#tables details").first.evaluate("fold => { fold.open = true; }")
        page.locator("#live summary").click()
        page.locator("nav a", has_text="Reliability").click()
        wait_until(page, "Math.abs(document.getElementById('reliability').getBoundingClientRect().top) < 120")
        page.locator("#chart-reliability [data-name=fcl]").focus()
        sorted_by = page.locator("#table-runs th[aria-sort=ascending]").inner_text()
        page.evaluate("window.before = true")
        add(store, CELLS[2])
        wait_until(page, "!window.before && Charts.made('dots')")  # it was loaded anew
        assert page.evaluate("location.hash") == "#at=reliability&metric=nll"
        assert page.locator("#metric input:checked").input_value() == "nll"
        assert len(page.evaluate("Charts.made('dots')")["rows"]) == 3
        wait_until(page, "document.getElementById('live-count').textContent.startsWith('3 of 4')")
        top = page.locator("#reliability").evaluate("section => section.getBoundingClientRect().top")
        assert abs(top) < 120
        assert page.locator("#live details").get_attribute("open") is not None
        assert page.locator("#tables details").first.get_attribute("open") is not None
        assert page.locator("#table-runs th[aria-sort=ascending]").inner_text() == sorted_by
        assert page.evaluate("document.activeElement.dataset.name") == "fcl"
        add(store, CELLS[3])
        wait_until(page, "document.getElementById('live').classList.contains('ended')")
        wait_until(page, "document.getElementById('live-count').textContent.includes('the study has ended')")
        assert {address.rpartition("/")[0] + "/" for address in tab.asked} == {server.url}
        server.wait_for_pages()
    tab.context.close()
    assert (tab.complaints, tab.dialogs) == ([], [])


@needs("chromium")
def test_a_page_whose_server_has_ended_says_so_and_can_still_be_used(chrome, store):
    add(store, CELLS[0])
    tab = Tab(chrome)
    with serve(LiveReport([store], title="A study")) as server:
        tab.page.goto(server.url)
        tab.page.wait_for_selector("#live:not([hidden])")
    wait_until(tab.page, "document.getElementById('live-left').textContent.includes('server has ended')")
    tab.page.locator("#metric label", has_text="NLL").click()
    assert tab.page.evaluate("Charts.made('dots').title").startswith("NLL")
    tab.context.close()
    assert all("ERR_CONNECTION_REFUSED" in complaint for complaint in tab.complaints)
