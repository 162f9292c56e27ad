import csv
import io
import math
import re
import statistics
import subprocess

import pytest
from paper.claims.claim_tables import against_paper
from support import synthetic_study as synthetic
from support.external_tools import needs

from focalcal.lab.evidence.evidence import gather
from focalcal.lab.report.figures.scaling import scalings
from focalcal.lab.report.study_tables import all_tables
from focalcal.lab.report.study_tables.run_lists import runs_table
from focalcal.lab.store import Store
from focalcal.pages.numbers import Mean, best

SETTING = "digits/small_cnn"


@pytest.fixture(scope="module")
def store(tmp_path_factory):
    folder = tmp_path_factory.mktemp("study")
    made = synthetic.study_store(folder, shifts=("svhn",))
    for objective in ("ce", "fcl"):  # a second setting, without focal
        synthetic.add(made, synthetic.spec(objective, 0, model="mlp"))
    return made


@pytest.fixture(scope="module")
def evidence(store):
    return synthetic.evidence_of(store)


@pytest.fixture(scope="module")
def tables(evidence):
    return all_tables(evidence)


def read(table):
    return list(csv.DictReader(io.StringIO(table.csv())))


def test_a_metric_table_has_mean_and_spread_of_the_stored_numbers(evidence, tables):
    rows = read(tables["ece"].table)
    assert {row["setting"] for row in rows} == {SETTING, "digits/mlp"}
    row = next(row for row in rows if row["setting"] == SETTING)
    values = [100 * one for one in evidence.values(SETTING, "ece")["fcl"].values()]
    assert float(row["fcl"]) == statistics.fmean(values)
    assert float(row["fcl_std"]) == statistics.stdev(values)
    assert row["fcl_n"] == "3"
    single = next(row for row in rows if row["setting"] == "digits/mlp")
    assert single["fcl_n"] == "1"
    assert math.isnan(float(single["fcl_std"]))
    assert single["focal"] == ""
    assert "n from 1 to 3" in tables["ece"].note


def test_the_best_of_a_row_is_bold_and_ties_as_printed_are_all_bold():
    three = [Mean([value], decimals=2) for value in (1.004, 0.996, 1.006)]
    assert best(three) == [True, True, False]  # 1.00, 1.00, 1.01
    assert best(three, higher=True) == [False, False, True]
    assert best([None, Mean([2.0], decimals=2), Mean([3.0], decimals=2)]) == [False, True, False]
    assert best([None, three[0]]) == [False, False]  # nothing to be better than
    assert best([Mean([math.inf], decimals=2), Mean([math.inf], decimals=2)]) == [False, False]
    assert best([Mean([1.0, math.inf], decimals=2), Mean([9.0], decimals=2)]) == [False, True]


def test_the_overview_comes_first_and_agrees_with_the_table_of_each_metric(evidence, tables):
    assert next(iter(tables)) == "overview"
    table = tables["overview"].table
    rows = read(table)
    assert [(row["setting"], row["objective"], row["seeds"]) for row in rows] == [
        *(("digits/mlp", "ce", "1"), ("digits/mlp", "fcl", "1")),
        *((SETTING, "ce", "3"), (SETTING, "fcl", "3"), (SETTING, "focal", "3")),
    ]
    for metric in ("error", "ece", "adaptive_ece", "classwise_ece", "smooth_ece", "nll", "brier"):
        alone = tables[metric].table
        settings = list(alone.columns["setting"])
        for row, bold in zip(rows, table.bold[metric], strict=True):
            at = settings.index(row["setting"])
            assert float(row[metric]) == alone.columns[row["objective"]][at]
            assert bold == alone.bold[row["objective"]][at]


def test_in_the_overview_ties_are_all_best_and_infinity_never_is(tmp_path):
    store = Store(tmp_path)
    changes = {"ce": {"ece": 0.1, "nll": math.inf}, "focal": {"ece": 0.100001, "nll": 0.5}, "fcl": {"ece": 0.2}}
    for objective, changed in changes.items():
        synthetic.add(store, synthetic.spec(objective), changed={"nll": math.nan} | changed, rows=60)
    table = all_tables(synthetic.evidence_of(store))["overview"].table
    assert table.bold["ece"] == [True, True, False]
    assert table.bold["nll"] == [False, True, False]
    assert table.columns["nll"][2] is None


def test_best_counts_add_up(tables):
    rows = read(tables["best_counts"].table)
    for metric in ("error", "ece", "nll"):
        assert sum(int(row[metric]) for row in rows) >= 2  # two settings, ties count for each
    assert all(
        int(row["all"]) == sum(int(value) for name, value in row.items() if name not in ("objective", "all"))
        for row in rows
    )


def test_temperatures_are_those_of_the_evidence(evidence, tables):
    rows = {(row["setting"], row["objective"]): row for row in read(tables["temperature"].table)}
    fitted = [run.scaled.temperature for run in evidence.of(SETTING, "ce")]
    assert float(rows[SETTING, "ce"]["T"]) == pytest.approx(statistics.fmean(fitted))
    distance = {row["objective"]: row for row in read(tables["temperature_distance"].table)}
    own = [statistics.fmean(run.scaled.temperature for run in evidence.of(one, "focal")) for one in evidence.settings[:]
           if evidence.of(one, "focal")]  # fmt: skip
    assert float(distance["focal"]["distance"]) == pytest.approx(statistics.fmean(abs(t - 1) for t in own))
    assert distance["focal"]["settings_near"] == f"{sum(0.9 <= t <= 1.1 for t in own)} of 1"
    assert distance["fcl"]["runs_near"].endswith("of 4")


def test_a_temperature_at_its_bound_is_marked_and_in_no_mean(tmp_path):
    """Seed 1 of ce, and focal's only one: every label has the largest logit in the half that T is fitted on."""
    store = Store(tmp_path)
    synthetic.add(store, synthetic.spec("ce", 0))
    for objective, seed in (("ce", 1), ("focal", 0)):
        synthetic.add(store, synthetic.spec(objective, seed), rows=8, classes=2, signal=40.0)
    evidence = synthetic.evidence_of(store)
    (usual,) = (run for run in evidence.runs if not run.scaled.at_bound)
    assert (usual.objective, usual.seed, len(evidence.runs)) == ("ce", 0, 3)
    assert any("temperature set to 0.001: no finite optimum" in note.text for note in evidence.runs[1].notes)
    tables = all_tables(evidence)
    assert "In 2 of 3 runs no T is best" in tables["temperature"].note
    assert "In 2 of 3 runs no T is best" in tables["temperature_distance"].note
    rows = {row["objective"]: row for row in read(tables["temperature"].table)}
    assert {name: row["at_bound"] for name, row in rows.items()} == {"ce": "1 of 2", "focal": "1 of 1"}
    assert float(rows["ce"]["T"]) == pytest.approx(usual.scaled.temperature)
    assert (float(rows["ce"]["nll_after"]), rows["ce"]["nll_after_n"]) == (
        pytest.approx(usual.scaled.after["nll"]),
        "1",
    )
    assert (rows["focal"]["T"], rows["focal"]["nll_after"]) == ("", "")
    distance = {row["objective"]: row for row in read(tables["temperature_distance"].table)}
    assert float(distance["ce"]["run_distance"]) == pytest.approx(abs(usual.scaled.temperature - 1))
    assert distance["ce"]["runs_near"].endswith("of 1")
    assert distance["focal"]["runs_near"] == "0 of 0"
    runs = runs_table(evidence)
    assert runs.columns["no finite T"] == [run.scaled.at_bound for run in evidence.runs]
    (view,) = scalings(evidence, evidence.settings[0], ["ece"])
    bounded = {
        (row["objective"], seed): at for row in view.rows for seed, at in zip(row["seed"], row["bounded"], strict=True)
    }
    assert bounded == {(run.objective, run.seed): run.scaled.at_bound for run in evidence.runs}


def test_every_run_is_listed_with_the_digits_of_its_metric(tmp_path):
    store = Store(tmp_path / "store")
    for seed, error in enumerate((0.0056, 0.4)):
        synthetic.add(store, synthetic.spec("ce", seed), changed={"error": error, "nll": 10 * error})
    evidence = synthetic.evidence_of(store)
    table = runs_table(evidence)
    shown = [dict(zip(table.titles, row, strict=True)) for row in table.rows()]
    assert [(row["Error %"], row["NLL"]) for row in shown] == [("0.56", "0.0560"), ("40.00", "4.0000")]
    assert list(table.columns["Error %"]) == pytest.approx([0.56, 40.0])  # the CSV has every digit
    assert table.columns["T"] == [run.scaled.temperature for run in evidence.runs]


def test_three_seeds_cannot_show_anything_and_the_tables_say_so(tables):
    rows = read(tables["comparisons"].table)
    assert {row["verdict"] for row in rows} == {"cannot show"}
    assert {row["n"] for row in rows} == {"3"}
    assert all(float(row["p"]) >= 0.25 for row in rows)
    assert "n = 3: p >= 0.25" in tables["comparisons"].note
    assert "digits/mlp, fcl against ce: every metric has too few common seeds" in tables["comparisons"].note
    (row,) = read(tables["verdicts"].table)
    assert (row["better"], row["worse"], row["indistinguishable"], row["cannot"]) == ("0", "0", "8", "8")


def test_eight_seeds_can(tmp_path):
    store = synthetic.study_store(tmp_path, objectives=("ce", "fcl"), seeds=range(8))
    tables = all_tables(synthetic.evidence_of(store))
    rows = read(tables["comparisons"].table)
    assert {row["metric"]: row["verdict"] for row in rows} == dict.fromkeys(
        ("ECE %", "AdaECE %", "NLL", "Brier score"), "better"
    )
    assert all(float(row["p_holm"]) == 4 * 2 / 2**8 for row in rows)
    assert all(float(row["difference"]) < 0 for row in rows)
    assert all(tables["comparisons"].table.bold["verdict"])


def test_shift_detection_is_best_where_it_is_most(evidence, tables):
    (row,) = read(tables["shift_auroc"].table)
    means = {name: statistics.fmean(evidence.values(SETTING, "auroc", split="svhn")[name].values())
             for name in evidence.objectives}  # fmt: skip
    assert {name: float(row[name]) for name in means} == pytest.approx(means)
    table = tables["shift_auroc"].table
    printed = {name: f"{value:.4f}" for name, value in means.items()}
    assert [name for name in means if table.bold[name][0]] == [
        name for name in means if printed[name] == max(printed.values())
    ]


def test_findings_count_wins_and_mark_the_literature(tmp_path):
    store, labels = Store(tmp_path), ["Atelectasis", "Hernia", "Cough"]
    for objective in ("multilabel_bce", "multilabel_fcl"):
        for seed in (0, 1):
            one = synthetic.spec(objective, seed, data_set="chestxray14", model="chexnet", gamma=2.0, lam=2.0)
            synthetic.add_multilabel(store, one, labels)
    tables = all_tables(synthetic.evidence_of(store))
    rows = {row["finding"]: row for row in read(tables["findings"].table)}
    assert list(rows) == [*labels, "mean", "best on"]
    wins = [int(float(rows["best on"][f"ece {name}"])) for name in ("multilabel_bce", "multilabel_fcl")]
    assert 3 <= sum(wins) <= 6  # ties count for each
    assert "temperature" not in tables
    shown = against_paper(synthetic.evidence_of(store))
    literature = {(row["objective"], row["finding"]): row for row in read(shown["literature_auroc"].table)}
    assert literature["multilabel_fcl", "Atelectasis"]["Wang et al."] == "0.716"
    assert ("multilabel_fcl", "Cough") not in literature
    assert "Wang et al. (literature)" in shown["literature_auroc"].table.titles
    beside = read(shown["against_paper"].table)
    assert {(row["objective"], row["metric"], row["paper"]) for row in beside} >= {
        ("multilabel_bce", "AUROC", "0.8171"),
        ("multilabel_fcl", "MCE", "0.1229"),
    }


def test_a_sweep_of_lam_is_in_the_order_of_lam(tmp_path):
    store = Store(tmp_path)
    for lam in (10.0, 0.5, 2.0):
        synthetic.add(store, synthetic.spec("fcl", 0, model="deit_small", gamma=3.0, lam=lam))
    synthetic.add(store, synthetic.spec("focal", 0, model="deit_small"))
    tables = all_tables(synthetic.evidence_of(store))
    assert [row["lam"] and float(row["lam"]) for row in read(tables["lam_sweep"].table)] == ["", 0.5, 2.0, 10.0]
    assert "comparisons" not in tables  # no point of the sweep is "the" candidate
    assert tables["transformers"].title == "Transformers, from scratch"


def test_a_sweep_is_of_one_objectives_options(tmp_path):
    store = Store(tmp_path)
    for lam in (0.5, 2.0):
        synthetic.add(store, synthetic.spec("fcl", gamma=3.0, lam=lam), rows=60)
    for name, options in {"mmce": {"lam": 2.0}, "focal": {"gamma": 3.0}}.items():  # whose lam, and gamma, are others
        synthetic.add(store, synthetic.spec(name, **options), rows=60)
    rows = read(all_tables(synthetic.evidence_of(store))["lam_sweep"].table)
    assert [(row["objective"], row["lam"]) for row in rows] == [
        *(("focal", ""), ("mmce", "")),
        *(("fcl lam=0.5", "0.5"), ("fcl lam=2", "2.0")),
    ]
    synthetic.add(store, synthetic.spec("mmce", lam=4.0), rows=60)  # two sweeps
    rows = read(all_tables(synthetic.evidence_of(store))["lam_sweep"].table)
    assert [row["lam"] for row in rows] == ["", "2.0", "4.0", "0.5", "2.0"]
    synthetic.add(store, synthetic.spec("fcl", gamma=1.0, lam=2.0), rows=60)  # a grid, which is drawn
    rows = read(all_tables(synthetic.evidence_of(store))["lam_sweep"].table)
    assert [row["objective"] for row in rows] == ["focal", "mmce lam=2", "mmce lam=4"]


def test_the_confidence_gap_is_shown_and_nobody_is_best_at_it(evidence, tables):
    values = {name: 100 * statistics.fmean(one.values()) for name, one in
              evidence.values(SETTING, "confidence_gap").items()}  # fmt: skip
    assert values["ce"] > 5 > -5 > values["focal"]  # twice, and 0.6 times, the logits that are calibrated
    (row,) = (row for row in read(tables["confidence_gap"].table) if row["setting"] == SETTING)
    assert {name: float(row[name]) for name in values} == pytest.approx(values)
    rows = {row["objective"]: row for row in read(tables["overview"].table) if row["setting"] == SETTING}
    assert {name: float(row["confidence_gap"]) for name, row in rows.items()} == pytest.approx(values)
    assert not any(map(any, tables["confidence_gap"].table.bold_rows()))
    assert "confidence_gap" not in tables["overview"].table.bold
    assert "above 0 is overconfident" in tables["confidence_gap"].title


def test_the_common_split_is_shown_where_temperatures_come_from_validation(tmp_path):
    store = synthetic.study_store(tmp_path, objectives=("ce", "adafocal", "fcl"), seeds=(0, 1))
    assert "common_split" not in all_tables(synthetic.evidence_of(store))
    validated = synthetic.evidence_of(store, temperature="validation")
    table = all_tables(validated)["common_split"].table
    assert [row["objective"] for row in read(table)] == ["ce", "adafocal", "fcl"]
    for metric in ("error", "ece", "nll", "brier"):
        assert sum(table.bold[metric]) >= 1
    fitted = {run.objective: [] for run in validated.runs}
    for run in validated.runs:
        assert run.scaled.fitted_on == "validation"
        fitted[run.objective].append(run.scaled.temperature)
    assert [float(row["T"]) for row in read(table)] == [statistics.fmean(one) for one in fitted.values()]


def test_numbers_of_the_paper_stand_beside_ours_with_differences_of_protocol(tmp_path):
    store = Store(tmp_path)
    training = {**synthetic.TRAINING, "epochs": 10, "data_options": {"validation": 0}}
    for seed in (0, 1):
        for objective in ("fcl", "adafocal"):
            synthetic.add(
                store, synthetic.spec(objective, seed, data_set="cifar10", model="resnet50", training=training)
            )
    evidence = synthetic.evidence_of(store)
    shown = against_paper(evidence)["against_paper"]
    ran = [row for row in read(shown.table) if row["value"] != "not run"]
    assert {row["objective"] for row in ran} == {"fcl"}  # the paper has no AdaFocal but on the common split
    rows = {row["metric"]: row for row in ran}
    assert set(rows) == {"Error %", "ECE %"}
    assert rows["Error %"]["paper"] == "4.58"
    ours = 100 * statistics.fmean(evidence.values("cifar10/resnet50", "error")["fcl"].values())
    assert float(rows["Error %"]["difference"]) == pytest.approx(ours - 4.58)
    assert "the paper's" in shown.table.titles
    for told in ("a lite recipe of 10 epochs instead of 350", "2 seeds per cell instead of three", "other seeds"):
        assert told in shown.note
    assert "FCL here has gamma = 3, lam = 1 (cifar10/resnet50); the paper's points" in shown.note
    other = against_paper(synthetic.evidence_of(synthetic.study_store(tmp_path / "digits", seeds=(0,))))
    assert list(other) == ["against_paper_text"]  # none of its settings was run
    assert {row["value"] for row in read(other["against_paper_text"].table)} == {"not run"}


def document(tables):
    parts = [table.latex(label=f"tab:{name}") for name, table in tables.items()]
    opening = [r"\documentclass{article}", r"\usepackage{booktabs,graphicx}", r"\begin{document}"]
    return "\n".join([*opening, *parts, r"\end{document}", ""])


def test_latex_is_balanced_and_every_row_has_the_columns_its_tabular_declares(tables):
    for name, table in tables.items():
        source = table.latex(label=f"tab:{name}")
        plain = re.sub(r"\\[{}$&%#_]", "", source)
        assert plain.count("{") == plain.count("}")
        assert plain.count("$") % 2 == 0
        assert re.findall(r"\\(begin|end){(\w+)}", source) == [
            *(("begin", "table"), ("begin", "tabular"), ("end", "tabular"), ("end", "table"))
        ]
        width = len(re.search(r"\\begin{tabular}{([lrc]+)}", source)[1])
        for line in plain.splitlines():
            if line.endswith(r"\\"):
                spanned = sum(int(count) - 1 for count in re.findall(r"\\multicolumn{(\d+)}", line))
                assert line.count("&") + 1 + spanned == width, line
        assert source.isascii(), [character for character in source if not character.isascii()]


@pytest.fixture(scope="module")
def every_kind(tables, tmp_path_factory):
    """Tables of every kind, by name."""
    folder = tmp_path_factory.mktemp("kinds")
    several = Store(folder / "several")
    for objective in ("multilabel_bce", "multilabel_fcl"):
        synthetic.add_multilabel(
            several, synthetic.spec(objective, data_set="chestxray14"), ["Hernia", "Mass"], rows=60
        )
    sweep = Store(folder / "sweep")
    for lam in (0.5, 2.0):
        synthetic.add(sweep, synthetic.spec("fcl", model="vit_small", gamma=3.0, lam=lam), rows=60)
    split = synthetic.study_store(folder / "split", objectives=("adafocal", "fcl"), seeds=(0,))
    paper = synthetic.study_store(folder / "paper", seeds=(0,), data_set="cifar10", model="resnet50")
    found = against_paper(synthetic.evidence_of(paper))
    for store, options in ((several, {}), (sweep, {}), (split, {"temperature": "validation"})):
        found |= all_tables(synthetic.evidence_of(store, **options))
    return found | tables


def compiled(tables, folder):
    (folder / "tables.tex").write_text(document(tables))
    return subprocess.run(
        ["pdflatex", "-interaction=nonstopmode", "-halt-on-error", "tables.tex"],
        cwd=folder,
        capture_output=True,
        text=True,
        errors="replace",
        check=False,
        timeout=120,
    )


@needs("pdflatex")
def test_latex_of_every_kind_and_of_hostile_names_compiles_and_fits_the_page(every_kind, tmp_path):
    assert every_kind.keys() >= {
        *("overview", "error", "smooth_ece", "best_counts", "temperature", "temperature_distance", "verdicts"),
        *("comparisons", "common_split", "transformers", "lam_sweep", "shift_auroc", "findings", "against_paper"),
        *("against_paper_text", "confidence_gap"),
    }
    store = Store(tmp_path / "store")
    for data_set in ("[boom]", "*", "a\n\nb", "\\end{tabular}", "$x^2_{%}$ & # ~"):
        for objective in ("ce", "fcl"):
            synthetic.add(store, synthetic.spec(objective, data_set=data_set), rows=60, shifts=("svhn",))
    hostile = all_tables(synthetic.evidence_of(store))
    ended = compiled({f"hostile_{name}": table for name, table in hostile.items()}, tmp_path)
    assert ended.returncode == 0, ended.stdout[-2000:]
    ended = compiled(every_kind, tmp_path)
    assert ended.returncode == 0, ended.stdout[-2000:]
    assert "Overfull" not in ended.stdout
    assert "Float too large" not in ended.stdout


def test_every_format_shows_the_same_cells(tables):
    assert all_tables(gather([], title="")) == {}
    for table in tables.values():
        cells = [cell for row in table.table.rows() for cell in row]
        text = table.text()
        assert all(cell in text for cell in cells)
        assert table.markdown().count("**") == 2 * sum(map(sum, table.table.bold_rows()))
