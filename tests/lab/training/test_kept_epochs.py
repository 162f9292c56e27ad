"""Which epoch a run keeps: four rules from one training, with averaged weights, resumed, and stored."""

import numpy as np
import pytest
import torch
from support.training_runs import same_weights, small_digits, small_recipe

from focalcal.lab.store import Store
from focalcal.lab.studies import run_spec, spec_of
from focalcal.lab.studies.spec_builder import recipe_of, training_of
from focalcal.lab.training import fit, predict
from focalcal.losses import CrossEntropyLoss, LabelSmoothingLoss
from focalcal.posthoc import epoch_scores

RULES = ("last", "nll", "error", "refined")
OVERFITTED = {"epochs": 12, "batch_size": 16}  # the rules keep four different epochs


@pytest.fixture(scope="module")
def data():
    return small_digits(train=60)


def test_every_rule_keeps_the_epoch_of_its_lowest_score(data):
    fitted = fit(small_recipe(**OVERFITTED), data, CrossEntropyLoss(), seed=0)
    scores = {
        "nll": [record["val"]["nll"] for record in fitted.epochs],
        "error": [record["val"]["error"] for record in fitted.epochs],
        "refined": [record["refined"]["nll"] for record in fitted.epochs],
    }
    expected = {"last": 12, **{rule: int(np.argmin(values)) + 1 for rule, values in scores.items()}}
    assert {rule: kept.epoch for rule, kept in fitted.kept.items()} == expected
    assert len(set(expected.values())) > 2  # else nothing is tested


@pytest.mark.parametrize("changed", [{}, {"averaging": 0.3}], ids=["plain", "averaged"])
def test_what_is_kept_is_what_the_network_said_after_that_epoch(data, changed):
    """The weights, the logits in one run that kept another epoch, and the temperature; label smoothing or not."""
    last = fit(small_recipe(**OVERFITTED, **changed), data, LabelSmoothingLoss(epsilon=0.1), seed=0)
    for rule in ("nll", "refined"):
        one = small_recipe(**OVERFITTED, **changed, keep=rule)
        fitted = fit(one, data, LabelSmoothingLoss(epsilon=0.1), seed=0)
        assert [record["train"] for record in fitted.epochs] == [record["train"] for record in last.epochs]
        epoch = fitted.kept[rule].epoch
        until = fit(small_recipe(**OVERFITTED | {"epochs": epoch}, **changed), data, LabelSmoothingLoss(0.1), seed=0)
        assert same_weights(fitted.model, until.model)
        for split in ("val", "test"):
            found = predict(fitted.model, data.splits[split], one, split=split).logits
            np.testing.assert_array_equal(fitted.outputs[split].logits[:, 0], found)
            np.testing.assert_array_equal(last.kept[rule].outputs[split].logits[:, 0], found)
        scores = epoch_scores(predict(fitted.model, data.val, one, split="val").logits, data.val.labels)
        assert fitted.calibrator.temperature == scores.temperature


def test_a_resumed_run_keeps_the_same(data, tmp_path):
    one = small_recipe(**OVERFITTED, keep="refined")
    whole = fit(one, data, CrossEntropyLoss(), seed=1)

    def stop(record, _):
        if record["epoch"] == 11:
            raise KeyboardInterrupt

    options = {"seed": 1, "folder": tmp_path, "checkpoint_seconds": 0.0}
    with pytest.raises(KeyboardInterrupt):
        fit(one, data, CrossEntropyLoss(), on_epoch=stop, **options)
    resumed = fit(one, data, CrossEntropyLoss(), **options)
    assert same_weights(resumed.model, whole.model)
    assert {rule: kept.record() for rule, kept in resumed.kept.items()} == {
        rule: kept.record() for rule, kept in whole.kept.items()
    }
    for rule in RULES:
        torch.testing.assert_close(
            resumed.kept[rule].outputs["test"].logits, whole.kept[rule].outputs["test"].logits, rtol=0, atol=0
        )


def test_one_stored_run_answers_all_four_rules(tmp_path):
    store = Store(tmp_path)
    runs = {}
    for rule in ("last", "refined"):
        one = small_recipe(epochs=6, data_options={"seed": 0}, keep=rule)
        runs[rule] = run_spec(spec_of(one, "ce", seed=0), store)
    told = runs["last"].record["kept"]
    assert told == runs["refined"].record["kept"]
    assert told["last"]["epoch"] == 6
    for rule in RULES:
        for split in ("val", "test"):
            mine, other = (run.kept(rule, split) for run in runs.values())
            np.testing.assert_array_equal(mine.logits, other.logits)
            np.testing.assert_array_equal(mine.ids, other.ids)
        scores = epoch_scores(runs["last"].kept(rule, "val").logits, runs["last"].kept(rule, "val").labels)
        assert told[rule]["refined_nll"] == pytest.approx(scores.refined_nll, rel=1e-9)
    refined = runs["refined"].predictions("test")
    np.testing.assert_array_equal(refined.logits, runs["last"].kept("refined").logits)
    with pytest.raises(ValueError, match=r"rule of run .* must be among 'last', .* got 'best'"):
        runs["last"].kept("best")


def test_the_key_names_a_rule_that_is_not_the_last_epochs():
    """So that runs from before there were rules keep theirs."""
    plain, refined = (small_recipe(keep=rule) for rule in ("last", "refined"))
    assert "keep" not in training_of(plain, "ce")
    assert training_of(refined, "ce")["keep"] == "refined"
    specs = [spec_of(one, "ce", seed=0) for one in (plain, refined)]
    assert specs[0].key != specs[1].key
    assert [recipe_of(spec) for spec in specs] == [plain, refined]


def test_what_cannot_be_followed_is_refused_before_training(data):
    def refused(message, recipe, data, loss=None, **options):
        with pytest.raises(ValueError, match=message):
            fit(recipe, data, loss or CrossEntropyLoss(), seed=0, on_step=lambda *_: pytest.fail("trained"), **options)

    refused("keep = 'refined' must have a validation split", small_recipe(keep="refined"), _without_validation(data))
    refused("evaluate_every must be below the 3 epochs", small_recipe(keep="nll"), data, evaluate_every=3)
    with pytest.raises(ValueError, match=r"'refine' is not a rule; did you mean 'refined'"):
        small_recipe(keep="refine")


def _without_validation(data):
    from dataclasses import replace

    return replace(data, val=data.val.none())
