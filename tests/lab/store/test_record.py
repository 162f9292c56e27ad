"""Runs that were trained in loops of somebody's own are stored, compared and reported like every other."""

import json
import math
from dataclasses import replace

import numpy as np
import pytest
import torch
from sklearn.linear_model import LogisticRegression
from support.prediction_samples import sample
from support.small_runs import digits_spec
from support.stored_runs import spec
from typer.testing import CliRunner

from focalcal.cli.app import app
from focalcal.lab.data import load_data
from focalcal.lab.store import Evaluations, Store
from focalcal.lab.store.split_metrics import split_metrics
from focalcal.lab.studies.evaluate import NoWeightsError, evaluate_run
from focalcal.lab.studies.run import run_spec
from focalcal.losses import FocalLoss
from focalcal.metrics import summary
from focalcal.predictions import Predictions

SEEDS = (0, 1)


def focalcal(*arguments):
    return CliRunner().invoke(app, [str(argument) for argument in arguments])


def by_sklearn(data, seed):
    largest = data.train.inputs.max()
    inputs = {split: examples.inputs.reshape(len(examples), -1) / largest for split, examples in data.splits.items()}
    rows = np.random.default_rng(seed).choice(len(inputs["train"]), 300, replace=False)
    model = LogisticRegression(C=0.01, max_iter=500).fit(inputs["train"][rows], data.train.labels[rows])
    return {
        split: Predictions(probs=model.predict_proba(inputs[split]), labels=data.splits[split].labels, split=split)
        for split in ("val", "test")
    }


def by_torch(data, seed):
    """The test predictions, and the mean loss of each epoch."""
    torch.manual_seed(seed)
    model = torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(64, 10))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    images, labels = torch.as_tensor(data.train.inputs).float(), torch.as_tensor(data.train.labels)
    epochs = []
    for _ in range(3):
        losses = []
        for rows in torch.randperm(len(images)).split(100):
            loss = FocalLoss(gamma=2.0)(model(images[rows]), labels[rows])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            losses.append(loss.detach())
        epochs.append({"lr": 0.01, "train": {"loss": torch.stack(losses).mean()}})
    with torch.no_grad():
        logits = model(torch.as_tensor(data.test.inputs).float())
    return Predictions(logits=logits, labels=data.test.labels, split="test"), epochs


@pytest.fixture(scope="module")
def mixed(tmp_path_factory):
    """Two runs that this package trained, two of scikit-learn, and two of a loop in torch."""
    folder = tmp_path_factory.mktemp("mixed")
    store, data = Store(folder / "store"), load_data("digits")
    place = {"data_set": "digits", "model": "mlp"}
    for seed in SEEDS:
        run_spec(digits_spec("ce", seed=seed, protocol={"test_examples": None}), store)
        store.record(name="logistic", predictions=by_sklearn(data, seed), seed=seed, options={"C": 0.01}, **place)
        test, epochs = by_torch(data, seed)
        store.record(name="my_focal", predictions=test, seed=seed, options={"gamma": 2}, epochs=epochs, **place)
    return store


def test_recorded_runs_have_the_metrics_of_their_predictions(mixed):
    recorded = [run for run in mixed.runs() if run.spec.objective != "ce"]
    assert len(recorded) == 4
    for run in recorded:
        for split in run.splits:
            part = run.predictions(split)
            expected = summary(labels=part.labels, **{part.kind: part.scores}).as_dict()
            assert run.metrics(split) == pytest.approx(expected, nan_ok=True)
    assert mixed.problems(contents=True) == []


def test_lists_and_queries_show_them_beside_trained_ones(mixed):
    listed = focalcal("runs", "list", "--store", mixed.path, "--data-set", "digits", "--model", "mlp")
    assert listed.exit_code == 0, listed.output
    assert [listed.stdout.count(name) for name in (" ce ", "logistic", "my_focal")] == [2, 2, 2]
    rows = mixed.sql("select objective, C, gamma, count(ece) from test_metrics group by all order by all").fetchall()
    assert rows == [("ce", None, None, 2), ("logistic", 0.01, None, 2), ("my_focal", None, 2.0, 2)]
    epochs = mixed.sql("select epoch, count(train_loss) from epochs join runs using (key) where gamma = 2 group by 1")
    assert sorted(epochs.fetchall()) == [(1, 2), (2, 2), (3, 2)]


def test_they_are_compared_with_trained_ones_seed_by_seed(mixed):
    ended = focalcal("compare", "ce", "--store", mixed.path, "--metrics", "nll", "--json")
    assert ended.exit_code == 0, ended.output
    families = {family["baseline"]: family["comparisons"][0] for family in json.loads(ended.stdout)}
    assert set(families) == {"logistic", "my_focal"}
    values = {(run.spec.objective, run.spec.seed): run.metrics("test")["nll"] for run in mixed.runs()}
    for baseline, comparison in families.items():
        assert comparison["seeds"] == list(SEEDS)
        differences = [values["ce", seed] - values[baseline, seed] for seed in SEEDS]
        assert comparison["test"]["mean"] == pytest.approx(np.mean(differences))


def test_a_report_has_a_row_of_each(mixed, tmp_path):
    ended = focalcal("report", "--store", mixed.path, "--out", tmp_path / "out", "--no-figures")
    assert ended.exit_code == 0, ended.output
    table = (tmp_path / "out" / "tables" / "ece.csv").read_text()
    assert all(name in table for name in ("ce", "logistic", "my_focal"))
    page = (tmp_path / "out" / "report.html").read_text("utf-8")
    assert "logistic" in page
    assert "elsewhere" in page  # where the runs come from


def test_their_networks_cannot_be_evaluated(mixed, store, tmp_path):
    (recorded, *_) = (run for run in mixed.runs() if run.trained_elsewhere)
    assert sum(run.trained_elsewhere for run in mixed.runs()) == 4
    ended = focalcal("evaluate", recorded.key, "--saliency", 2, "--store", mixed.path)
    assert ended.exit_code == 1
    assert "was trained elsewhere and recorded" in ended.stderr
    torch.save({}, tmp_path / "weights.pt")  # which look like those of a run of ours
    run = store.record(name="mine", predictions=sample(split="test"), seed=0, weights=tmp_path / "weights.pt")
    with pytest.raises(NoWeightsError, match=r"predict with it yourself, and add that by Store\.add_evaluation"):
        evaluate_run(run, store, Evaluations(saliency=2))


@pytest.mark.parametrize("part", [{"name": "a\0b"}, {"data_set": "a\0b"}, {"model": "a\0b"}, {"options": {"x": "a\0b"}},
                                  {"options": {"a\0b": 1}}])  # fmt: skip
def test_a_name_with_nul_is_refused(store, part):
    with pytest.raises(ValueError, match=r"must have no NUL character, got 'a\\x00b'; leave it out"):
        store.record(**({"name": "mine", "predictions": sample(split="test"), "seed": 0} | part))
    assert store.runs() == []


def test_recording_again_changes_nothing_and_other_predictions_are_refused(store):
    first = store.record(name="mine", predictions=sample(split="test"), seed=0)
    assert store.record(name="mine", predictions=sample(split="test"), seed=0).key == first.key
    assert len(store.runs()) == 1
    for other in (sample(split="test", seed=9), {"test": sample(split="test"), "val": sample(split="val")}):
        with pytest.raises(ValueError, match=r"was stored with, got others of .*; give another name, seed or options"):
            store.record(name="mine", predictions=other, seed=0)
    assert first.predictions("test").equals(store.run(first.key).predictions("test"))


def test_everything_that_says_what_was_run_makes_another_run_none_of_which_is_a_trained_one(store):
    trained = spec()
    base = {"seed": trained.seed, "options": dict(trained.objective_options), "training": trained.training}
    base |= {"name": trained.objective, "data_set": trained.data_set, "model": trained.model}
    changes = {
        "name": "yours",
        "seed": 1,
        "options": {"gamma": 2},
        "data_set": "c",
        "model": "d",
        "training": {"lr": 2},
    }
    runs = [store.record(predictions=sample(), **{**base, **dict([change])}) for change in changes.items()]
    runs.append(store.record(predictions=sample(), **base))
    assert len({run.key for run in runs}) == len(store.runs()) == 7
    assert not store.has(trained)
    assert replace(runs[-1].spec, training=trained.training) == trained


def test_epochs_weights_and_provenance_are_kept(store, tmp_path):
    weights = tmp_path / "model.bin"
    weights.write_bytes(b"layers")
    epochs = [{"train": {"loss": torch.tensor(0.5)}}, {"train": {"loss": np.float32("nan")}, "note": "diverged"}]
    epochs.append({"train": {"loss": math.inf}})
    run = store.record(
        name="mine",
        predictions=sample(),
        seed=0,
        epochs=iter(epochs),
        weights=weights,
        seconds=2.5,
        provenance={"machine": "laptop"},
    )
    assert [epoch["epoch"] for epoch in run.epochs()] == [1, 2, 3]
    assert [epoch["train"]["loss"] for epoch in run.epochs()] == [0.5, None, "Infinity"]
    assert run.file("model.bin").read_bytes() == b"layers"
    assert (run.record["epochs"], run.record["seconds"]) == (3, 2.5)
    assert run.record["provenance"]["recorded"]["machine"] == "laptop"
    assert not list(store.path.glob("tmp/*"))


def test_several_labels_are_named(store):
    part = sample(multilabel=True)
    names = [f"label{k}" for k in range(part.n_classes)]
    run = store.record(name="mine", predictions=part, seed=0, classes=names)
    assert run.metrics("test") == pytest.approx(split_metrics(part, names), nan_ok=True)
    assert "ece/label0" in run.metrics("test")


@pytest.mark.parametrize(
    ("change", "error", "message"),
    [
        ({"name": ""}, TypeError, "name must be a string"),
        ({"seed": -1}, ValueError, "seed must be greater than or equal to 0"),
        ({"predictions": []}, TypeError, "predictions must be Predictions, or a mapping from splits"),
        ({"predictions": {}}, TypeError, "predictions must be Predictions, or a mapping from splits"),
        ({"predictions": {"test": [0.5]}}, TypeError, r"predictions\['test'\] must be Predictions, got list"),
        ({"predictions": {"val": sample(split="test")}}, ValueError, "must be of the split 'val', got 'test'"),
        ({"classes": ["a"]}, ValueError, "classes must name the 3 classes of the predictions of 'test', got 1"),
        ({"epochs": [0.5]}, TypeError, "epochs must be mappings, one per epoch, got 0.5"),
        ({"epochs": [{}, {"train": 0.5}]}, ValueError, r"epochs\[1\]: train must be a number, or for train, val"),
        ({"epochs": [{"model": object()}]}, TypeError, "epochs must hold numbers and text, got <object"),
        ({"weights": "nowhere.pt"}, FileNotFoundError, "nowhere.pt"),
    ],
)
def test_what_cannot_be_recorded_leaves_nothing_behind(store, change, error, message):
    with pytest.raises(error, match=message):
        store.record(**({"name": "mine", "predictions": sample(6, 3, split="test"), "seed": 0} | change))
    assert store.runs() == store.problems() == []
    assert not list(store.path.glob("tmp/*"))
