"""The page of a search: the answer first, every trial in it, and drawn in a browser."""

import json
import re

import pytest
from support.external_tools import needs
from support.noisy_networks import NoisyNetworks
from support.small_runs import digits_recipe
from typer.testing import CliRunner

import focalcal.lab.studies
from focalcal.cli.app import app
from focalcal.lab.studies.tuning import tune
from focalcal.lab.studies.tuning.page import tuning_page


@pytest.fixture(scope="module")
def result(tmp_path_factory):
    return tune(
        digits_recipe(),
        tmp_path_factory.mktemp("runs"),
        executor=NoisyNetworks(),
        objectives=("fcl", "focal", "brier"),
        trials=12,
        seeds=2,
    )


def data_of(html):
    return json.loads(re.search(r'<script type="application/json" id="data">(.*?)</script>', html, re.S).group(1))


def test_the_answer_comes_first_and_the_charts_hold_every_trial(result):
    html = tuning_page(result, "Which?")
    sentence, paste = html.index('class="sentence"'), html.index("<code>loss = FocalCalibrationLoss(gamma=")
    assert sentence < paste < html.index("<section")
    assert re.findall(r'<section id="(\w+)"', html) == ["finalists", "surface", "front", "trials"]
    data = data_of(html)
    assert len(data["trials"]) == 12
    for trial, shown in zip(result.trials, data["trials"], strict=True):
        assert shown["score"] == trial.judgement.best("nll")
        dominated = any(
            other.judgement.best("nll") <= shown["score"] and other.judgement.error < shown["error"]
            for other in result.trials
        )
        assert not (shown["front"] and dominated)
        assert {"gamma", "lam"} <= shown.keys() or trial.candidate.objective != "fcl"
    assert any(shown["front"] for shown in data["trials"])
    gains = [finalist.differences(result.baseline, "nll") for finalist in result.finalists]
    others = [gain for gain, finalist in zip(gains, result.finalists, strict=True) if finalist is not result.baseline]
    assert [(lane["low"], lane["high"]) for lane in data["finalists"]] == [(gain.low, gain.high) for gain in others]
    assert data["tables"].keys() == {"finalists", "trials"}


def test_a_search_without_fcl_and_one_that_was_interrupted(tmp_path):
    plain = tune(digits_recipe(), tmp_path / "a", executor=NoisyNetworks(), objectives=("focal",), trials=3, seeds=1)
    assert re.findall(r'<section id="(\w+)"', tuning_page(plain, "x")) == ["finalists", "front", "trials"]
    stopped = tune(
        digits_recipe(), tmp_path / "b", executor=NoisyNetworks(stop_after=4), objectives=("fcl",), trials=9, seeds=1
    )
    html = tuning_page(stopped, "x")
    assert re.findall(r'<section id="(\w+)"', html) == ["surface", "front", "trials"]
    assert "The search was interrupted" in html
    assert "loss = " not in html.partition("<main>")[0].partition("</style>")[2]
    nothing = tune(digits_recipe(), tmp_path / "c", executor=NoisyNetworks(stop_after=0), trials=9, seeds=1)
    assert "No trial was finished." in tuning_page(nothing, "x")


@needs("chromium")
def test_every_chart_is_drawn(result, tab, tmp_path):
    result.html(tmp_path / "tune.html")
    shown = tab.open(tmp_path / "tune.html")
    for name, marks in (("finalists", "path.point"), ("surface", "path.trial"), ("front", "path.candidate")):
        figure = shown.locator(f"#chart-{name}")
        figure.scroll_into_view_if_needed()
        figure.locator("svg").locator(marks).first.wait_for()
    objectives = [trial.candidate.objective for trial in result.trials]
    assert shown.locator("#chart-surface path.trial").count() == objectives.count("fcl")
    assert shown.locator("#chart-front path.candidate").count() == len(objectives) + len(set(objectives))  # and the key


def test_the_command_writes_the_page_and_the_numbers(tmp_path, monkeypatch):
    monkeypatch.setattr(focalcal.lab.studies, "LocalExecutor", lambda *_, **__: NoisyNetworks())
    arguments = ["tune", "digits_small_cnn_lite", "-o", "fcl", "--trials", "5", "--seeds", "2", "--finalists", "1"]
    done = CliRunner().invoke(app, [*arguments, "--store", str(tmp_path / "runs"), "--out", str(tmp_path / "tuned")])
    assert done.exit_code == 0, done.output
    assert done.output.splitlines()[-1] == str(tmp_path / "tuned" / "tune.html")
    record = json.loads((tmp_path / "tuned" / "tune.json").read_text())
    html = (tmp_path / "tuned" / "tune.html").read_text()
    assert "<h1>Which objective for digits_small_cnn_lite?</h1>" in html
    assert f"loss = {record['paste']}".replace("'", "&#39;") in html
    lanes = data_of(html)["finalists"]
    told = [f["minus_cross_entropy"] for f in record["finalists"] if not f["candidate"].startswith("ce")]
    assert [(lane["mean"], lane["low"]) for lane in lanes] == [(part["mean"], part["low"]) for part in told]
