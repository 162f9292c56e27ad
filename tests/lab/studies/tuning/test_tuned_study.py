"""A study with [tune]: equal budgets, what is chosen by, what is said, and the study that comes out."""

import json

import pytest
from support.noisy_networks import NoisyNetworks
from typer.testing import CliRunner

from focalcal.cli.app import app
from focalcal.lab.evidence.labels import run_labels
from focalcal.lab.store import Store
from focalcal.lab.studies import load_study, parse_study, run_study
from focalcal.lab.studies.tuning import tune_study
from focalcal.posthoc import operating_point

TEXT = """
title = "Does mine help?"
seeds = [3, 4]
candidate = "mine"

[tune]
trials = 5

[[settings]]
recipe = "digits_mlp_lite"
label = "Digits"

[[settings]]
recipe = "digits_small_cnn_lite"

[[objectives]]
name = "ce"

[[objectives]]
name = "ce"
label = "ce, refined"
training = { keep = "refined" }

[[objectives]]
name = "fcl"
gamma = 3
lam = { predicted = 0.5 }
label = "half"

[[objectives]]
name = "fcl"
label = "mine"
search = { lam = { low = 0.1, high = 10, log = true }, scale = ["paper", "matched"] }
"""


def noise(objective, options):
    """Least for lam = 0.5."""
    return 0.4 if objective == "ce" else 0.3 + 0.1 * abs(options["lam"] - 0.5)


@pytest.fixture
def store(tmp_path):
    return Store(tmp_path / "runs")


def tuned(store, text=TEXT, networks=None):
    return tune_study(parse_study(text, "mine.toml"), store, networks or NoisyNetworks(noise, factor=1.2))


@pytest.fixture(scope="module")
def searched(tmp_path_factory):
    """A search, what trained its networks, and the store."""
    networks = NoisyNetworks(noise, factor=1.2)
    store = Store(tmp_path_factory.mktemp("searched") / "runs")
    return tuned(store, networks=networks), networks, store


def test_every_objective_has_the_same_trials_at_the_same_learning_rates(searched):
    found, networks, _ = searched
    by_method = {}
    for trial in found.trials:
        by_method.setdefault((trial.method.place, trial.method.name), []).append(trial)
    assert len(by_method) == 8
    for place in ("Digits", "digits/small_cnn"):
        optimizers = {
            tuple((t.candidate.recipe.optimizer.lr, t.candidate.recipe.optimizer.weight_decay) for t in trials)
            for (where, _), trials in by_method.items()
            if where == place
        }
        assert len(optimizers) == 1, "all objectives see the same ones"
        assert len(set(next(iter(optimizers)))) == 5
    mine = [dict(trial.candidate.options) for trial in by_method["Digits", "mine"]]
    assert {options["gamma"] for options in mine} == {3}, "the setting's own, which is not searched"
    assert len({options["lam"] for options in mine}) == 5
    assert {options["scale"] for options in mine} == {"paper", "matched"}
    assert mine[0]["lam"] == 1, "the first trial has the defaults"
    assert {spec.seed for spec in networks.asked[: 5 * 8]} == {3}


def test_the_lowest_calibrated_validation_loss_is_chosen_and_its_seeds_are_trained(searched):
    found, networks, store = searched
    for chosen in found.chosen:
        trials = [trial for trial in found.trials if trial.method is chosen.method]
        nll = [trial.judgement.mean("nll", scaled=True) for trial in (chosen, *trials)]
        assert nll[0] == min(nll) < chosen.judgement.mean("nll", scaled=False)
    assert len(networks.asked) == 5 * 8 + 8, "the first seed of what is chosen is there"
    assert {spec.seed for spec in found.result.specs} == {3, 4}
    assert {trial.run.key for trial in found.chosen} <= {spec.key for spec in found.result.specs}
    again = load_study(found.file)
    assert again.candidate == "mine"
    assert [spec.key for spec in again.specs()] == [spec.key for spec in found.result.specs]
    assert (
        tuned(store, networks=networks).record()
        == found.record()
        == json.loads(found.file.with_suffix(".json").read_text())
    )
    assert len(networks.asked) == 5 * 8 + 8, "the same call trains nothing"


def test_what_was_chosen_is_compared_within_its_setting(searched):
    found, *_ = searched
    labels = set(run_labels(found.result.specs, found.result.study.labels()).values())
    assert labels == {
        (place, name) for place in ("Digits", "digits/small_cnn") for name in ("ce", "ce, refined", "half", "mine")
    }


def test_lam_is_a_multiple_of_what_the_best_cross_entropy_predicts(searched):
    found, *_ = searched
    best = {(trial.method.place, trial.method.name): trial for trial in found.chosen}
    predicted = operating_point(best["Digits", "ce"].run.predictions("val"), gamma=3.0, resamples=20).lam
    assert dict(best["Digits", "half"].candidate.options)["lam"] == pytest.approx(predicted / 2, rel=0.01)


def test_budgets_that_cannot_be_used_failures_and_missing_lams_are_said(store):
    text = TEXT.replace("trials = 5", "trials = 5\nlearning_rate = [0.5, 1, 2]\nweight_decay = [1]")
    found = tuned(store, text, NoisyNetworks(noise, factor=0.5))
    places = ("Digits", "digits/small_cnn")
    those = "; ".join(f"{place} {name}" for place in places for name in ("ce", "ce, refined"))
    (budget,) = [note for note in found.notes if "can use" in note]
    (lam,) = [note for note in found.notes if "lam = " in note]
    assert budget.startswith(f"{those}; Digits half; ")
    assert budget.endswith(": can use 3 of 5 trials, since the space has no more points")
    assert lam.startswith(f"{'; '.join(places)}: lam = 8 stands for the predicted one: no lam")
    found = tuned(Store(store.path.with_name("other")), networks=NoisyNetworks(noise, fail=("fcl",)))
    assert {trial.method.name for trial in found.chosen} == {"ce", "ce, refined"}
    (failed,) = [note for note in found.notes if "a result in 0 of 5 trials" in note]
    assert "digits/small_cnn mine" in failed


@pytest.mark.parametrize("stop_after", [34, 42])
def test_an_interrupted_search_goes_on(store, stop_after):
    networks = NoisyNetworks(noise, factor=1.2, stop_after=stop_after)
    assert tuned(store, networks=networks).interrupted
    assert not tuned(store, networks=networks).interrupted
    assert len(networks.asked) == 5 * 8 + 8


def test_a_study_that_is_to_be_searched_is_not_run_as_it_is(store):
    with pytest.raises(ValueError, match=r"mine.toml must have no \[tune\] .*`focalcal tune mine.toml` searches it"):
        run_study(parse_study(TEXT, "mine.toml"), store)
    plain = 'title = "t"\nseeds = [0]\n[[settings]]\nrecipe = "digits_mlp_lite"\n[[objectives]]\nname = "ce"'
    with pytest.raises(ValueError, match="tune must be given, got no such table"):
        tune_study(parse_study(plain), store)


def test_from_the_command_line(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    small = "epochs = 1\nbatch_size = 32\ntrain_examples = 128\ntest_examples = 120\n"
    text = TEXT.partition("[[objectives]]")[0].replace("candidate", "#") + '[[objectives]]\nname = "ce"\n'
    (tmp_path / "mine.toml").write_text(f"{text}\n[smoke]\n{small}")
    done = CliRunner().invoke(app, ["tune", "mine.toml", "--smoke", "--store", "runs", "--jobs", "1"])
    assert done.exit_code == 0, done.output
    assert "chosen: runs/tuning/mine-smoke-tuned.toml" in done.output
    assert (tmp_path / "runs/report/mine-smoke-tuned/report.html").exists()
    refused = CliRunner().invoke(app, ["tune", "mine.toml", "--lr", "--store", "runs"])
    assert refused.exit_code == 2
    assert "--lr is for the search of a recipe" in refused.output
    refused = CliRunner().invoke(app, ["tune", "mine.toml", "--sampler", "grid", "--store", "runs"])
    assert "--sampler is for the search of a recipe" in refused.output


@pytest.mark.parametrize("where", ['[1, "a"]', "{ low = -1, high = 2 }"])
def test_values_that_the_loss_refuses_are_faults_of_the_file(where):
    text = TEXT.partition("[[objectives]]")[0].replace('"mine"', '"focal"')
    with pytest.raises(ValueError, match=r"objectives\[0\]\.name: gamma must be"):
        parse_study(f'{text}[[objectives]]\nname = "focal"\nsearch = {{ gamma = {where} }}\n')
