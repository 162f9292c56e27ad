import doctest
import html
import json
import math
import re
from dataclasses import replace
from types import SimpleNamespace

import pytest
import quickjs
from support.synthetic_study import add, add_multilabel, spec, study_store

import focalcal.reports.study_page
import focalcal.reports.study_page_data
from focalcal.analysis.evidence import gather, reading_order
from focalcal.analysis.gaps import EvidenceGap
from focalcal.analysis.origins import origins
from focalcal.reports.study_page import SCRIPTS, runs_table, study_page
from focalcal.reports.study_page_data import page_data
from focalcal.reports.theory_page import template
from focalcal.results import Store

LIMIT = 6_000_000  # bytes of the digits study's page


def evidence_of(store, **options):
    return gather(reading_order(store.runs()), title="A study", **options)


@pytest.fixture(scope="module")
def evidence(tmp_path_factory):
    return evidence_of(study_store(tmp_path_factory.mktemp("store")))


@pytest.fixture(scope="module")
def page(evidence):
    return study_page(evidence)


def without_scripts(page):
    return re.sub(r"<script.*?</script>|<style.*?</style>", "", page, flags=re.DOTALL)


def data_of(page):
    return json.loads(re.search(r'<script type="application/json" id="data">(.*?)</script>', page, re.DOTALL)[1])


def test_equal_evidence_gives_the_same_page(evidence, page):
    assert study_page(evidence) == page


def test_the_page_refers_to_nothing_outside_itself(page):
    body = without_scripts(page)
    assert not re.search(r"https?://|//cdn|@import|url\(", body)
    links = re.findall(r"\b(?:src|href)\s*=\s*\"([^\"]*)\"", body)
    assert len(links) > 10
    assert all(link.startswith("#") for link in links)
    ids = re.findall(r'\bid="([^"]+)"', body)
    assert len(ids) == len(set(ids))
    assert {link[1:] for link in links} <= set(ids)
    own = "".join(template(name) for name in (*SCRIPTS, "study.theme.js"))
    assert not re.search(r"https?://|\bfetch\(|XMLHttpRequest|import\(|innerHTML|document\.write|eval\(", own)


@pytest.mark.parametrize("name", [*SCRIPTS, "study.theme.js"])
def test_every_script_can_be_parsed_and_stays_in_its_element(name):
    quickjs.Context().eval(f"(function () {{ {template(name)} }})")
    assert "</script" not in template(name).lower()


def test_every_element_that_a_script_asks_for_is_there(page, tmp_path):
    store = Store(tmp_path)
    for gamma in (1.0, 2.0):
        for lam in (0.5, 1.0):
            add(store, spec("fcl", 0, gamma=gamma, lam=lam))
    ids = set(re.findall(r'\bid="([\w-]+)"', page + study_page(evidence_of(store))))
    scripts = "".join(template(name) for name in SCRIPTS)
    asked = set(re.findall(r'(?:get|getElementById|fill)\("([\w-]+)"', scripts))
    assert len(asked) > 10
    assert asked <= ids


def test_every_control_has_a_label_and_every_table_a_caption(page):
    body = without_scripts(page)
    controls = re.findall(r"<(?:input|select)\b[^>]*>", body)
    assert len(controls) == 4 + 3 + 3 + 1
    for control in controls:
        name = re.search(r'id="([\w-]+)"', control)
        assert f"<label>{control}" in body or f'<label for="{name[1]}"' in body, control
    assert body.count("<table") == body.count("<caption")
    assert '<a class="skip" href="#summary">' in body
    assert '<html lang="en">' in body


def test_the_scripts_get_the_numbers_of_the_evidence(evidence, page):
    found = data_of(page)
    assert found["settings"] == ["digits/small_cnn"]
    assert found["objectives"] == list(evidence.objectives)
    for given, run in zip(found["runs"], evidence.runs, strict=True):
        assert given["metrics"] == run.metrics
        assert given["temperature"] == run.scaled.temperature
        assert given["reliability"]["after"]["count"] == run.scaled.reliability_after.count.tolist()
        assert given["reliability"]["whole"]["low"] == run.reliability.low.tolist()
        assert given["epochs"]["epoch"] == [one["epoch"] for one in run.epochs]
        assert given["epochs"]["test nll"] == [one["test"]["nll"] for one in run.epochs]
        assert given["spec"] == json.loads(json.dumps(run.spec))


def test_names_are_text_wherever_they_stand(tmp_path):
    evil = "<script>alert(1)</script>"
    store = Store(tmp_path)
    for objective in (evil, "fcl"):
        add(store, spec(objective, 0, data_set="</script><img src=x onerror=alert(2)>"))
    made = study_page(gather(reading_order(store.runs()), title=f"On {evil}"))
    body = without_scripts(made)
    assert "<script>alert" not in made.replace("<\\/script", "</script")
    assert "<img" not in body
    assert html.escape(evil) in body
    assert evil in data_of(made)["objectives"]


def test_a_page_of_nothing_says_so():
    made = study_page(gather([], title="Nothing", missing=[EvidenceGap("no runs")]))
    body = without_scripts(made)
    assert "No run is stored yet." in body
    assert "The store holds no whole run." in body
    assert 'id="reliability-chart"' not in body
    assert data_of(made)["runs"] == []


def test_numbers_that_json_lacks_are_named(tmp_path):
    store = Store(tmp_path)
    add(store, spec("ce", 0), changed={"nll": math.nan, "brier": math.inf})
    made = study_page(evidence_of(store))
    (run,) = data_of(made)["runs"]
    assert (run["metrics"]["test"]["nll"], run["metrics"]["test"]["brier"]) == ("NaN", "Infinity")
    assert "nll is nan" in made


def test_several_labels_have_no_diagram_and_the_reason_is_there(tmp_path):
    store = Store(tmp_path)
    add_multilabel(store, spec("multilabel_fcl", 0, data_set="chest"), ["Hernia", "Mass"])
    body = without_scripts(study_page(evidence_of(store)))
    assert "No reliability diagram" in body
    assert "several yes-or-no questions" in body


def test_a_study_of_the_size_of_the_digits_fits(tmp_path):
    objectives = ("ce", "brier", "focal", "ls", "mmce", "flsd53", "dual_focal", "adafocal", "fcl")
    made = study_page(evidence_of(study_store(tmp_path, objectives=objectives)))
    assert len(made.encode()) < LIMIT


def test_of_many_epochs_some_are_given_and_it_is_said(evidence, page, monkeypatch):
    assert (data_of(page)["every_epochs"], "one epoch in" in page) == (1, False)
    long = [{"epoch": at, "test": {"nll": 1 / at}} for at in range(1, 101)]
    many = replace(evidence, runs=tuple(replace(run, epochs=long) for run in evidence.runs))
    monkeypatch.setattr(focalcal.reports.study_page_data, "MOST_EPOCH_VALUES", 21 * 9 * 100 // 30)
    made = study_page(many)
    kept = data_of(made)["runs"][0]["epochs"]
    assert kept["epoch"] == [1, 31, 61, 91, 100]
    assert kept["test nll"] == [1.0, 0.0322581, 0.0163934, 0.010989, 0.01]
    assert "one epoch in 30" in without_scripts(made)


def test_origins_say_once_what_runs_share(evidence):
    found = origins(evidence.runs)
    assert found.shared["spec.training.optimizer.lr"] == 0.1
    assert "spec.seed" not in found.shared
    for run in evidence.runs:
        assert found.own[run.key]["spec.seed"] == run.seed
        assert not found.own[run.key].keys() & found.shared.keys()
    alone = origins(evidence.runs[:1])
    assert alone.shared == {}
    assert alone.own[evidence.runs[0].key]["provenance.focalcal"] == "0"


def test_a_surface_is_given_where_there_is_a_grid(tmp_path, evidence):
    assert data_of(study_page(evidence))["surfaces"] == []
    store = Store(tmp_path)
    for gamma in (1.0, 3.0):
        for lam in (0.0, 1.0):
            if (gamma, lam) != (3.0, 0.0):
                add(store, spec("fcl", 0, gamma=gamma, lam=lam), changed={"ece": gamma / 100 + lam / 1000})
    surfaces = data_of(study_page(evidence_of(store)))["surfaces"]
    one = next(one for one in surfaces if one["label"] == "ECE")
    assert (one["gammas"], one["lams"], one["minimum"]) == ([1.0, 3.0], [0.0, 1.0], [1.0, 0.0])
    assert one["values"][0] == pytest.approx([1.0, 1.1])
    assert one["values"][1][0] == "NaN"


def overview_and_more(evidence):
    names = ("overview", "error", "ece", "comparisons")
    return {name: SimpleNamespace(title=name, table=runs_table(evidence), note="") for name in names}


def test_in_one_setting_the_tables_of_single_metrics_are_folded_below_the_overview(evidence, tmp_path):
    body = without_scripts(study_page(evidence, tables=overview_and_more(evidence)))
    folded = re.search(r'<details class="folded">.*?</details>', body, re.DOTALL)
    assert re.findall(r'id="table-(\w+)"', folded[0]) == ["error", "ece"]
    assert re.findall(r'id="table-(\w+)"', body) == ["leaders", "overview", "error", "ece", "comparisons", "runs"]
    add(study_store(tmp_path, seeds=(0,)), spec("ce", 0, data_set="letters"))
    two = evidence_of(Store(tmp_path))
    assert 'class="folded"' not in without_scripts(study_page(two, tables=overview_and_more(two)))


def test_runs_are_listed_with_their_numbers(evidence):
    table = runs_table(evidence)
    assert len(table.columns["run"]) == 9
    assert table.columns["ECE %"][0] == pytest.approx(100 * evidence.runs[0].metrics["test"]["ece"])
    gap = evidence.runs[0].metrics["test"]["confidence_gap"]
    assert table.columns["Confidence gap %"][0] == pytest.approx(100 * gap)
    assert table.columns["T"][0] == evidence.runs[0].scaled.temperature  # every digit in CSV
    assert page_data(evidence)["runs"][0]["key"].startswith(table.columns["run"][0])


def test_examples():
    for module in (focalcal.reports.study_page, focalcal.reports.study_page_data):
        assert doctest.testmod(module) == doctest.TestResults(failed=0, attempted=1)
