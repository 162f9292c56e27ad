"""The runner of the two regimes of CIFAR-10 and of fine-tuning, on the digits."""

import math

import numpy as np
import pytest
from paper import record, regimes, trials
from paper.regime_tables import RegimeTables
from paper.regimes import BASELINE, MAIN, STUDIES, Regime, chosen_rates, train, wanted
from paper.tasks.cells import OBJECTIVES, is_predicted

from focalcal.posthoc import operating_point


@pytest.fixture
def regime(tmp_path, monkeypatch):
    for module in (record, regimes, trials):
        monkeypatch.setattr(module, "RECORDS", tmp_path)
    overfit = {"epochs": 12, "data_options": {"seed": 0}, "model_options": {"features": 64, "hidden": (64,)}}
    return Regime(
        "test", "", "", "digits_mlp_lite", overfit, {"train_examples": 200, "evaluate_every": 3}, (1.0, 3.0), seeds=2
    )


def read():
    return list(trials.Trials.read("regimes-test").rows)


def test_it_goes_on_from_its_records_as_if_it_had_not_stopped(regime, store):
    rows = []
    while train(regime, rows, store):
        regimes.write(regime, rows)
        rows = read()  # as another process would
    cells = [(row["objective"], row["seed"], row["lr"]) for row in rows if row["rule"] == "last"]
    assert len(cells) == len(set(cells)) == len(store.runs())
    for name in OBJECTIVES:
        rates = {lr for objective, seed, lr in cells if (objective, seed) == (name, 1)}
        if {lr for objective, seed, lr in cells if (objective, seed) == (name, 0)}:
            assert rates == set(chosen_rates(rows, name).values())
    first = [row for row in rows if row["seed"] == 0]
    assert {cell.objective for cell in wanted(regime, first, main=True) if cell.seed} <= set(MAIN)
    before = len(store.runs())
    assert not train(regime, read(), store)
    assert len(store.runs()) == before


@pytest.mark.slow
def test_tables_compare_the_same_seeds_at_the_chosen_rates(regime, store, monkeypatch):
    rows = []
    while train(regime, rows, store):
        regimes.write(regime, rows)
    monkeypatch.setattr(Regime, "read", lambda name: regime)
    tables = RegimeTables.read("test")
    assert tables.about.startswith(f"{len(store.runs())} runs, 2 seeds of each objective of the 2 that are planned, ")
    best = {name: chosen_rates(rows, name)["last"] for name in (BASELINE, "FCL(3, 3)")}
    nll = {
        name: [row["nll"] for row in rows if (row["objective"], row["lr"], row["rule"]) == (name, lr, "last")]
        for name, lr in best.items()
    }
    shown = next(line for line in tables.means().splitlines() if line.startswith("| FCL(3, 3)"))
    assert f"{np.mean(nll['FCL(3, 3)']):.3f}" in shown
    for row in tables.rows:  # the rule keeps cross-entropy of every seed
        row["lam"] = math.inf if row["objective"] == BASELINE else row["lam"]
        row["failed"] |= is_predicted(row["objective"])
    tables = RegimeTables(regime, tables.rows)
    assert "The rule kept cross-entropy for 2 of 2 seeds." in tables.about
    first = next(line for line in tables.comparisons.splitlines() if line.startswith("| FCL "))
    assert f"{np.mean(nll[BASELINE]) - np.mean(nll['FCL(3, 3)']):+.4f}" in first


def test_lam_is_that_of_the_same_seeds_cross_entropy(regime, store):
    rows = []
    for _ in regime.rates:
        assert train(regime, rows, store)
    best = chosen_rates(rows, BASELINE)["last"]
    (row,) = (row for row in rows if (row["lr"], row["rule"]) == (best, "last"))
    assert row["judged"] == min(other["judged"] for other in rows if other["rule"] == "last")
    point = operating_point(store.run(row["key"]).predictions("val"), gamma=3.0, gammas=(3.0,), resamples=200)
    assert row["lam"] == (max(point.lam, 0.0) if point.helps else math.inf)
    assert {other["rule"] for other in rows} == {"last", "nll", "error", "refined"}
    for lam, asked in ((math.inf, set()), (2.5, {"FCL", "FCL, half of lam", "FCL, twice lam"})):
        row["lam"] = lam
        cells = [cell for cell in wanted(regime, rows) if is_predicted(cell.objective) and cell.seed == 0]
        assert {cell.objective for cell in cells} == asked
    options = [dict(regime.spec(cell).objective_options) for cell in cells if cell.lr == best]
    assert [(each["gamma"], each["lam"], each["scale"]) for each in options] == [
        (3.0, lam, "matched") for lam in (2.5, 1.25, 5.0)
    ]


@pytest.mark.parametrize("name", sorted(path.stem for path in STUDIES.glob("*.toml")))
def test_every_study_names_runs(name):
    regime = Regime.read(name)
    cells = list(wanted(regime, []))
    assert len(cells) == len([name for name in OBJECTIVES if not is_predicted(name)]) * len(regime.rates)
    assert len({regime.spec(cell).key for cell in cells}) == len(cells)
