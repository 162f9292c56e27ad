"""Stored runs are asked more, from their weights: nothing is trained again, and nothing that is stored changes."""

import shutil
from dataclasses import replace

import numpy as np
import pytest
import torch
from support.data_folders import FABRICATED, cifar_batch, pixels
from support.small_runs import digits_spec
from support.stored_runs import contents

from focalcal.lab.store import Evaluations, Protocol, Store
from focalcal.lab.store.run_folder import sha256
from focalcal.lab.studies import parse_study
from focalcal.lab.studies.evaluate import NoWeightsError, evaluate_run, evaluate_runs
from focalcal.lab.studies.executors.local import LocalExecutor
from focalcal.lab.studies.grid import run_grid
from focalcal.lab.studies.run import run_spec
from focalcal.lab.studies.spec_builder import override_recipe, spec_of
from focalcal.lab.training import recipe

SVHN = Evaluations(shifts=("svhn",))
BOTH = Evaluations(shifts=("svhn",), saliency=3)
WEIGHTS, WITHOUT = Evaluations(keep_weights=True), Evaluations(keep_weights=False)


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    folder = tmp_path_factory.mktemp("data")
    FABRICATED["cifar10"](folder)
    FABRICATED["svhn"](folder)
    return folder


def cifar_spec(seed=0):
    small = replace(recipe("cifar10_resnet8_lite"), epochs=1, batch_size=16)
    protocol = Protocol(train_examples=40, test_examples=10, allow_partial=True)
    return spec_of(small, "ce", {}, seed=seed, protocol=protocol)


@pytest.fixture(scope="module")
def trained(data, tmp_path_factory):
    """A store with a run whose weights were kept and one whose were not."""
    store = Store(tmp_path_factory.mktemp("trained"))
    run_spec(cifar_spec(0), store, evaluations=WEIGHTS, data_dir=data)
    run_spec(cifar_spec(1), store, evaluations=WITHOUT, data_dir=data)
    return store


@pytest.fixture
def store(trained, tmp_path):
    shutil.copytree(trained.path, tmp_path / "store")
    return Store(tmp_path / "store")


def test_the_training_stays_as_it_is_to_the_bit(store, data):
    run = store.run(cifar_spec().key)
    files, drawn = contents(run.path), torch.get_rng_state()
    told = []
    after = evaluate_run(run, store, BOTH, data_dir=data, report=told.append)
    kept = contents(run.path)
    assert {name: kept[name] for name in files} == files
    assert after.evaluations == ("saliency-3", "svhn")
    assert torch.equal(torch.get_rng_state(), drawn)
    assert [(one.note, one.done) for one in told][-1] == ("evaluated", 1.0)
    weights = after.record["evaluations"]["svhn"]["provenance"]["weights"]
    assert weights == sha256(run.file("weights.pt"))
    assert store.problems(contents=True) == []


def test_asked_later_it_answers_as_right_after_the_training(store, data, tmp_path):
    later = evaluate_run(store.run(cifar_spec().key), store, BOTH, data_dir=data)
    at_once = run_spec(cifar_spec(), Store(tmp_path / "other"), evaluations=BOTH, data_dir=data)
    assert later.evaluations == at_once.evaluations
    one, other = (run.predictions("svhn") for run in (later, at_once))
    np.testing.assert_allclose(one.logits, other.logits, rtol=1e-5, atol=1e-5)
    assert one.ids.tolist() == other.ids.tolist()
    assert later.metrics("svhn") == pytest.approx(at_once.metrics("svhn"), rel=1e-4)
    maps = [np.load(run.file("saliency.npz"))["maps"] for run in (later, at_once)]
    np.testing.assert_allclose(*maps, rtol=1e-3, atol=1e-6)


def test_what_is_there_is_not_made_again(store, data, tmp_path):
    run = evaluate_run(store.run(cifar_spec().key), store, SVHN, data_dir=data)
    files = contents(run.path)
    again = evaluate_run(run, store, SVHN, data_dir=tmp_path)  # where there is nothing to evaluate on
    assert contents(run.path) == files
    assert run_spec(cifar_spec(), store, evaluations=SVHN, data_dir=tmp_path).evaluations == again.evaluations


def test_without_weights_it_is_refused_in_one_sentence(store, data):
    run = store.run(cifar_spec(1).key)
    with pytest.raises(NoWeightsError) as refused:
        evaluate_run(run, store, SVHN, data_dir=data)
    message = str(refused.value)
    assert message.startswith(f"run {run.key[:12]} (cifar10/resnet8 ce seed 1) was stored without its weights")
    assert f"focalcal runs rm {run.key[:12]}" in message
    assert "\n" not in message
    with pytest.raises(NoWeightsError):
        run_spec(cifar_spec(1), store, evaluations=SVHN, data_dir=data)
    assert store.has(cifar_spec(1))


def test_of_several_runs_those_that_can_are_evaluated(store, data):
    runs = [store.run(cifar_spec(seed).key) for seed in (1, 0)]
    refused, added = evaluate_runs(runs, store, SVHN, data_dir=data)
    assert (refused.added, added.added) == ((), ("svhn",))
    assert "without its weights" in refused.refused
    assert added.refused is None


def test_other_data_than_the_runs_are_refused(store, data, tmp_path):
    shutil.copytree(data, tmp_path / "data")
    cifar_batch(tmp_path / "data" / "cifar-10-batches-py" / "test_batch", 20, 10, b"labels", seed=77)
    run = store.run(cifar_spec().key)
    with pytest.raises(ValueError, match=f"cifar10 must be what run {run.key[:12]} was tested on"):
        evaluate_run(run, store, SVHN, data_dir=tmp_path / "data")
    assert store.run(run.key).evaluations == ()


STUDY = """
title = "small"
seeds = [0]
[[settings]]
recipe = "cifar10_resnet8_lite"
epochs = 1
batch_size = 16
[[objectives]]
name = ["ce", "fcl"]
[protocol]
train_examples = 40
test_examples = 10
allow_partial = true
"""


def test_studies_that_differ_in_what_they_ask_train_once(data, tmp_path):
    first = parse_study(STUDY + "keep_weights = true\n")
    then = parse_study(STUDY + "shifts = ['svhn']\nsaliency = 2\n")
    assert first.specs() == then.specs()
    store, executor = Store(tmp_path / "store"), LocalExecutor(1, options={"data_dir": data})
    assert len(run_grid(first.specs(), store, executor=executor, evaluations=first.evaluations()).done) == 2
    files = contents(store.path / "runs")
    events = []
    outcome = run_grid(then.specs(), store, executor=executor, evaluations=then.evaluations(), on_event=events.append)
    assert len(outcome.done) == 2
    assert not [one for one in events if "epoch" in getattr(one, "note", "")]
    kept = contents(store.path / "runs")
    assert {name: kept[name] for name in files} == files
    assert {run.evaluations for run in store.runs()} == {("saliency-2", "svhn")}
    assert run_grid(first.specs(), store, executor=executor, evaluations=first.evaluations()).done == ()


def test_a_cell_that_cannot_be_evaluated_fails_and_the_other_is_trained_with_its_evaluations(data, tmp_path):
    study = parse_study(STUDY + "shifts = ['svhn']\n")
    store, executor = Store(tmp_path / "store"), LocalExecutor(1, options={"data_dir": data})
    bare, new = study.specs()
    run_spec(bare, store, evaluations=WITHOUT, data_dir=data)
    events = []
    outcome = run_grid(study.specs(), store, executor=executor, evaluations=study.evaluations(), on_event=events.append)
    assert (outcome.failed, outcome.done) == ((bare.key,), (new.key,))
    (failed,) = [one.message for one in events if type(one).__name__ == "Failed"]
    assert "was stored without its weights" in failed
    assert store.has(new, study.evaluations())


def test_another_test_set(store, data, tmp_path):
    path = tmp_path / "mine.npz"
    images, labels = pixels(12, 3, 32, 32, seed=3), np.arange(12, dtype=np.uint8) % 10
    np.savez(path, inputs=images, labels=labels)
    run = evaluate_run(store.run(cifar_spec().key), store, test_sets=[path], data_dir=data)
    assert run.evaluations == ("mine",)
    made = run.predictions("mine")
    assert np.asarray(made.labels).tolist() == labels.tolist()
    wrong = np.asarray(made.logits).argmax(1) != labels
    assert run.metrics("mine")["error"] == pytest.approx(wrong.mean())
    assert evaluate_run(run, store, test_sets=[path], data_dir=tmp_path).evaluations == ("mine",)
    np.savez(path, inputs=images[:3], labels=labels[:3])
    with pytest.raises(ValueError, match=r"has an evaluation mine of another file; rename mine\.npz"):
        evaluate_run(run, store, test_sets=[path], data_dir=data)


@pytest.mark.parametrize(
    ("name", "arrays", "message"),
    [
        ("svhn", {}, "must not be called svhn.npz"),
        ("a", {"inputs": np.zeros((2, 3, 8, 8), np.uint8), "labels": [0, 1]}, "inputs must be like those of cifar10"),
        ("a", {"inputs": np.zeros((2, 3, 32, 32)), "labels": [0, 1]}, r"uint8 \(N, 3, 32, 32\), got float64"),
        ("a", {"inputs": np.zeros((2, 3, 32, 32), np.uint8), "labels": [0, 10]}, "10"),
        ("a", {"inputs": np.zeros((2, 3, 32, 32), np.uint8), "labels": [0.5, 1]}, "labels must be int64"),
        ("a", {"images": [0]}, "must be an .npz file with the arrays inputs and labels"),
    ],
)
def test_what_is_no_test_set_is_refused(store, data, tmp_path, name, arrays, message):
    path = tmp_path / f"{name}.npz"
    np.savez(path, **arrays)
    with pytest.raises(ValueError, match=message):
        evaluate_run(store.run(cifar_spec().key), store, test_sets=[path], data_dir=data)
    assert store.run(cifar_spec().key).evaluations == ()


@pytest.mark.filterwarnings("ignore::focalcal.lab.data.errors.DataSetWarning")  # of few words
@pytest.mark.parametrize("kind", ["csv", "npz", "texts"])
def test_new_rows_are_read_as_the_runs_own_were(tmp_path, kind):
    """Standardised, encoded or looked up by the training rows: old rows given as new ones have the same predictions."""
    files, rows = [tmp_path / f"{name}.{'npz' if kind == 'npz' else 'csv'}" for name in ("old", "new")], []
    generator = np.random.default_rng(0)
    features = generator.normal(3, 5, size=(150, 4))
    labels = (features[:, 0] > 3).astype(int)
    for k in range(150):
        words = f"{'high' if labels[k] else 'low'} word{k % 40}"
        code = f"0{k % 7}" if k % 7 != 1 else "none"  # of the new rows, each seventh one, 00: a number if read alone
        rows.append([*features[k], "red" if k % 3 else "blue", code] if kind == "csv" else [words])
    for file, part in zip(files, (slice(None), slice(0, 150, 7)), strict=True):
        if kind == "npz":
            np.savez(file, inputs=features[part], labels=labels[part])
        else:
            names = [*"abcd", "colour", "code", "label"] if kind == "csv" else ["text", "label"]
            lines = [[*row, f"class {label}"] for row, label in zip(rows[part], labels[part], strict=True)]
            if file.stem == "old":  # a column that is no input, which the new rows do not have
                names, lines = ["note", *names], [[k, *line] for k, line in enumerate(lines)]
            file.write_text("\n".join(",".join(map(str, line)) for line in [names, *lines]))
    model = {"model": "dan", "model_options": {}} if kind == "texts" else {"model_options": {"hidden": [8]}}
    options = {"path": str(files[0]), **({"encoding": "one_hot", "drop": "note"} if kind == "csv" else {})}
    small = override_recipe(
        recipe("digits_mlp_lite"), {"data_set": kind, "data_options": options, "classes": 2, "epochs": 1, **model}
    )
    store = Store(tmp_path / "store")
    run = run_spec(spec_of(small, "ce", {}, seed=0), store)
    assert "weights.pt" in run.files, "small ones are kept without being asked for"
    made = evaluate_run(run, store, test_sets=[files[1]]).predictions("new")
    known = {
        one: (logits, label)
        for split in ("train", "val", "test")
        for part in (run.predictions(split),)
        for one, logits, label in zip(part.ids.tolist(), part.logits, part.labels, strict=True)
    }
    for k, (logits, label) in enumerate(zip(made.logits, made.labels, strict=True)):
        old_logits, old_label = known[f"old-{7 * k}"]
        assert label == old_label
        np.testing.assert_allclose(logits, old_logits, atol=1e-5)
    if kind == "csv":
        files[1].write_text(files[1].read_text().replace("class 1", "class 9"))
        with pytest.raises(ValueError, match=r"strange.csv must have the classes of old.csv, got class 9 too"):
            evaluate_run(run, store, test_sets=[files[1].rename(tmp_path / "strange.csv")])
        header = "a,b,c,d,colour,code,label\n"
        for text, message in (
            (header, "odd.csv must have rows, got none"),
            (
                f"{header}1,2,3,4,red,00,class 1\n1,2,3,4,red,00,\n",
                "odd.csv must have a label in every row, got none in row 1",
            ),
            ("a,a,b,c,d,colour,code,label\n1,1,2,3,4,red,00,class 1\n", "odd.csv must have .* names, got 'a' twice"),
        ):
            (tmp_path / "odd.csv").write_text(text)
            with pytest.raises(ValueError, match=message):
                evaluate_run(run, store, test_sets=[tmp_path / "odd.csv"])


def test_networks_without_maps_are_refused_before_data_are_read(tmp_path):
    store = Store(tmp_path)
    with pytest.raises(ValueError, match="saliency must be 0 for mlp"):
        run_spec(digits_spec(), store, evaluations=Evaluations(saliency=2))
    assert not store.has(digits_spec())
