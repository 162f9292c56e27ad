import json

import numpy as np
import pytest
from typer.testing import CliRunner

from focalcal.cli.app import app
from focalcal.theory import calibration_bounds, exact_cal2, minimise, population_ece

# Two states of one confidence, the first three times as probable: E[Z | S] = 0.675, so that S is 0.125 too high.
STATES = "weight,eta_1,eta_2,q_1,q_2\n3,0.6,0.4,0.8,0.2\n1,0.9,0.1,0.8,0.2\n"


@pytest.fixture
def run(tmp_path):
    def called(content, *arguments, name="states.csv"):
        (tmp_path / name).write_text(content)
        return CliRunner().invoke(app, ["theory", "population", str(tmp_path / name), *map(str, arguments)])

    return called


def test_predictions_of_a_file(run):
    found = json.loads(run(STATES, "--json").output)
    assert (found["states"], found["classes"], found["gamma"], found["lam"], found["bounds"]) == (
        2,
        2,
        None,
        None,
        None,
    )
    assert found["accuracy"] == pytest.approx(0.675)
    assert found["chain"]["cal2"] == pytest.approx(0.125**2)
    assert found["chain"]["confidence_error"] == pytest.approx(0.75 * 0.2**2 + 0.25 * 0.1**2)
    assert found["chain"]["posterior_error"] == pytest.approx(2 * found["chain"]["confidence_error"])
    assert not found["chain"]["tight"]
    assert found["ece"]["ece"] == pytest.approx(0.125)
    assert found["murphy"] == pytest.approx(
        {"brier": 0.125**2 + 0.675 * 0.325, "calibration": 0.125**2, "refinement": 0.675 * 0.325}
    )
    expected_brier = 0.75 * (0.6 * 0.08 + 0.4 * 1.28) + 0.25 * (0.9 * 0.08 + 0.1 * 1.28)
    assert found["brier"] == pytest.approx(expected_brier)


def test_the_table_fits_and_says_what_it_is_of(run):
    shown = run(STATES).output
    assert shown.startswith("2 states, 2 classes; the predictions of the file\n")
    assert "Cal2^2 = E(S - E[Z|S])^2                  0.0156" in shown
    assert "bound" not in shown
    solved = run("eta_1,eta_2\n0.7,0.3\n", "--gamma", 2).output
    assert solved.startswith("1 state, 2 classes; q* at gamma = 2, lam = 1\n")
    assert "bound of Cal2^2: interior" in solved
    assert "some eta_k is 0" in run("eta_1,eta_2\n1,0\n").output
    assert max(map(len, (shown + solved).splitlines())) <= 80


def test_without_predictions_the_states_are_solved(run):
    eta = np.random.default_rng(0).dirichlet(np.ones(4), size=30)
    weights = np.arange(1.0, 31.0)
    rows = [",".join(map(repr, [weight, *row])) for weight, row in zip(weights.tolist(), eta.tolist(), strict=True)]
    content = "\n".join(["weight,eta_1,eta_2,eta_3,eta_4", *rows])
    found = json.loads(run(content, "--gamma", 2, "--lam", 50, "--bins", 10, "--json").output)
    solution, shares = minimise(eta, gamma=2.0, lam=50.0), weights / weights.sum()
    given = {"weights": shares, "displacement": solution.displacement}
    assert found["chain"]["cal2"] == pytest.approx(exact_cal2(solution.q, eta, **given), rel=1e-9)
    assert found["ece"]["ece"] == pytest.approx(population_ece(solution.q, eta, n_bins=10, **given), rel=1e-9)
    assert found["bounds"]["slope"] == pytest.approx(calibration_bounds(eta, shares, gamma=2.0, lam=50.0).slope)
    assert found["chain"]["cal2"] < found["bounds"]["slope"]
    assert json.loads(run(content, "--lam", 0, "--json").output)["bounds"] is None


def test_what_solve_prints_is_a_population(run):
    arguments = ["theory", "solve", "0.7", "0.2", "0.1", "--gamma", "2", "--lam", "1", "--json"]
    solved = CliRunner().invoke(app, arguments).output
    found = json.loads(run(solved, "--json", name="states.json").output)
    direct = json.loads(run("eta_1,eta_2,eta_3\n0.7,0.2,0.1\n", "--gamma", 2, "--lam", 1, "--json").output)
    assert found["chain"]["cal2"] == pytest.approx(direct["chain"]["cal2"], rel=1e-12)


def test_confidences_in_float32_are_equal_within_a_tolerance(run):
    content = STATES.replace("1,0.9,0.1,0.8,0.2", "1,0.9,0.1,0.8000003,0.1999997")
    apart, together = (
        json.loads(run(content, "--json", *more).output)["chain"]["cal2"] for more in ([], ["--tolerance", 1e-6])
    )
    assert apart == pytest.approx(0.75 * 0.2**2 + 0.25 * 0.1**2, rel=1e-4)
    assert together == pytest.approx(0.125**2, rel=1e-4)


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("states.txt", "", "must end in .csv or .json, got 'states.txt'"),
        ("states.csv", "", "must hold at least one state, got none"),
        (
            "states.csv",
            "a,eta_1\n1,1\n",
            "line 1: the headings must be weight, eta_1, eta_2, ... and q_1, q_2, ..., each once, got 'a,eta_1'",
        ),
        ("states.csv", "eta_1,eta_3\n1,0\n", "each once, got 'eta_1,eta_3'"),
        ("states.csv", "weight\n1\n", "got no eta"),
        ("states.csv", "eta_1,eta_2\n0.5\n", "line 2: every line must have 2 numbers like the first, got 1"),
        ("states.csv", "eta_1,eta_2\n0.5,x\n", "line 2: every cell must be a number, got '0.5,x'"),
        ("states.csv", "eta_1,eta_2\n0.5,0.5\n0.5,0.4\n", "row 2: eta must be a distribution"),
        ("states.csv", "weight,eta_1,eta_2\n-1,0.5,0.5\n", "weights must be >= 0 with a positive sum, got -1"),
        ("states.csv", "eta_1,eta_2,q_1\n0.5,0.5,1\n", "probs must have the shape (1, 2) of eta, got (1, 1)"),
        ("states.json", "{", "must be JSON"),
        ("states.json", '{"eta": [1, 0]}', "must hold a list of at least one state"),
        (
            "states.json",
            '[{"eta": [1, 0]}, {"q": [1, 0]}]',
            "eta of every state must be a list",
        ),
        ("states.csv", f"eta_1\n{'1' * 200_000}\n", "must be CSV"),
        ("states.json", '[{"eta": [1, 0], "weight": NaN}]', "weight of every state must be a number"),
        ("states.json", '[{"eta": [1, 0]}, {"eta": [1]}]', "eta of every state must be a list"),
    ],
)
def test_a_wrong_file_is_one_line_and_exit_2(run, name, content, message):
    result = run(content, name=name)
    assert (result.exit_code, result.stdout) == (2, "")
    assert len(result.stderr.splitlines()) == 1
    assert message in result.stderr


def test_predictions_have_no_gamma(run):
    assert "leave out --gamma and --lam" in run(STATES, "--gamma", 2).stderr
    assert "gamma must be finite and >= 0, got -1" in run("eta_1,eta_2\n0.5,0.5\n", "--gamma", -1).stderr
