import json
import re

import pytest
from support.synthetic_study import add, spec, study_store

from focalcal.lab.evidence.evidence import collected
from focalcal.lab.report.own_section import ReportSection
from focalcal.lab.report.report_folder import FOLDER, PAGE, write_report
from focalcal.lab.report.sentences import gap_sentences
from focalcal.lab.store import Store
from focalcal.pages.tables import CaptionedTable, Table


def body(report):
    return re.sub(r"<script.*?</script>|<style.*?</style>", "", report.page.read_text("utf-8"), flags=re.DOTALL)


def test_the_folder_has_the_page_and_its_tables_and_figures(tmp_path):
    store = study_store(tmp_path / "runs", objectives=("ce",), seeds=(0,))
    made = write_report(store, title="A study")
    assert made.page == store.path / FOLDER / PAGE
    names = {str(path.relative_to(made.page.parent)) for path in made.files}
    assert {"tables/ece.csv", "tables/ece.md", "tables/ece.tex"} <= names
    assert {"figures/reliability-digits-small_cnn.pdf", "figures/reliability-digits-small_cnn.png"} <= names
    assert all(path.stat().st_size > 0 for path in made.files)
    assert "<h1>A study</h1>" in body(made)
    assert len(store.runs()) == 1  # the report in the store's folder is no run
    assert store.problems() == []


def test_what_an_earlier_report_wrote_is_removed_and_nothing_else(tmp_path):
    store, out = study_store(tmp_path / "runs", objectives=("ce", "fcl"), seeds=(0, 1)), tmp_path / "out"
    assert (out / "tables" / "comparisons.csv") in write_report(store, out=out, with_figures=False).files
    mine = [out / "tables" / "mine.csv", out / "tables" / "ece.txt", tmp_path / "outside.csv"]
    for path in mine:
        path.write_text("kept")
    page = out / PAGE
    listed = re.search(r'name="focalcal-files" content="([^"]*)"', page.read_text("utf-8"))[1]
    page.write_text(
        page.read_text("utf-8").replace(listed, f"{listed} ../outside.csv tables/../tables/mine.csv"), "utf-8"
    )
    made = write_report(study_store(tmp_path / "other", objectives=("ce",)), out=out, with_figures=False)
    assert set((out / "tables").iterdir()) == {path for path in made.files if path.parent.name == "tables"} | set(
        mine[:2]
    )
    assert not (out / "tables" / "comparisons.csv").exists()
    assert [path.read_text() for path in mine] == ["kept"] * 3


def test_a_half_finished_study_names_what_is_missing_and_shows_the_rest(tmp_path):
    cells = [spec(objective, seed) for objective in ("ce", "fcl") for seed in (0, 1, 2)]
    store = Store(tmp_path / "runs")
    for one in cells[:3]:
        add(store, one)
    add(store, spec("focal", 0))  # of another study
    store.record_failure(cells[3], kind="FloatingPointError", message="the loss is NaN\nin epoch 2")
    broken = add(store, cells[4])
    (broken.path / "record.json").unlink()
    made = write_report(store, specs=cells, title="Half", with_figures=False)
    assert [run.name for run in made.evidence.runs] == [f"digits/small_cnn ce seed {seed}" for seed in (0, 1, 2)]
    said = "\n".join(gap_sentences(made.evidence.missing))
    assert re.search(rf"fcl seed 0.*{cells[3].key[:12]}.*the loss is NaN in epoch 2", said)
    assert re.search(r"fcl seed 1.*damaged", said)
    assert re.search(r"fcl seed 2.*not run", said)
    assert "focal seed" not in said
    assert all(line in body(made).replace("&#39;", "'") for line in gap_sentences(made.evidence.missing))


def test_of_two_stores_that_disagree_the_first_is_shown_and_it_is_said(tmp_path):
    one, other = Store(tmp_path / "a"), Store(tmp_path / "b")
    add(one, spec("ce", 0), changed={"ece": 0.25})
    add(other, spec("ce", 0), changed={"ece": 0.5})
    add(other, spec("fcl", 0))
    made = write_report([one, other], out=tmp_path / "out", with_figures=False)
    assert made.evidence.runs[0].metrics["test"]["ece"] == 0.25
    assert len(made.evidence.runs) == 2
    assert any("different results" in line for line in gap_sentences(made.evidence.missing))
    runs, told = collected([one, one])
    assert (len(runs), told) == (1, [])


def test_a_section_of_other_code_has_its_tables_as_files(tmp_path):
    def words(evidence, operating_points):
        table = CaptionedTable("Ours in words", Table({"runs": [len(evidence.runs)]}), "a note")
        return ReportSection("By hand", {"words": table}, lambda tables: tables[0], styles=[".mine { color: red; }"])

    store = study_store(tmp_path / "runs", objectives=("ce", "fcl"), seeds=(0,))
    made = write_report(store, make_section=words, with_figures=False)
    assert (made.page.parent / "tables" / "words.csv").read_text() == "runs\n2\n"
    page = made.page.read_text("utf-8")
    assert re.search(r'<section id="section"[^>]*>\s*<h2[^>]*>By hand', page)
    assert page.count("Ours in words") >= 1
    assert ".mine { color: red; }" in page
    assert "By hand" not in write_report(store, with_figures=False).page.read_text("utf-8")


def test_headline_forest_tests_and_tables_are_about_the_studys_candidate_by_its_label(tmp_path):
    store, labels = Store(tmp_path / "runs"), {}
    for loss, ece in (("ce", 0.2), ("fcl", 0.15), ("mine:SoftGap", 0.1)):
        for seed in range(8):
            one = spec(loss, seed)
            add(store, one, changed={"ece": ece + seed / 1000})
            labels[one.key] = ("", "SoftGap (ours)" if loss == "mine:SoftGap" else "")
    made = write_report(store, candidate="mine:SoftGap", labels=labels, with_figures=False)
    sentence = re.search(r'<p class="sentence">(.*?)</p>', body(made))[1]
    assert sentence.startswith("SoftGap (ours) lowers ECE from 20.4 to 10.4 points against cross-entropy")
    data = json.loads(re.search(r'id="data">(.*?)</script>', made.page.read_text("utf-8"), re.DOTALL)[1])
    assert data["candidate"] == "SoftGap (ours)"
    assert {view["candidate"] for view in data["views"]["differences"]} == {"SoftGap (ours)"}
    tables = made.page.parent / "tables"
    assert "SoftGap (ours) minus baseline" in (tables / "comparisons.tex").read_text()
    assert r"\label{tab:comparisons}" in (tables / "comparisons.tex").read_text()
    assert "SoftGap (ours)" in (tables / "ece.csv").read_text()
    assert "mine:SoftGap" not in (tables / "overview.tex").read_text()


def test_a_page_of_something_else_is_not_overwritten(tmp_path):
    out = tmp_path / "out"
    out.mkdir()
    (out / PAGE).write_text("<title>mine</title>")
    made = write_report(Store(tmp_path / "empty"), out=tmp_path / "of nothing")
    assert made.files == ()
    assert "The store holds no whole run." in body(made)
    with pytest.raises(ValueError, match=r"out must not hold a report\.html of something else"):
        write_report(Store(tmp_path / "runs"), out=out)
    assert (out / PAGE).read_text() == "<title>mine</title>"
    (tmp_path / "file").write_text("")
    with pytest.raises(ValueError, match="out must be a folder"):
        write_report(Store(tmp_path / "runs"), out=tmp_path / "file")
