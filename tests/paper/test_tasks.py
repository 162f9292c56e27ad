"""The forty tasks: cells as the plan says, records that come back, and the plan's bootstrap and verdicts."""

import math
from types import SimpleNamespace

import numpy as np
import pytest
from paper.tasks.__main__ import predicted_lam, size, units
from paper.tasks.answers import FAMILIES, Answer, TaskRecords, bootstrap_means
from paper.tasks.cells import LENGTHS, OBJECTIVES, SEEDS, TASKS, Task
from paper.tasks.measure import SAMPLES, UNIT, entropy, measured
from paper.tasks.records import add_rows, read_rows

from focalcal.lab.store import Store
from focalcal.lab.studies import run_spec
from focalcal.predictions import Predictions


def test_there_are_forty_tasks_and_every_objective_of_the_plan():
    assert len(TASKS) == 40
    assert len(OBJECTIVES) == 10
    assert [len(asked) for asked in FAMILIES.values()] == [6, 9, 9]
    for asked in FAMILIES.values():
        for _, first, second in asked.values():
            assert {first[0], second[0]} <= {*OBJECTIVES, "refined"}


def test_units_go_seed_by_seed_and_cheap_ones_first():
    names = ["digits", "gaussian_mixture", "ag_news"]
    order = list(units(names, 2))
    assert len(set(order)) == len(order) == 2 * len(LENGTHS) * len(names)
    assert [seed for *_, seed in order] == sorted(seed for *_, seed in order)
    costs = [size(TASKS[name]) * TASKS[name].epochs(length) for name, length, seed in order if seed == 0]
    assert costs == sorted(costs)


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    task = Task("gaussian_mixture", "drawn", 5, 10, data_options={"sizes": [300, 200, 400]})
    folder = tmp_path_factory.mktemp("store")
    return run_spec(task.spec("cross-entropy", "short", 1, 0.002, 10**6, None, folder), Store(folder, create=True))


def test_a_record_is_what_test_rows_say_and_comes_back(run, tmp_path):
    row = measured("a task", run, "last", calibrated=True)
    test = run.predictions("test")
    log_p = np.log(test.probs[np.arange(len(test.labels)), test.labels])
    assert row["nll"] == pytest.approx(-log_p.mean(), rel=1e-5)
    temperature = run.record["kept"]["last"]["temperature"]
    scaled = np.exp(test.logits.astype(float) / temperature)
    scaled /= scaled.sum(1, keepdims=True)
    assert row["scaled_nll"] == pytest.approx(-np.log(scaled[np.arange(400), test.labels]).mean())
    assert row["distance"] == pytest.approx(np.abs(test.probs - test.posterior).sum(1).mean() / 2, rel=1e-5)
    shares = np.bincount(test.labels) / 400
    assert entropy(test) == pytest.approx(-(shares * np.log(shares)).sum())
    # The samples are of the same rows for each objective, and as far from the mean as samples of that many rows are.
    again = measured("a task", run, "last", calibrated=False)
    assert again["samples"] == row["samples"] != measured("another", run, "last", calibrated=False)["samples"]
    spread = np.std(np.array(row["samples"]) * UNIT * row["entropy"])
    assert 0.4 < spread / (log_p.std() / math.sqrt(400)) < 1.8
    told = {"task": "a task", "length": "short", "objective": "cross-entropy", "seed": 1, "lr": 0.002, "rule": "last"}
    path = tmp_path / "tasks.parquet"
    for seed in (1, 2):
        add_rows(path, [{**told, "seed": seed, **row}, {**told, "seed": seed, "rule": "nll", "failed": True}])
    first, failed, second, _ = read_rows(path)
    assert first["scaled_nll"] == pytest.approx(row["scaled_nll"], rel=1e-4)
    assert first["samples"] == row["samples"]
    assert (first["failed"], failed["failed"], second["seed"]) == (False, True, 2)
    assert failed["nll"] is None


def test_the_rule_keeps_cross_entropy_where_nothing_is_overconfident():
    draws = np.random.default_rng(0)
    logits = draws.normal(0, 2, (2000, 4))
    labels = (logits + draws.gumbel(size=logits.shape)).argmax(1)
    lams = {}
    for factor in (0.7, 1.6):
        held_out = Predictions(logits=factor * logits, labels=labels, split="val")
        lams[factor] = predicted_lam(SimpleNamespace(predictions=lambda split, held_out=held_out: held_out))
    assert math.isinf(lams[0.7])
    assert 0 <= lams[1.6] < 100


@pytest.mark.slow
def test_the_interval_of_the_bootstrap_covers_as_often_as_it_says():
    """Of 300 sets of 30 tasks with effects of their own, seeds and rows: 95 % intervals hold the truth of the tasks."""
    draws, held = np.random.default_rng(0), 0
    for trial in range(300):
        effects = draws.normal(0.3, 1.0, (30, 1)) + draws.normal(0, 0.5, (30, 3))
        tasks = list(effects[:, :, None] + draws.normal(0, 0.3, (30, 3, SAMPLES)))
        low, high = np.quantile(bootstrap_means(tasks, str(trial))[:2000], (0.025, 0.975))
        held += low < 0.3 < high
    assert 0.91 <= held / 300 <= 0.995


def _records(differences, tasks=30, seeds=SEEDS):
    """FCL with T above cross-entropy with T by these points per task, all else equal."""
    draws = np.random.default_rng(1)
    rows = {}
    for task in range(tasks):
        for length in LENGTHS:
            for seed in range(seeds):
                noise = draws.normal(0, 0.001)
                for name in (*OBJECTIVES, "refined"):
                    nll = 0.5 + noise + (differences[task] / 100 if name == "FCL" else 0)
                    for rule in ("last", "nll", "error", "refined"):
                        row = {"failed": False, "entropy": 1.0, "task": f"task {task}", "lam": 1.0}
                        for kind in ("", "scaled_", "calibrated_"):
                            row |= {f"{kind}nll": nll, f"{kind}samples": [0] * SAMPLES}
                        rows[f"task {task}", length, seed, name, rule] = row
    return TaskRecords(rows)


def test_verdicts_are_those_of_the_plan():
    name = "predicted - cross-entropy, both with T"
    draws = np.random.default_rng(2)

    def answer(differences, **size):
        (one,) = [one for one in _records(differences, **size).family("1 to 3") if one.name == name]
        return one

    better = answer(draws.normal(-1, 0.5, 30))
    assert isinstance(better, Answer)
    assert better.verdict == "yes"
    assert better.difference == pytest.approx(-1, abs=0.3)
    assert answer(draws.normal(1, 0.5, 30)).verdict == "no"
    assert answer(draws.normal(0, 0.02, 30)).verdict == "no difference"
    assert answer(draws.normal(0, 4, 30)).verdict == "cannot tell"
    assert answer(draws.normal(-1, 0.5, 10), tasks=10).verdict == "yes (preliminary)"
