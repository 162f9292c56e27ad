import json
import subprocess
import sys

import numpy as np
import pytest
import torch
from typer.testing import CliRunner

import focalcal
import focalcal.theory.facts
from focalcal.cli import main
from focalcal.cli.app import app
from focalcal.losses import BrierLoss, CrossEntropyLoss, FocalLoss
from focalcal.theory.minimiser import minimise, minimise_l1
from focalcal.theory.potential import conditional_risk

ETA = ["0.7", "0.2", "0.1"]


@pytest.fixture
def run():
    runner = CliRunner()
    return lambda *arguments: runner.invoke(app, ["theory", *map(str, arguments)])


def test_version():
    result = CliRunner().invoke(app, ["--version"])
    assert (result.exit_code, result.output) == (0, f"focalcal {focalcal.__version__}\n")


def test_solve_prints_the_minimiser_and_what_is_known_of_it(run):
    result = run("solve", *ETA, "--gamma", 2, "--lam", 1)
    assert result.exit_code == 0
    lines = [line.split() for line in result.output.splitlines()]
    assert next(line for line in lines if line[:1] == ["1"])[:3] == ["1", "0.7000", "0.5924"]
    assert lines[2][6:11] == ["q*", "-", "eta,", "first", "order"]
    assert ["decision", "kept", "yes"] in lines
    assert ["bound:", "interior", "none", "below", "lam", "=", "166.0"] in lines
    assert "decision kept                     tie: no single largest class\n" in run("solve", 0.4, 0.4, 0.2).output


def test_solve_as_json_has_every_digit(run):
    (record,) = json.loads(run("solve", *ETA, "--gamma", 3, "--lam", 1000, "--json").output)
    solution = minimise([0.7, 0.2, 0.1], gamma=3.0, lam=1000.0)
    assert record["q"] == solution.q.tolist()
    assert record["displacement"] == solution.displacement.tolist()
    assert record["status"] == "converged"
    assert record["distortion_l2"] == pytest.approx(np.linalg.norm(solution.displacement), rel=1e-14)
    assert record["distortion_l2"] < record["bounds"]["interior"] < record["bounds"]["global"]
    assert record["first_order_bias"] == pytest.approx(record["displacement"], rel=0.01)


def test_without_an_anchor_there_are_no_bounds(run):
    (record,) = json.loads(run("solve", *ETA, "--lam", 0, "--json").output)
    assert record["bounds"] is None
    assert record["first_order_bias"] is None
    assert record["q"] == minimise([0.7, 0.2, 0.1], gamma=3.0, lam=0.0).q.tolist()
    assert "bound:" not in run("solve", *ETA, "--lam", 0).output


def test_the_absolute_anchor_goes_to_the_vertex_and_has_no_bounds(run):
    (record,) = json.loads(run("solve", *ETA, "--lam", 2, "--anchor", "l1", "--json").output)
    assert record["q"] == minimise_l1([0.7, 0.2, 0.1], gamma=3.0, lam=2.0).q.tolist()
    assert (record["anchor"], record["bounds"], record["pre_asymptotic_bias"]) == ("l1", None, None)
    shown = run("solve", *ETA, "--lam", 100, "--anchor", "l1").output
    assert shown.startswith("gamma = 3, lam = 100, l1 anchor\n")
    assert next(line.split() for line in shown.splitlines() if line.startswith("    1"))[2][:4] == "0.99"
    assert "bound:" not in shown
    assert "decision kept              yes" in shown


def test_the_decision_gap_is_what_a_tie_costs(run):
    (record,) = json.loads(run("gap", 0.5, 0.3, 0.2, "--gamma", 2, "--lam", 1, "--json").output)
    eta, tied = [0.5, 0.3, 0.2], minimise([0.4, 0.4, 0.2], gamma=2.0, lam=1.0).q
    best = minimise(eta, gamma=2.0, lam=1.0).q
    risks = [conditional_risk(q, eta, gamma=2.0, lam=1.0) for q in (tied, best)]
    assert record == {"gamma": 2, "lam": 1, "eta": eta, "gap": pytest.approx(risks[0] - risks[1], rel=1e-9)}
    lines = run("gap", 0.2, 0.5, 0.3).output.splitlines()
    assert lines[2].split() == ["posterior", "most", "probable", "class", "runner-up", "decision", "gap"]
    assert lines[3].split()[:3] == ["1", "2", "3"]
    assert run("gap", 0.4, 0.4, 0.2).output.splitlines()[3].split()[-1] == "0"


def test_gradients_are_those_of_the_losses(run):
    found = json.loads(run("gradients", 0.25, 0.01, "--gamma", 2, "--lam", 3, "--classes", 4, "--json").output)
    for row in found["gradients"]:
        p = torch.tensor([[1 - row["eps"], *[row["eps"] / 3] * 3]], dtype=torch.float64)
        logits, label = p.log().requires_grad_(), torch.tensor([0])
        for name, loss in (("focal", FocalLoss(2)), ("l2", BrierLoss()), ("ce", CrossEntropyLoss())):
            (gradient,) = torch.autograd.grad(loss(logits, label), logits)
            assert row[name] == pytest.approx(gradient[0, 0].item(), rel=1e-9), name
        assert row["l1"] == pytest.approx(-2 * row["eps"] * (1 - row["eps"]), rel=1e-12)
        assert row["anchor_share"] == pytest.approx(3 * row["l2"] / (row["focal"] + 3 * row["l2"]), rel=1e-12)
    assert found["exponents"] == pytest.approx({"focal": 3, "l2": 2, "l1": 1, "ce": 1}, abs=1e-6)
    lines = [line.split() for line in run("gradients").output.splitlines()]
    assert lines[2] == ["eps", "focal", "l2", "anchor", "l1", "anchor", "cross-entropy", "anchor's", "share"]
    assert ["focal", "4.000", "4"] in lines
    assert "over eps from 1e-12 to 1e-06" in run("gradients").output
    assert run("gradients", "--gamma", 200).exit_code == 0  # where eps = 1e-12 would leave no gradient


@pytest.mark.parametrize(
    "arguments", [["solve", *ETA], ["solve", *ETA, "--anchor", "l1"], ["bound", *ETA], ["gap", *ETA], ["gradients"]]
)
def test_tables_fit_80_columns(run, arguments):
    assert max(map(len, run(*arguments).output.splitlines())) <= 80


@pytest.mark.parametrize("suffix", [".csv", ".npy"])
def test_posteriors_from_a_file(run, tmp_path, suffix):
    rows, file = np.array([[0.7, 0.2, 0.1], [0.25, 0.25, 0.5]]), tmp_path / f"eta{suffix}"
    np.savetxt(file, rows, delimiter=",", fmt="%.17g") if suffix == ".csv" else np.save(file, rows)
    records = json.loads(run("solve", "--file", file, "--json").output)
    np.testing.assert_array_equal([one["q"] for one in records], minimise(rows, gamma=3.0, lam=1.0).q)
    assert "posterior 2 of 2" in run("solve", "--file", file).output


def test_rows_of_a_softmax_in_float32_are_taken_by_every_command(run, tmp_path):
    logits = np.random.default_rng(0).normal(size=(50, 20)).astype(np.float32)
    rows = np.exp(logits) / np.exp(logits).sum(1, keepdims=True) * np.float32(1 + 4e-6)
    np.save(tmp_path / "eta.NPY.npy", rows)
    file = (tmp_path / "eta.NPY.npy").rename(tmp_path / "ETA.NPY")
    exact = rows / rows.sum(1, keepdims=True, dtype=np.float64)
    found = json.loads(run("solve", "--file", file, "--json").output)
    np.testing.assert_allclose([one["q"] for one in found], minimise(exact, gamma=3.0, lam=1.0).q, rtol=0, atol=1e-15)
    for command in (["bound"], ["recover"], ["lam", "--tolerance", 0.1]):
        assert run(*command, "--file", file).exit_code == 0, command


def test_a_file_is_solved_in_one_batch(run, tmp_path, monkeypatch):
    calls = []
    real = focalcal.theory.facts.minimise
    monkeypatch.setattr(
        focalcal.theory.facts, "minimise", lambda eta, **rest: calls.append(len(eta)) or real(eta, **rest)
    )
    np.save(tmp_path / "eta.npy", np.full((300, 4), 0.25))
    assert run("solve", "--file", tmp_path / "eta.npy", "--json").exit_code == 0
    assert calls == [300]


@pytest.mark.parametrize("command", ["solve", "bound", "recover"])
def test_a_wrong_row_is_named_with_its_file(run, tmp_path, command):
    file = tmp_path / "eta.csv"
    file.write_text("\ufeff0.5,0.5\n0.25,0.75\n0.2,0.7\n", encoding="utf-8")  # a mark, as spreadsheets write it
    result = run(command, "--file", file)
    assert result.exit_code == 2
    assert f"{file}, row 3: " in result.stderr
    assert "within 0.001, got a sum of 0.9" in result.stderr


def test_a_row_without_a_solution_is_named_with_its_file(run, tmp_path):
    np.save(tmp_path / "eta.npy", np.array([[1.0, 0.0, 0.0], [0.7, 0.2, 0.1]]))
    result = run("solve", "--file", tmp_path / "eta.npy", "--gamma", 1e12)
    assert result.exit_code == 2
    assert f"{tmp_path / 'eta.npy'}, row 2: not converged" in result.stderr


def test_zero_is_printed_without_a_sign(run):
    assert "-0.0" not in run("solve", 1, 0, 0, "--json").output
    assert not any(cell in ("-0", "-0.0000") for cell in run("solve", 1, 0, 0).output.split())


def test_bounds(run):
    (bounds,) = json.loads(run("bound", *ETA, "--gamma", 0, "--lam", 4, "--json").output)
    entropy = -sum(p * np.log(p) for p in (0.7, 0.2, 0.1))
    assert bounds["global"] == pytest.approx(np.sqrt(entropy / 4))
    assert bounds["entropy"] == pytest.approx(np.sqrt(entropy / 4))
    assert bounds["slope"] == 0
    assert bounds["log_classes"] == pytest.approx(np.sqrt(np.log(3) / 4))
    assert bounds["interior"] is None
    assert bounds["interior_from_lam"] == pytest.approx(4 * entropy / 0.01)
    assert (bounds["gamma"], bounds["lam"]) == (0, 4)
    shown = run("bound", *ETA).output.splitlines()
    assert shown[0] == "gamma = 3, lam = 1"
    assert shown[3].endswith("none below lam = 135.8")
    every = run("bound", "--classes", 10, "--lam", 1, "--gamma", 1).output
    assert every == "gamma = 1, lam = 1\n\nlog classes  simplex\n      1.517   0.5000\n"


def test_recover_undoes_solve(run):
    q = minimise([0.7, 0.2, 0.1], gamma=3.0, lam=1.0).q
    (record,) = json.loads(run("recover", *map(repr, q.tolist()), "--gamma", 3, "--lam", 1, "--json").output)
    assert record["eta"] == pytest.approx([0.7, 0.2, 0.1], abs=1e-12)
    assert (record["gamma"], record["lam"]) == (3, 1)
    lines = run("recover", *map(repr, q.tolist())).output.splitlines()
    assert lines[0] == "gamma = 3, lam = 1"
    assert lines[3].split() == ["1", "0.5670", "0.7000"]


def test_lam_for_a_tolerance(run):
    found = json.loads(run("lam", "--tolerance", 0.01, "--gamma", 3, *ETA, "--json").output)["lam"]
    distance = np.linalg.norm(minimise([0.7, 0.2, 0.1], gamma=3.0, lam=found).displacement)
    assert distance == pytest.approx(0.01, rel=1e-8)
    certified = json.loads(run("lam", "--tolerance", 0.1, "--classes", 10, "--gamma", 1, "--json").output)["lam"]
    assert certified == pytest.approx(5.0, rel=1e-6)
    alone = run("lam", "--tolerance", 10, *ETA).output
    assert alone == "lam = 0 is the smallest that suffices for this posterior: |q* - eta|_2 <= 10 at gamma = 3\n"
    every = run("lam", "--tolerance", 0.1, "--classes", 10, "--gamma", 1).output
    assert every == "lam = 5 suffices for every posterior of 10 classes: |q* - eta|_2 <= 0.1 at gamma = 1\n"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["solve", "0.7", "0.2"], "got a sum of 0.9"),
        (["solve"], "either as numbers or with --file, got neither"),
        (["solve", *ETA, "--file", "eta.csv"], "got both"),
        (["solve", *ETA, "--gamma", "-1"], "gamma must be finite and >= 0, got -1"),
        (["solve", *ETA, "--gamma", "1e12"], "choose a smaller gamma"),
        (["solve", "--file", "nowhere.csv"], "nowhere.csv"),
        (["solve", "--file", "eta.txt"], "--file must end in .csv or .npy, got 'eta.txt'"),
        (["bound", *ETA, "--lam", "0"], "lam must be > 0"),
        (["bound", *ETA, "--classes", "3"], "without eta"),
        (["recover", "0.5", "0.1"], "q must be a distribution"),
        (["lam", "--tolerance", "0", *ETA], "tolerance must be > 0"),
        (["lam", "--tolerance", "0.1", *ETA, "--classes", "3"], "exactly one of eta and classes"),
        (["lam", "--tolerance", "0.1"], "got neither; for example 0.7 0.2 0.1, or --classes 3"),
        (
            ["solve", "0.7,0.2,0.1"],
            "must be numbers with spaces between them, got '0.7,0.2,0.1'; write 0.7 0.2 0.1",
        ),
        (["solve", "0.7", "x"], "got 'x'; for example 0.7 0.2 0.1"),
        (["solve", "0.7", "0.4", "-0.1"], "eta must be >= 0, got -0.1"),
        (["solve", *ETA, "--gama", "2"], "there is no option --gama"),
        (["solve", *ETA, "--anchor", "l3"], "anchor must be one of 'l2', 'l1', got 'l3'"),
        (["gap", "0.7", "0.2"], "got a sum of 0.9"),
        (["gap", *ETA, "--lam", "-1"], "lam must be finite and >= 0, got -1"),
        (["gradients", "1.5"], "eps must be below 1, got 1.5"),
        (["gradients", "0"], "eps must be > 0, got 0"),
        (["gradients", "0.1,0.2"], "write 0.1 0.2"),
        (["gradients", "--classes", "1"], "classes must be a whole number >= 2, got 1"),
    ],
)
def test_errors_are_one_line_and_exit_2(run, arguments, message):
    result = run(*arguments)
    assert result.exit_code == 2
    assert result.stdout == ""
    assert len(result.stderr.splitlines()) == 1
    assert result.stderr.startswith("focalcal: ")
    assert message in result.stderr


def test_a_bug_ends_with_3_and_keeps_its_traceback_on_request(run, monkeypatch):
    def broken(*_, **__):
        raise KeyError("a bug")

    monkeypatch.setattr(focalcal.theory.facts, "posterior_facts", broken)
    plain = run("solve", *ETA)
    assert plain.exit_code == 3
    assert "KeyError: 'a bug'" in plain.stderr
    assert len(plain.stderr.splitlines()) == 1
    assert isinstance(run("--debug", "solve", *ETA).exception, KeyError)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("a,b\n0.5,0.5\n", "line 1: every cell must be a number, got 'a,b'"),
        ("0.5,0.5\n0.2,0.3,0.5\n", "line 2: every line must have 2 numbers like the first, got 3"),
        ("", "must hold numbers"),
        ("0.5,0.5\n\ud800", "must be CSV in UTF-8"),
    ],
)
def test_wrong_files_are_named_with_the_line(run, tmp_path, content, message):
    (tmp_path / "eta.csv").write_bytes(content.encode("utf-8", "surrogatepass"))
    result = run("solve", "--file", tmp_path / "eta.csv")
    assert result.exit_code == 2
    assert message in result.stderr


def test_objects_in_a_file_are_never_unpickled(run, tmp_path):
    np.save(tmp_path / "eta.npy", np.array([{"a": 1}], dtype=object), allow_pickle=True)
    result = run("solve", "--file", tmp_path / "eta.npy")
    assert result.exit_code == 2
    assert f"{tmp_path / 'eta.npy'} must hold an array of numbers" in result.stderr
    assert "allow_pickle" not in result.stderr


def test_without_typer_the_command_says_what_to_install(monkeypatch, capsys):
    for module in ("focalcal.cli.app", "focalcal.cli.theory"):
        monkeypatch.delitem(sys.modules, module)
    monkeypatch.setitem(sys.modules, "typer", None)
    with pytest.raises(SystemExit) as stopped:
        main()
    assert stopped.value.code == 2
    assert "needs the package typer: pip install " in capsys.readouterr().err


def test_solving_imports_nothing_that_draws():
    code = (
        "import sys; from focalcal.cli.app import app\n"
        f"app(['theory', 'solve', *{ETA}], standalone_mode=False)\n"
        "print([name for name in ('matplotlib', 'jinja2', 'pyarrow', 'plotly', 'sklearn') if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] == "[]"
