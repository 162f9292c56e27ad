import json

import pytest
import typer
from support import stored_runs
from support import synthetic_study as synthetic
from typer.testing import CliRunner

from focalcal.lab.cli.compare import compare
from focalcal.lab.cli.report import report
from focalcal.lab.store import Store

app = typer.Typer()
app.command()(compare)


def run(*arguments):
    return CliRunner().invoke(app, [str(one) for one in arguments])


@pytest.fixture(scope="module")
def few(tmp_path_factory):
    return synthetic.study_store(tmp_path_factory.mktemp("few"))


@pytest.fixture(scope="module")
def many(tmp_path_factory):
    return synthetic.study_store(tmp_path_factory.mktemp("many"), objectives=("ce", "fcl"), seeds=range(8))


def test_with_enough_seeds_the_verdict_is_printed(many):
    ended = run("fcl", "ce", "--store", many.path)
    assert ended.exit_code == 0
    assert ended.stdout.count("better*") == 4
    assert "cannot be significant" not in ended.stdout


def test_with_few_seeds_the_table_is_printed_and_says_what_it_cannot_show(few):
    ended = run("fcl", "--store", few.path)
    assert ended.exit_code == 0
    assert ended.stdout.count("cannot show\n") == 8  # two baselines, four metrics
    assert "n = 3: p >= 0.25" in ended.stdout
    assert "No comparison can be significant: 4 tests need 8 seeds." in ended.stdout


def test_one_seed_is_refused_politely(tmp_path):
    store = synthetic.study_store(tmp_path, seeds=(0,))
    ended = run("fcl", "ce", "--store", store.path)
    assert ended.exit_code == 1
    assert "too few common seeds for a test, seed 0 alone" in ended.stdout
    assert "no test could be made" in ended.stdout
    assert "every objective has one seed only" in ended.stderr


def test_json_has_every_family_and_every_number(many):
    ended = run("fcl", "ce", "--store", many.path, "--metrics", "ece,error", "--json")
    (family,) = json.loads(ended.stdout)
    assert (family["setting"], family["baseline"]) == ("digits/small_cnn", "ce")
    assert [one["metric"] for one in family["comparisons"]] == ["ece", "error"]
    ece = family["comparisons"][0]
    assert ece["seeds"] == list(range(8))
    assert ece["test"]["p_value"] == 2 / 2**8
    assert ece["verdict"] == "better"


def test_several_stores_are_one_and_a_clash_is_said(few, tmp_path):
    other = Store(tmp_path)
    synthetic.add(other, synthetic.spec("fcl", 0), changed={"ece": 0.75})
    synthetic.add(other, synthetic.spec("brier", 0))
    synthetic.add(other, synthetic.spec("brier", 1))
    ended = run("fcl", "brier", "--store", few.path, "--store", other.path)
    assert ended.exit_code == 0
    assert "hold different results" in ended.stderr
    assert "brier: no seed 2, which others have" in ended.stderr


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["fcl", "ghost"], "objectives must be among those of the runs, 'ce', 'focal', 'fcl', got 'ghost'"),
        (["gh*st", "ce"], "objectives must be among those of the runs, 'ce', 'focal', 'fcl', got 'gh*st'"),
        (["fcl", "fcl"], "baselines must not hold the candidate"),
        (["fcl", "ce", "--metrics", "rows"], "less or more is better"),
        (["fcl", "ce", "--metrics", "ece,eec"], "metrics must be one of 'error', "),
        (["fcl", "ce", "--split", "tset"], "split must be one of 'val', 'test', got 'tset'"),
        (["fcl", "ce", "--alpha", "2"], "alpha must be between 0 and 1"),
        (["fcl", "ce", "--study", "surface-lite"], "a run of the study surface-lite"),
    ],
)
def test_what_cannot_be_compared_is_named(few, arguments, message):
    ended = run(*arguments, "--store", few.path)
    assert ended.exit_code == 2
    assert message in ended.stderr


@pytest.fixture(scope="module")
def sweep(tmp_path_factory):
    store = Store(tmp_path_factory.mktemp("sweep"))
    for seed in (0, 1):
        synthetic.add(store, synthetic.spec("ce", seed))
        for lam in (0.5, 1.0):
            synthetic.add(store, synthetic.spec("fcl", seed, gamma=3.0, lam=lam))
    return store


def test_of_a_sweep_the_names_are_said_and_a_pattern_takes_them_all(sweep):
    unclear = run("fcl", "ce", "--store", sweep.path)
    assert unclear.exit_code == 2
    assert "'fcl lam=0.5', 'fcl lam=1', got 'fcl'; name one of them, or all with 'fcl*'" in unclear.stderr
    assert unclear.stderr.count("\n") == 1
    for arguments, pairs in {
        ("fcl*", "ce"): {("fcl lam=0.5", "ce"), ("fcl lam=1", "ce")},
        ("fcl lam=1", "fcl*"): {("fcl lam=1", "fcl lam=0.5")},
        ("ce",): {("ce", "fcl lam=0.5"), ("ce", "fcl lam=1")},
    }.items():
        families = json.loads(run(*arguments, "--store", sweep.path, "--json").stdout)
        assert {(family["candidate"], family["baseline"]) for family in families} == pairs


def test_an_empty_store_and_no_store(tmp_path):
    Store(tmp_path / "empty")
    ended = run("fcl", "--store", tmp_path / "empty")
    assert ended.exit_code == 2
    assert "store must hold a run, got none" in ended.stderr
    assert run("fcl", "--store", tmp_path / "nowhere").exit_code == 2
    assert not (tmp_path / "nowhere").exists()


def test_a_candidate_without_company_in_its_setting_says_so(tmp_path):
    store = Store(tmp_path)
    synthetic.add(store, synthetic.spec("fcl", model="mlp"), rows=60)
    synthetic.add(store, synthetic.spec("ce"), rows=60)
    ended = run("fcl", "--store", tmp_path)
    assert ended.exit_code == 1
    assert "no setting has the candidate and another objective" in ended.stdout


def test_runs_on_other_examples_of_the_same_name_are_refused_in_one_sentence(tmp_path):
    store = Store(tmp_path)
    for objective, sha256 in (("ce", "a" * 64), ("fcl", "b" * 64)):
        for seed in (0, 1):
            told = stored_runs.record()
            told["provenance"]["data"] = {"fingerprints": {"test": sha256}}
            store.add(stored_runs.spec(seed, objective), record=told, epochs=None, predictions=[])
    ended = run("fcl", "ce", "--store", tmp_path)
    assert (ended.exit_code, ended.stderr.count("\n")) == (2, 1)
    assert "runs must have seen the same data to be compared, got different test examples in" in ended.stderr
    assert "remove the runs of the data that is out of date with `focalcal runs rm`" in ended.stderr
    pages = typer.Typer()
    pages.command()(report)
    written = CliRunner().invoke(pages, ["--store", str(tmp_path), "--no-figures"])
    assert (written.exit_code, written.stderr) == (2, ended.stderr)
