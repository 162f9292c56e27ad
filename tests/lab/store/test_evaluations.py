"""What trained networks are asked, and how the answers are kept: apart from the training, whole, never changed."""

import json
import shutil

import pytest
from support.forked import STRIDES, killed_at
from support.prediction_samples import sample
from support.stored_runs import contents, epochs_file, evaluation, flip_a_bit, record, spec, stored

from focalcal.lab.store import Evaluation, Evaluations, RunProblem, Store
from focalcal.lab.store.merge import runs_of


def test_one_form_for_one_meaning_and_what_is_missing():
    one = Evaluations(shifts=["svhn", "cifar10c", "svhn"], severities=[5, 1.0, 5], saliency=8.0)
    assert one == Evaluations(shifts=("cifar10c", "svhn"), severities=(1, 5), saliency=8)
    assert Evaluations.from_dict(json.loads(json.dumps(one.as_dict()))) == one
    assert one.names == ("cifar10c-1", "cifar10c-5", "svhn", "saliency-8")
    assert {name: each.names for name, each in one.apart().items()} == {name: (name,) for name in one.names}
    assert Evaluations(keep_weights=True).names == ()
    assert one.missing_from(["svhn", "other", "saliency-3"]) == ("cifar10c-1", "cifar10c-5", "saliency-8")
    assert one.missing_from(["svhn", "cifar10c-5", "cifar10c-1", "saliency-10"]) == ()  # maps of more images will do


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"shifts": "svhn"}, "shifts must be a list, got 'svhn'"),
        ({"severities": [6]}, r"severities\[0\] must be less than or equal to 5, got 6"),
        ({"severities": []}, "severities must hold at least one"),
        ({"keep_weights": "yes"}, "keep_weights must be True or False"),
    ],
)
def test_what_is_no_evaluation_is_refused(values, message):
    with pytest.raises(ValueError, match=message):
        Evaluations(**values)


def test_an_evaluation_is_read_with_the_rest_and_leaves_the_rest_as_it_was(store, tmp_path):
    before = stored(store, spec(), epochs=epochs_file(tmp_path))
    store.runs()  # so that there is a cache to be misled by
    files = contents(before.path)
    after = store.add_evaluation(before.key, evaluation(files={"maps.npz": b"drawn"}))
    kept = contents(before.path)
    assert {name: kept[name] for name in files} == files
    assert after.evaluations == ("svhn",)
    assert after.splits == ("val", "test", "svhn")
    assert after.metrics("svhn") == {"auroc": 0.75}
    assert after.metrics("test") == before.metrics("test")
    assert after.predictions("svhn").equals(sample(5, 3, split="svhn", seed=7))
    assert after.file("maps.npz").read_bytes() == b"drawn"
    assert after.record["evaluations"] == {"svhn": {"provenance": {"weights": "abc"}, "seconds": 0.5}}
    (listed,) = store.runs()
    assert (listed.evaluations, listed.metrics("svhn")) == (("svhn",), {"auroc": 0.75})
    assert store.sql("select value from metrics where split = 'svhn' and metric = 'auroc'").fetchall() == [(0.75,)]
    assert store.problems(contents=True) == []


def test_a_cell_is_complete_when_it_has_the_evaluations_that_are_asked_for(store):
    asked = Evaluations(shifts=("svhn",))
    for seed in range(3):
        stored(store, spec(seed))
    store.add_evaluation(spec(1).key, evaluation())
    wanted = [spec(seed) for seed in range(4)]
    assert store.missing(wanted) == [spec(3)]
    assert store.missing(wanted, asked) == [spec(0), spec(2), spec(3)]
    assert store.has(spec(0))
    assert not store.has(spec(0), asked)
    assert store.has(spec(1), asked)


@pytest.mark.parametrize("name", ["", "a b", "../x", ".hidden", "x" * 101])
def test_a_name_must_be_a_folders(name):
    with pytest.raises(ValueError, match="name must be at most 100 letters, digits"):
        evaluation(name, split="a")


def test_one_that_is_there_stays(store):
    run = stored(store, spec())
    store.add_evaluation(run.key, evaluation(auroc=0.5))
    assert store.add_evaluation(run.key, evaluation(auroc=0.9)).metrics("svhn")["auroc"] == 0.5
    again = store.add_evaluation(run.key, evaluation("other", split="test"))
    assert again.metrics("test") == run.metrics("test")  # a split that the run has is the run's


def test_maps_of_more_images_take_the_place_of_fewer(store):
    run = stored(store, spec())
    for count in (10, 9):
        made = Evaluation(
            f"saliency-{count}",
            {"metrics": {}, "provenance": {}, "seconds": 0.0},
            files={"saliency.npz": str(count).encode()},
        )
        run = store.add_evaluation(run.key, made)
    assert run.evaluations == ("saliency-9", "saliency-10")
    assert run.file("saliency.npz").read_bytes() == b"10"


@STRIDES
def test_killed_before_any_touch_of_a_file_there_is_a_whole_evaluation_or_none(store, stride):
    seen = {"none": 0, "whole": 0}
    step = 1
    while True:
        run = stored(store, spec(step))
        files = contents(run.path)
        if not killed_at(step, lambda key=run.key: store.add_evaluation(key, evaluation())):
            break
        assert store.problems(contents=True) == []
        seen["whole" if store.run(run.key).evaluations else "none"] += 1
        assert store.add_evaluation(run.key, evaluation()).metrics("svhn") == {"auroc": 0.75}  # it can be added yet
        kept = contents(run.path)
        assert {name: kept[name] for name in files} == files
        step += stride
    assert seen["none"] * stride > 5
    assert seen["whole"] > 0
    assert store.problems(contents=True) == []


def test_a_damaged_evaluation_is_missing_and_the_run_is_not(store):
    asked = Evaluations(shifts=("svhn",))
    run = stored(store, spec())
    store.add_evaluation(run.key, evaluation())
    store.runs()
    path = run.path / "evaluations" / "svhn"
    (path / "predictions" / "svhn.npz").write_bytes(b"cut")
    for _ in range(2):  # as read, and as cached
        (problem,) = store.problems()
        assert (problem.path, problem.kind) == (path, "damaged")
        assert "focalcal evaluate" in problem.message
    assert store.has(spec())
    assert not store.has(spec(), asked)
    again = store.add_evaluation(run.key, evaluation(auroc=0.5))
    assert again.metrics("svhn")["auroc"] == 0.5
    assert [one.kind for one in store.problems()] == ["set aside"]


def test_a_changed_bit_is_noticed(store):
    run = store.add_evaluation(stored(store, spec()).key, evaluation())
    path = run.path / "evaluations" / "svhn" / "predictions" / "svhn.npz"
    content = bytearray(path.read_bytes())
    content[-1] ^= 1
    path.write_bytes(content)
    with pytest.raises(RunProblem, match=r"predictions/svhn.npz was changed.*the run itself is whole"):
        run.predictions("svhn")
    assert store.has(spec())
    assert not store.has(spec(), Evaluations(shifts=("svhn",)))  # so that it is evaluated again
    runs, (problem,) = store.survey(contents=True)
    assert problem.path == path.parent.parent
    assert len(runs) == 1
    assert store.add_evaluation(run.key, evaluation()).predictions("svhn").equals(sample(5, 3, split="svhn", seed=7))


def test_an_evaluation_of_another_run_is_none_of_this(store):
    run, other = stored(store, spec(0)), stored(store, spec(1))
    store.add_evaluation(run.key, evaluation())
    shutil.copytree(run.path / "evaluations", other.path / "evaluations")
    assert store.run(other.key).evaluations == ()
    (problem,) = store.problems()
    assert f"of run {run.key}" in problem.message


def test_of_two_stores_that_agree_the_run_with_more_evaluations_is_taken(tmp_path):
    plain, asked = (Store(tmp_path / name) for name in ("plain", "asked"))
    for one in (plain, asked):
        stored(one, spec())
    asked.add_evaluation(spec().key, evaluation())
    for order in ([plain, asked], [asked, plain]):
        (run,), told = runs_of(order)
        assert told == []
        assert run.evaluations == ("svhn",)


def test_weights_are_compared_by_whoever_reads_them(store, tmp_path):
    weights = tmp_path / "weights.pt"
    weights.write_bytes(b"x" * 1000)
    run = store.add(spec(), record=record(), epochs=None, predictions=[], files={"weights.pt": weights})
    flip_a_bit(run.path / "weights.pt", 500)
    again = Store(store.path)
    assert again.has(spec())  # without reading gigabytes of weights whenever a study starts
    with pytest.raises(RunProblem, match=r"weights\.pt was changed"):
        again.run(run.key).file("weights.pt")
    assert [one.kind for one in again.problems(contents=True)] == ["damaged"]
