import doctest
import json
import math
import re
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
from support.synthetic_study import add, add_multilabel, evidence_of, spec, study_store

import focalcal.lab.report.page_numbers
from focalcal.lab.evidence.evidence import gather
from focalcal.lab.evidence.gaps import nothing_stored
from focalcal.lab.evidence.labels import origins
from focalcal.lab.report import headline_text
from focalcal.lab.report.figures import figures
from focalcal.lab.report.page_numbers import page_data
from focalcal.lab.report.page_sections import SCRIPTS, study_page
from focalcal.lab.report.study_tables.run_lists import runs_table
from focalcal.lab.store import Store
from focalcal.pages import page as kit
from focalcal.pages.page import THEME, template

LIMIT = 1_000_000  # bytes of the digits study's page
SETTING = "digits/small_cnn"


@pytest.fixture(scope="module")
def evidence(tmp_path_factory):
    return evidence_of(study_store(tmp_path_factory.mktemp("store")), details=True)


@pytest.fixture(scope="module")
def page(evidence):
    return study_page(evidence)


def without_scripts(page):
    return re.sub(r"<script.*?</script>|<style.*?</style>", "", page, flags=re.DOTALL)


def data_of(page):
    return json.loads(re.search(r'<script type="application/json" id="data">(.*?)</script>', page, re.DOTALL)[1])


def rows_of(data, kind, choice, setting=SETTING):
    (view,) = (one for one in data["views"][kind] if (one["setting"], one["choice"]) == (setting, choice))
    return {row["objective"]: row for row in view["rows"]}


def test_the_page_refers_to_nothing_outside_itself(page):
    body = without_scripts(page)
    assert not re.search(r"https?://|//cdn|@import|url\(", body)
    links = re.findall(r"\b(?:src|href)\s*=\s*\"([^\"]*)\"", body)
    assert len(links) > 10
    assert all(link.startswith("#") for link in links)
    ids = re.findall(r'\bid="([^"]+)"', body)
    assert len(ids) == len(set(ids))
    assert {link[1:] for link in links} <= set(ids)
    own = "".join(template(name) for name in (*kit.SCRIPTS, *SCRIPTS, THEME))
    own = own.replace("http://www.w3.org/2000/svg", "")  # a name, not an address
    assert not re.search(r"https?://|\bfetch\(|XMLHttpRequest|import\(|innerHTML|document\.write|eval\(", own)


def test_every_control_has_a_label_and_every_table_a_caption(page):
    body = without_scripts(page)
    controls = re.findall(r"<(?:input|select)\b[^>]*>", body)
    assert len(controls) > 6
    for control in controls:
        name = re.search(r'id="([\w-]+)"', control)
        labelled = "aria-label=" in control or f"<label>{control}" in body or f'<label for="{name[1]}"' in body
        assert labelled, control
    assert body.count("<table") == body.count("<caption")
    assert '<a class="skip" href="#result">' in body
    assert '<html lang="en">' in body


def test_the_first_screen_says_the_result_with_its_size(evidence, page):
    ours, theirs = ([100 * run.metrics["test"]["ece"] for run in evidence.of(SETTING, name)] for name in ("fcl", "ce"))
    assert doctest.testmod(headline_text) == doctest.TestResults(failed=0, attempted=1)
    assert study_page(evidence) == page  # equal evidence gives the same page
    sentence = re.search(r'<p class="sentence">(.*?)</p>', page)[1]
    assert sentence.startswith(
        f"FCL lowers ECE from {np.mean(theirs):.1f} to {np.mean(ours):.1f} points against cross-entropy on {SETTING}, "
        "in all three seeds, while the error "
    )
    assert sentence.endswith("three seeds cannot show that this is more than chance.")
    assert page.index('class="sentence"') < page.index('id="chart-dots"') < page.index("<table")


def test_the_scripts_get_the_runs_and_names_of_the_evidence(evidence, page):
    found = data_of(page)
    assert found["settings"] == [SETTING]
    assert "surface" not in found["views"]
    assert 'id="chart-surface"' not in page
    assert [one["key"] for one in found["objectives"]] == list(evidence.objectives)
    metrics = {run["key"]: run["splits"] for run in found["runs"]}
    assert all(metrics[run.key]["val"]["nll"] == run.metrics["val"]["nll"] for run in evidence.runs)


def test_the_figures_for_print_are_drawn_from_what_the_page_has(evidence, page):
    found = data_of(page)["views"]
    for view in figures(evidence).values():
        shown = [one for one in found.get(view.kind, ()) if (one["title"], one["note"]) == (view.title, view.note)]
        if view.kind not in ("confidence", "temperature", "headline"):
            ((rows,),) = [[one["rows"] for one in shown]]
            assert [row["objective"] for row in rows] == [row["objective"] for row in view.rows]
            assert rows == json.loads(kit.inert_json(view.rows))


def test_epoch_bins_are_summed_over_seeds_where_all_have_them(evidence):
    def with_bins(run, epochs):
        bins = {"count": [1, 2], "confidence": [0.25, 1.5], "correct": [0, run.seed]}
        return replace(run, epochs=[{"epoch": at, "bins": bins} for at in epochs])

    runs = [with_bins(run, (1, 2, 3)[: 3 - (run.seed == 2)]) for run in evidence.runs]
    made = page_data(replace(evidence, runs=tuple(runs)))["views"]["reliability"]
    assert [view["choice"] for view in made] == ["epoch 1", "epoch 2"]
    for row in made[0]["rows"]:
        assert (row["seeds"], row["rows"], row["confidence"], row["accuracy"]) == (3, [3, 6], [0.25, 0.75], [0.0, 0.5])
    assert "reliability" not in page_data(evidence)["views"]


def test_a_page_of_nothing_says_so():
    made = study_page(gather([], title="Nothing", missing=[nothing_stored()]))
    body = without_scripts(made)
    assert "No run is stored yet." in body
    assert "The store holds no whole run." in body
    assert 'id="chart-' not in body
    assert data_of(made)["views"] == {}


def test_numbers_that_json_lacks_are_named(tmp_path):
    store = Store(tmp_path)
    add(store, spec("ce", 0), changed={"nll": math.nan, "brier": math.inf})
    made = study_page(evidence_of(store))
    (run,) = data_of(made)["runs"]
    assert (run["splits"]["test"]["nll"], run["splits"]["test"]["brier"]) == ("NaN", "Infinity")
    assert "nll" not in [view["choice"] for view in data_of(made)["views"]["ranking"]]
    assert rows_of(data_of(made), "ranking", "brier")["ce"]["mean"] == "Infinity"
    assert "nll is nan" in made


def test_several_labels_have_no_diagram_and_the_reason_is_there(tmp_path):
    store = Store(tmp_path)
    add_multilabel(store, spec("multilabel_fcl", 0, data_set="chest"), ["Hernia", "Mass"])
    body = without_scripts(study_page(evidence_of(store, details=True)))
    assert "No reliability diagram" in body
    assert "several yes-or-no questions" in body


def test_a_study_of_the_size_of_the_digits_fits(tmp_path):
    objectives = ("ce", "brier", "focal", "ls", "mmce", "flsd53", "dual_focal", "adafocal", "fcl")
    made = study_page(evidence_of(study_store(tmp_path, objectives=objectives), details=True))
    assert len(made.encode()) < LIMIT


def test_of_many_epochs_some_are_given_and_it_is_said(evidence, page, monkeypatch):
    assert (data_of(page)["every_epochs"], "one epoch in" in page) == (1, False)
    long = [{"epoch": at, "test": {"nll": 1 / at}} for at in range(1, 101)]
    many = replace(evidence, runs=tuple(replace(run, epochs=long) for run in evidence.runs))
    monkeypatch.setattr(focalcal.lab.report.page_numbers, "MOST_EPOCH_VALUES", 21 * 9 * 100 // 30)
    made = study_page(many)
    kept = rows_of(data_of(made), "training", "test nll")["ce"]
    assert kept["epoch"] == [1, 31, 61, 91, 100]
    assert [kept[f"seed {seed}"] for seed in range(3)] == [[1.0, 0.032258, 0.016393, 0.010989, 0.01]] * 3
    assert "one epoch in 30" in without_scripts(made)


def test_origins_say_once_what_runs_share(evidence):
    shared, own = origins(evidence.runs)
    assert shared["spec.training.optimizer.lr"] == 0.1
    assert "spec.seed" not in shared
    for run in evidence.runs:
        assert own[run.key]["spec.seed"] == run.seed
        assert not own[run.key].keys() & shared.keys()
    shared, own = origins(evidence.runs[:1])
    assert shared == {}
    assert own[evidence.runs[0].key]["provenance.focalcal"] == "0"


def test_tests_and_temperatures_are_folded_below_their_charts_and_columns_of_one_value_said(evidence):
    names = ("overview", "ece", "comparisons", "temperature")
    tables = {name: SimpleNamespace(title=name, table=runs_table(evidence), note="") for name in names}
    body = without_scripts(study_page(evidence, tables=tables))
    places = [body.index(f'id="{name}"') for name in ("chart-forest", "table-comparisons", "chart-slopes")]
    places += [body.index(f'id="{name}"') for name in ("table-temperature", "table-overview", "table-ece")]
    assert places == sorted(places)
    folded = "".join(re.findall(r'<details class="folded">.*?</details>', body, re.DOTALL))
    assert re.findall(r'id="table-(\w+)"', folded) == ["comparisons", "temperature", "ece"]
    small = re.search(r'id="table-overview".*?</figure>', body, re.DOTALL)[0]
    assert f"(setting {SETTING}, epochs 2, seconds 1.50)" in re.search(r"<caption>(.*?)</caption>", small)[1]
    assert ">setting<" not in small
    assert "Cross-entropy" in small  # not ce
