import math

import pytest
from support.synthetic_study import add, evidence_of, spec, study_store

from focalcal.lab.evidence.cell_means import leaders
from focalcal.lab.evidence.evidence import gather
from focalcal.lab.evidence.gaps import nothing_stored
from focalcal.lab.report.sentences import study_sentences
from focalcal.lab.report.study_tables.run_lists import leaders_table
from focalcal.lab.store import Store


def test_three_seeds_can_show_nothing_and_it_says_so(tmp_path):
    found = study_sentences(evidence_of(study_store(tmp_path)))
    assert found.ran == "9 runs: 3 objectives on digits/small_cnn, seeds 0, 1 and 2."
    (said,) = found.significant
    assert said.startswith("No difference is significant, and with 3 seeds none could be")
    assert "p = 0.25" in said
    assert "it takes 8 seeds to reach 0.05" in said  # 4 metrics * 2 / 2^8 <= 0.05 < 4 * 2 / 2^7


def test_ten_seeds_can_and_one_is_not_tested(tmp_path):
    found = study_sentences(evidence_of(study_store(tmp_path / "one", seeds=(0,))))
    assert found.significant[0].startswith("Nothing was tested")
    assert any("one seed only: no spread, and no test" in line for line in found.unknown)
    said = study_sentences(
        evidence_of(study_store(tmp_path / "ten", objectives=("ce", "fcl"), seeds=range(10)))
    ).significant
    assert said[0] == (
        "fcl against ce: 4 better, 0 worse, 0 indistinguishable of 4 comparisons "
        "(ECE better; AdaECE better; NLL better; Brier score better)."
    )
    assert said[1] == "Only comparisons with fcl were made; focalcal compare makes others."


def test_the_best_is_the_lowest_mean_and_ties_are_shared(tmp_path):
    store = Store(tmp_path)
    for objective, ece, error in (("ce", 0.30, 0.2), ("focal", 0.10, 0.2), ("fcl", 0.20, 0.2)):
        for seed in (0, 1):
            add(store, spec(objective, seed), changed={"ece": ece + 0.01 * seed, "error": error})
    evidence = evidence_of(store)
    found = {one.metric: one for one in leaders(evidence)}
    assert found["ece"].objectives == ("focal",)
    assert found["ece"].mean == pytest.approx(10.5)
    assert (found["ece"].runner_up, found["ece"].runner_up_mean) == ("fcl", pytest.approx(20.5))
    assert set(found["error"].objectives) == {"ce", "focal", "fcl"}
    assert found["error"].runner_up is None
    said = study_sentences(evidence).best
    assert any(line.startswith("focal has the lowest ECE (10.50 %)") for line in said)
    assert any(line.endswith("share the lowest error (20.00 %).") for line in said)
    for lam in range(3):
        add(store, spec("fcl", 0, gamma=1.0, lam=float(lam)), changed={"error": 0.2}, rows=60)
    assert any("objectives share the lowest error" in line for line in study_sentences(evidence_of(store)).best)


def test_numbers_that_are_not_finite_do_not_lead(tmp_path):
    store = study_store(tmp_path, objectives=("fcl",), seeds=(0, 1))
    for seed in (0, 1):
        add(store, spec("ce", seed), changed={"nll": math.nan, "ece": -math.inf})
    evidence = evidence_of(store)
    found = {one.metric: one for one in leaders(evidence)}
    assert "nll" not in found  # one objective alone has no rival
    assert "ece" not in found
    assert any("nll is nan" in line for line in study_sentences(evidence).unknown)


def test_several_settings_are_counted(tmp_path):
    store = study_store(tmp_path, seeds=(0, 1))
    for objective in ("ce", "fcl"):
        for seed in (0, 1):
            add(store, spec(objective, seed, data_set="letters"))
    found = study_sentences(evidence_of(store))
    (line,) = found.best
    assert line.startswith("Of 10 pairs of a setting and a metric, the lowest mean belongs to fcl in 8")
    table = leaders_table(found.leaders)
    assert set(table.columns["setting"]) == {"digits/small_cnn", "letters/small_cnn"}
    assert not any(line.startswith("Only ") for line in found.unknown)


def test_nothing_stored_is_said():
    found = study_sentences(gather([], title="A study", missing=[nothing_stored()]))
    assert found.ran == "No run is stored yet."
    assert (found.best, found.significant, found.unknown) == ((), (), ("The store holds no whole run.",))
    assert leaders_table(found.leaders) is None


def test_what_runs_note_is_said_once_with_how_many(tmp_path):
    store = Store(tmp_path)
    for seed in (0, 1):
        add(store, spec("ce", seed), rows=12, sharpness=30.0)  # so few and so sure that no temperature is best
    evidence = evidence_of(store)
    notes = {note.text for run in evidence.runs for note in run.notes}
    said = study_sentences(evidence).unknown
    assert all(sum(note in line for line in said) == 1 for note in notes)
