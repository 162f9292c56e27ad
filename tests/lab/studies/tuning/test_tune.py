"""A search: where it begins, what it chooses, that it goes on, and what it refuses."""

import json
import re
import shlex
from itertools import pairwise

import numpy as np
import pytest
from support.ideal_networks import IdealNetworks
from support.noisy_networks import NoisyNetworks
from support.small_runs import PROTOCOL, digits_recipe
from typer.testing import CliRunner

import focalcal
from focalcal.cli.app import app
from focalcal.core.numerics import softmax
from focalcal.lab.store import Protocol, Store
from focalcal.lab.studies.search_space import SPACE, Choices
from focalcal.lab.studies.tuning import judge, tune
from focalcal.lab.studies.tuning.tuner import OBJECTIVES, methods_of
from focalcal.predictions import Predictions


@pytest.fixture
def store(tmp_path):
    return Store(tmp_path / "runs")


def test_cross_entropy_is_kept_where_a_temperature_does_the_same(store):
    networks = IdealNetworks(1.4)
    result = tune(digits_recipe(), store, executor=networks, objectives=("fcl", "focal"), trials=6, seeds=2)
    assert [trial.candidate.name for trial in result.trials[:2]] == ["ce", "focal(gamma=3)"]
    predicted = result.trials[2]
    assert predicted.candidate.objective == "fcl"
    assert predicted.judgement.temperature == pytest.approx(1, abs=0.05), (
        "the operating point is among the first guesses"
    )
    assert result.winner.candidate.objective == "ce"
    assert result.winner.temperature == pytest.approx(1.4, abs=0.05)
    assert result.sentence.startswith(f"Keep cross-entropy, with temperature {result.winner.temperature:.3g}")
    assert result.paste == "CrossEntropyLoss()"


def test_the_better_objective_is_found_and_its_line_can_be_pasted(store):
    networks = NoisyNetworks()
    result = tune(digits_recipe(), store, executor=networks, objectives=("fcl", "focal"), trials=14, seeds=3)
    winner = result.winner
    assert winner.candidate.objective == "fcl"
    assert result.finalists[0] is winner
    assert 0.15 < dict(winner.candidate.options)["lam"] < 1.7
    gain = winner.differences(result.baseline, "nll", "test")
    assert gain.high < 0
    assert f"{gain.mean:+.3g}" in result.sentence
    loss = eval(result.paste, {"FocalCalibrationLoss": focalcal.FocalCalibrationLoss})
    assert (loss.gamma, loss.lam, loss.scale) == tuple(
        dict(winner.candidate.options)[k] for k in ("gamma", "lam", "scale")
    )
    assert result.runner_up is result.finalists[1]
    front = result.front()
    assert front[0].judgement.best("nll") == min(trial.judgement.best("nll") for trial in result.trials)
    assert all(a.judgement.error > b.judgement.error for a, b in pairwise(front))
    assert json.loads(json.dumps(result.record()))["paste"] == result.paste
    assert len(result.frame()["nll"]) == len(result.trials) == 14


def test_the_frame_has_every_option_although_cross_entropy_comes_first(store):
    arguments = {"executor": NoisyNetworks(), "objectives": ("fcl", "ls"), "trials": 6, "seeds": 1}
    result = tune(digits_recipe(), store, learning_rate=True, **arguments)
    frame = result.frame()
    for name in ("gamma", "lam", "epsilon"):
        assert frame[name] == [dict(trial.candidate.options).get(name) for trial in result.trials]
    assert frame["lr"] == [trial.candidate.changed.get("lr") for trial in result.trials]
    assert frame["lam"][0] is None
    assert any(lam is not None for lam in frame["lam"])


def test_a_run_is_judged_once(store, monkeypatch):
    asked = []
    monkeypatch.setattr(
        "focalcal.lab.studies.tuning.search.judge", lambda held_out: asked.append(held_out) or judge(held_out)
    )
    result = tune(digits_recipe(), store, executor=NoisyNetworks(), objectives=("fcl",), trials=4, seeds=2, finalists=1)
    assert len(asked) == len(result.trials) + len(result.finalists), "each run of the first seed, and of the second"


def test_the_same_call_trains_nothing_and_says_the_same(store):
    networks = NoisyNetworks()
    arguments = {"objectives": ("fcl",), "trials": 5, "seeds": 2, "finalists": 1}
    first = tune(digits_recipe(), store, executor=networks, **arguments)
    asked = len(networks.asked)
    assert asked == len({spec.key for spec in networks.asked}) == 5 + 2
    again = tune(digits_recipe(), store, executor=networks, **arguments)
    assert len(networks.asked) == asked
    assert again.sentence == first.sentence


@pytest.mark.parametrize("stop_after", [1, 3, 7])
def test_an_interrupted_search_goes_on(store, stop_after):
    networks = NoisyNetworks(stop_after=stop_after)
    arguments = {"executor": networks, "objectives": ("fcl",), "trials": 6, "seeds": 2, "finalists": 1}
    stopped = tune(digits_recipe(), store, **arguments)
    assert stopped.interrupted
    assert not stopped.finalists
    assert "interrupted" in stopped.sentence
    resumed = tune(digits_recipe(), store, **arguments)
    assert not resumed.interrupted
    assert len(resumed.trials) == 6
    assert len(networks.asked) == len({spec.key for spec in networks.asked}) == 8


def test_a_grid_has_every_point(store):
    networks = NoisyNetworks()
    result = tune(digits_recipe(), store, executor=networks, objectives=("ls", "brier"), sampler="grid", seeds=1)
    assert {trial.candidate.name for trial in result.trials} == {
        "ce", "brier", *(f"ls(epsilon={epsilon:g})" for epsilon in SPACE["ls"]["epsilon"].grid)
    }  # fmt: skip
    fcl = methods_of(digits_recipe(), ("fcl",), grid=True)["fcl"]
    assert len(list(fcl.candidates(Choices((0.25, 1, 4)), Choices((1,)), 1000, 0))) == 3 * 70


def test_an_objective_with_more_errors_is_no_finalist(store):
    """Label smoothing is given networks whose classes are swapped in a tenth of the rows."""

    class Swapped(NoisyNetworks):
        def _predictions(self, split, at, amplitude, seed):
            part = super()._predictions(split, at, abs(amplitude), seed)
            if amplitude < 0:
                part.scores[::10] = part.scores[::10, ::-1].copy()
            return part

    networks = Swapped(lambda objective, options: -0.1 if objective == "ls" else 0.1)
    result = tune(digits_recipe(), store, executor=networks, objectives=("ls",), trials=3, seeds=1)
    assert {trial.feasible for trial in result.trials if trial.candidate.objective == "ls"} == {False}
    assert [finalist.candidate.objective for finalist in result.finalists] == ["ce"]


def test_the_optimiser_is_searched_around_the_recipes_and_brier_decides(store):
    result = tune(
        digits_recipe(), store, executor=NoisyNetworks(), objectives=("fcl",), trials=7, seeds=1,
        select="brier", learning_rate=True, weight_decay=True,
    )  # fmt: skip
    searched = [trial for trial in result.trials if trial.candidate.changed]
    assert {trial.candidate.objective for trial in searched} == {"fcl"}, "what is best so far is searched on"
    base = digits_recipe().optimizer.lr
    assert all(base / 16 <= each.candidate.recipe.optimizer.lr <= base * 16 for each in searched)
    assert all(each.candidate.recipe.optimizer.weight_decay > 0 for each in searched)
    assert "brier" in result.sentence
    assert searched[0].run.spec.training["optimizer"]["lr"] == searched[0].candidate.recipe.optimizer.lr
    assert f"lr={searched[0].candidate.recipe.optimizer.lr:g}" in searched[0].candidate.name


def test_the_recipes_own_cross_entropy_is_what_must_be_beaten_also_by_another_learning_rate(store):
    class ByRate(NoisyNetworks):
        """Better by as much as the learning rate is above the recipe's."""

        def run(self, specs, *arguments):
            for spec in specs:
                share = base / spec.training["optimizer"]["lr"]
                self.noise = lambda *_, share=share: min(share, 2.0)
                super().run([spec], *arguments)

    base = digits_recipe().optimizer.lr
    result = tune(digits_recipe(), store, executor=ByRate(), objectives=("ce",), trials=6, seeds=2, learning_rate=True)
    winner, baseline = result.winner, result.baseline
    assert baseline.candidate.name == "ce"
    assert winner.candidate.changed["lr"] > base
    assert winner.differences(baseline, "nll").high < 0
    assert result.sentence.startswith(f"Train with CrossEntropyLoss(), lr = {winner.candidate.changed['lr']:g}")
    told = result.record()["finalists"]
    assert {one["candidate"]: one["minus_cross_entropy"]["mean"] for one in told}[baseline.name] == 0


def test_guesses_have_the_learning_rate_of_the_recipe(store):
    arguments = {"executor": NoisyNetworks(), "objectives": ("fcl",), "seeds": 1, "learning_rate": True}
    guesses = tune(digits_recipe(), store, trials=3, **arguments).trials
    assert [trial.candidate.changed for trial in guesses] == [{}] * 3
    more = tune(digits_recipe(), store, trials=6, **arguments).trials
    assert [not trial.candidate.changed for trial in more] == [True] * 4 + [False] * 2


def test_every_objective_is_tried(store):
    result = tune(digits_recipe(), store, executor=NoisyNetworks(), trials=8, seeds=1)
    assert {trial.candidate.objective for trial in result.trials} == {"ce", *OBJECTIVES}
    predicted = [trial for trial in result.trials if trial.candidate.objective == "fcl"]
    assert {dict(trial.candidate.options)["gamma"] for trial in predicted} >= {3.0, 5.0}


def test_candidates_that_fail_are_left_out(store):
    result = tune(
        digits_recipe(), store, executor=NoisyNetworks(fail=("focal",)), objectives=("focal", "fcl"), trials=4, seeds=1
    )
    assert "focal" not in {trial.candidate.objective for trial in result.trials}
    with pytest.raises(ValueError, match="cross-entropy must be trained to a finite validation NLL") as refused:
        tune(digits_recipe(epochs=2), store, executor=NoisyNetworks(fail=("ce",)), trials=4)
    [command] = re.findall("`focalcal (.*)` says why", str(refused.value))
    told = CliRunner().invoke(app, shlex.split(command))
    assert told.exit_code == 0, told.output


def test_cross_entropy_that_fails_with_a_later_seed_is_said(store):
    class Unlucky(NoisyNetworks):
        def run(self, specs, *arguments):
            for spec in specs:
                self.fail = ("ce",) if spec.seed == 1 else ()
                super().run([spec], *arguments)

    with pytest.raises(
        ValueError, match=r"cross-entropy must be trained to a finite validation NLL, and a run of .* seed 1"
    ):
        tune(digits_recipe(), store, executor=Unlucky(), objectives=("fcl",), trials=3, seeds=2)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"select": "ece"}, "select must be one of nll, brier, got 'ece'; a calibration error alone"),
        ({"objectives": ("fcI",)}, "'fcI' is not an objective; did you mean 'fcl'"),
        ({"sampler": "random"}, "sampler must be one of 'halton', 'grid', got 'random'"),
        ({"trials": 0}, "trials must be a whole number >= 1, got 0"),
        ({"recipe": "chestxray14_chexnet"}, "recipe must have one label per example, got"),
    ],
)
def test_what_is_refused(store, arguments, message):
    with pytest.raises(ValueError, match=message):
        tune(**{"recipe": digits_recipe(), "store": store, "executor": NoisyNetworks(), **arguments})


def test_a_recipe_without_validation_rows(store):
    with pytest.raises(
        ValueError, match=r"recipe must hold validation rows out .* set data_options.validation, e.g. 2000"
    ):
        tune(digits_recipe(data_options={"validation": 0}), store, executor=NoisyNetworks())


class Unusable(NoisyNetworks):
    """Networks whose validation and test rows are changed by `change`, from Predictions to Predictions."""

    def __init__(self, change):
        super().__init__()
        self.change = change

    def _predictions(self, *arguments):
        return self.change(super()._predictions(*arguments))


def rows_with(part, **changes):
    return Predictions(**{"logits": part.logits, "labels": part.labels, "split": part.split, **changes})


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (
            lambda part: rows_with(part, logits=softmax(part.logits)),
            "the network must return logits, got probabilities for every validation row; remove its softmax",
        ),
        (
            lambda part: rows_with(part, logits=part.logits[:99], labels=part.labels[:99]),
            "recipe must hold at least 100 validation rows out to judge by, got 99; raise data_options.validation",
        ),
        (
            lambda part: rows_with(part, labels=np.zeros_like(part.labels)),
            "validation rows must hold at least two classes, got class 0 only in 1200 rows; shuffle",
        ),
    ],
)
def test_validation_rows_that_say_nothing_are_refused(store, change, message):
    networks = Unusable(change)
    with pytest.raises(ValueError, match=message):
        tune(digits_recipe(), store, executor=networks, objectives=("fcl",), trials=4)
    assert len(networks.asked) == 1, "after cross-entropy, before anything else is trained"


def test_labels_that_are_all_predicted_leave_no_operating_point(store):
    networks = Unusable(lambda part: rows_with(part, labels=part.logits.argmax(1)))
    result = tune(digits_recipe(), store, executor=networks, objectives=("fcl",), trials=2, seeds=1)
    (note,) = result.notes
    said = "digits/mlp: lam = 8 stands for the predicted one: logits must have a best temperature between"
    assert note.startswith(said)
    assert note.endswith("pass more rows that the network was not trained on")
    assert result.record()["notes"] == [note]
    assert np.isfinite(result.winner.mean("nll", "test"))


def test_real_training_end_to_end(store):
    result = tune(
        digits_recipe(epochs=2),
        store,
        objectives=("fcl",),
        trials=3,
        seeds=2,
        finalists=1,
        protocol=Protocol(**{**PROTOCOL, "test_examples": 120}),
    )
    assert len(result.finalists) == 2
    assert np.isfinite(result.finalists[0].mean("nll", "test"))
    assert not store.problems()
