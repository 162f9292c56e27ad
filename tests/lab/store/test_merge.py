from support import synthetic_study as synthetic

from focalcal.lab.store import Store
from focalcal.lab.store.diagnostics import Disagreement, RunFailure
from focalcal.lab.store.merge import runs_of


def test_stores_are_joined_and_what_agrees_is_not_mentioned(tmp_path):
    one = synthetic.study_store(tmp_path / "one", objectives=("ce",), seeds=(0, 1))
    other = synthetic.study_store(tmp_path / "other", objectives=("ce",), seeds=(1, 2))
    runs, told = runs_of([one, other])
    assert sorted(run.spec.seed for run in runs) == [0, 1, 2]
    assert told == []


def test_a_clash_is_named_and_the_first_store_wins(tmp_path):
    stores = [Store(tmp_path / name) for name in ("one", "other")]
    for store, ece in zip(stores, (0.25, 0.5), strict=True):
        synthetic.add(store, synthetic.spec("fcl", 0), changed={"ece": ece})
    for order, expected in ((stores, 0.25), (stores[::-1], 0.5)):
        (run,), (disagreement,) = runs_of(order)
        sentence = str(disagreement)
        assert isinstance(disagreement, Disagreement)
        assert disagreement.key == run.key
        assert run.metrics("test")["ece"] == expected
        assert run.key[:12] in sentence
        assert f"test ece {expected}" in sentence
        assert str(stores[0].path) in sentence
        assert str(stores[1].path) in sentence
        assert "the first is used" in sentence


def test_damage_and_failures_are_told_unless_another_store_has_the_run(tmp_path):
    one = synthetic.study_store(tmp_path / "one", objectives=("ce",), seeds=(0,))
    failed = synthetic.spec("fcl", 0)
    one.record_failure(failed, kind="DivergedError", message="the loss\nis nan")
    broken = one.runs()[0]
    (broken.path / "record.json").write_text("{}")
    runs, findings = runs_of([one])
    assert runs == []
    assert {finding.key for finding in findings} == {broken.key, failed.key}
    told = [str(finding) for finding in findings]
    assert any("damaged" in line and broken.key in line for line in told)
    assert any(line.startswith(failed.key[:12]) and "the loss is nan" in line for line in told)
    other = synthetic.study_store(tmp_path / "other", objectives=("fcl",), seeds=(0,))
    assert not any(isinstance(finding, RunFailure) for finding in runs_of([one, other])[1])
