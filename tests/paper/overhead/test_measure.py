"""The cost study measures every objective beside cross-entropy, and its memory counts are exact."""

import doctest
import json

import paper.overhead.measure
import pytest
import torch
from paper.overhead.__main__ import app, overhead_text
from paper.overhead.measure import (
    BASELINE,
    CONTROL,
    OBJECTIVES,
    PAPER_LOSS,
    PAPER_STEP,
    Overhead,
    Timing,
    median_ratio,
    overhead,
    peak_bytes,
)
from paper.record import here
from typer.testing import CliRunner

from focalcal.losses import LOSSES

CPU = torch.device("cpu")
SMALL = {"model": "small_cnn", "batch": 2, "classes": 3, "seconds": 0.01}


@pytest.fixture(scope="module")
def found():
    return overhead(**SMALL)


def test_every_objective_stands_between_two_cross_entropies(found):
    for level in (found.loss, found.step):
        assert [one.name for one in level] == [BASELINE, *OBJECTIVES, CONTROL]
        assert level[0].ratio == 1.0
        assert all(one.seconds > 0 and one.ratio > 0 for one in level)
    assert set(OBJECTIVES) == {name for name in LOSSES if not name.startswith("multilabel")}
    assert min(found.rounds) >= 3


def test_a_ratio_compares_times_of_the_same_round():
    assert median_ratio([2.0, 4.0, 2.0], [1.0, 2.0, 4.0]) == 2.0  # the medians alone are equal
    assert doctest.testmod(paper.overhead.measure) == doctest.TestResults(failed=0, attempted=1)


def test_the_work_done_is_not_whole_before_the_last_round():
    told = []
    overhead(**SMALL, progress=lambda done, of: told.append(done / of))
    assert told == sorted(told)
    assert told.count(1.0) <= 2  # the last contender's, and the end


def test_a_step_holds_the_network_that_a_loss_does_not(found):
    weights = 4 * 141_034  # small_cnn, see its docstring; twice for the momentum, once more for the gradient
    for alone, within in zip(found.loss, found.step, strict=True):
        assert within.memory > alone.memory + 3 * weights * 0.9


def test_the_control_takes_the_memory_of_the_baseline(found):
    assert found.loss[-1].memory == found.loss[0].memory
    assert found.step[-1].memory == found.step[0].memory
    assert found.step[-1].memory_ratio == 1.0


def test_peak_memory_is_the_highest_sum_of_what_is_alive():
    def call():
        first = torch.empty(1000, dtype=torch.float64)
        second = torch.empty(500, dtype=torch.float64)
        del first
        third = torch.empty(250, dtype=torch.float64)
        return second, third

    assert peak_bytes(call, 7, CPU) == 7 + 1500 * 8
    assert peak_bytes(lambda: None, 7, CPU) == 7


def test_threads_and_progress():
    before, told = torch.get_num_threads(), []
    torch.set_num_threads(2)
    try:
        overhead(
            **SMALL, objectives=["fcl"], progress=lambda done, of: told.append((torch.get_num_threads(), done, of))
        )
        assert torch.get_num_threads() == 2
    finally:
        torch.set_num_threads(before)
    assert {threads for threads, *_ in told[:-1]} == {1}
    assert told[-1][1:] == (0.01, 0.01)
    assert all(done <= of for _, done, of in told)


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"model": "resnet21"}, "model must be one of 'resnet8'"),
        ({"model": "chexnet"}, "model must be one of"),
        ({"model": "mlp"}, "model must be one of"),
        ({"batch": 1}, "batch must be >= 2, got 1"),
        ({"classes": 1}, "classes must be >= 2"),
        ({"seconds": 0}, "seconds must be > 0"),
        ({"objectives": ["multilabel_bce"]}, "objectives must be one of 'ce'"),
    ],
)
def test_what_cannot_be_timed_is_refused(wrong, message):
    with pytest.raises(ValueError, match=message):
        overhead(**{**SMALL, **wrong})


def made(batch=128, classes=10):
    def timings(*ratios):
        names = (BASELINE, "focal", "fcl", CONTROL)
        return tuple(Timing(name, 0.001 * ratio, ratio, 10**6, 1.0) for name, ratio in zip(names, ratios, strict=True))

    alone, within = timings(1, 1.25, 1.5, 1.01), timings(1, 1.01, 1.02, 1.0)
    return Overhead("cpu, AVX2", "resnet20", batch, classes, 1, (20, 5), alone, within)


def test_the_papers_ratios_are_marked_as_the_papers_and_stand_beside_its_shape_only():
    text = overhead_text(made())
    rows = {line.split("  ")[0]: line.split() for line in text.splitlines() if line}
    assert text.count("paper: time") == 2
    assert "nothing of it was measured here" in text
    assert rows["fcl"][-2:] == ["1.016", "0.9990"]  # the step's, which comes last
    assert rows[CONTROL][-2:] == ["-", "-"]  # of which it prints how well it agrees, and no ratio
    assert max(map(len, text.splitlines())) <= 80
    other = overhead_text(made(classes=100))
    assert "paper" not in other
    assert "128 x 100 logits" in other


def test_the_papers_ratios_follow_from_the_times_it_prints():
    assert PAPER_LOSS["fcl"] == pytest.approx(0.49 / 0.10, abs=0.05)
    assert PAPER_STEP["fcl"] == pytest.approx(21.19 / 20.86, abs=5e-4)


def test_the_command_prints_json_and_plain_errors():
    flags = ["--model", "small_cnn", "--batch", "2", "--classes", "3", "--seconds", "0.01", "--json"]
    asked = CliRunner().invoke(app, flags)
    assert asked.exit_code == 0, asked.output
    record = json.loads(asked.stdout)
    assert here().items() <= record.items()
    assert [one["name"] for one in record["step"]] == [BASELINE, *OBJECTIVES, CONTROL]
    wrong = CliRunner().invoke(app, ["--model", "resnet21"])
    assert wrong.exit_code == 2
    assert "model must be one of" in wrong.stderr
    wrong = CliRunner().invoke(app, ["--device", "tpu"])
    assert wrong.exit_code == 2
    assert "--device must be one that torch can use here, got 'tpu'" in wrong.stderr
