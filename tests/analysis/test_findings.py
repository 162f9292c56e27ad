"""Findings are numbers, whatever sentences say of them."""

from support.synthetic_study import add, spec, study_store

from focalcal.analysis.evidence import gather, reading_order
from focalcal.analysis.findings import study_findings
from focalcal.results import Store


def findings_of(store):
    return study_findings(gather(reading_order(store.runs()), title="A study"))


def test_three_seeds_leave_no_test_that_could_be_significant(tmp_path):
    findings = findings_of(study_store(tmp_path))
    assert (findings.runs, findings.seeds, findings.settings) == (9, (0, 1, 2), ("digits/small_cnn",))
    tested = findings.significance
    assert tested.hopeless == tested.comparisons == 2 * 4
    assert (tested.tests, tested.seeds, tested.floor) == (4, (3,), 2 / 2**3)
    assert tested.seeds_needed == 8  # 4 metrics * 2 / 2^8 <= 0.05 < 4 * 2 / 2^7


def test_ten_seeds_count_verdicts_and_name_the_clear_ones(tmp_path):
    tested = findings_of(study_store(tmp_path, objectives=("ce", "fcl"), seeds=range(10))).significance
    (pair,) = tested.pairs
    assert (pair.candidate, pair.baseline, tested.hopeless) == ("fcl", "ce", 0)
    assert pair.counts == {"better": 4, "worse": 0, "indistinguishable": 0}
    assert {verdict for _, _, verdict in pair.clear} == {"better"}
    assert len(pair.clear) == 4


def test_one_objective_is_not_tested(tmp_path):
    store = Store(tmp_path)
    add(store, spec("ce", 0))
    findings = findings_of(store)
    assert findings.significance is None
    assert findings.leaders == ()
    assert [(gap.kind, gap.objectives) for gap in findings.gaps] == [("one seed", ("ce",))]


def test_what_a_gap_says_is_not_noted_again(tmp_path):
    store = study_store(tmp_path, objectives=("ce",), seeds=(0, 1))
    file = store.runs()[0].path / "predictions" / "test.npz"
    content = bytearray(file.read_bytes())
    content[len(content) // 2] ^= 1
    file.write_bytes(content)  # the same size, another content
    findings = findings_of(store)
    (gap,) = (gap for gap in findings.gaps if gap.kind == "unreadable")
    assert findings.notes
    assert gap.detail not in {note.note.detail for note in findings.notes}
