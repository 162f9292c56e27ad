"""`focalcal evaluate`: more is asked of stored runs, by key or by study."""

import json
import shutil

import pytest
from typer.testing import CliRunner

from focalcal.cli.app import app
from focalcal.lab.store import Evaluations, Store
from focalcal.lab.studies import load_study
from focalcal.lab.studies.run import run_spec
from focalcal.metrics import nll
from focalcal.posthoc import TemperatureScaling

STUDY = """
title = "small"
seeds = [0, 1, 2]
[[settings]]
recipe = "digits_small_cnn_lite"
epochs = 1
model_options = { width = 4 }
[[objectives]]
name = "ce"
[protocol]
train_examples = 60
test_examples = 20
saliency = 2
"""


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    """Of three cells one has weights, one has none, and one is not trained."""
    folder = tmp_path_factory.mktemp("trained")
    (folder / "small.toml").write_text(STUDY)
    store = Store(folder / "runs")
    for spec, keep in zip(load_study(folder / "small.toml").specs(), (True, False), strict=False):
        run_spec(spec, store, evaluations=Evaluations(keep_weights=keep))
    return folder


@pytest.fixture
def folder(trained, tmp_path):
    return shutil.copytree(trained, tmp_path / "copy")


def invoke(folder, *arguments):
    return CliRunner().invoke(app, ["evaluate", "--store", str(folder / "runs"), *map(str, arguments)])


def keys(folder):
    runs = Store(folder / "runs").runs()
    return tuple(run.key for run in sorted(runs, key=lambda run: run.spec.seed))


def test_a_run_is_asked_once(folder):
    key, _ = keys(folder)
    first = invoke(folder, key[:10], "--saliency", 3)
    assert first.exit_code == 0, first.output
    assert first.stdout == f"{key[:12]}  digits/small_cnn ce seed 0: added saliency-3\n"
    assert Store(folder / "runs").run(key).evaluations == ("saliency-3",)
    again = invoke(folder, key[:10], "--saliency", 3)
    assert again.stdout == f"{key[:12]}  digits/small_cnn ce seed 0: has these already\n"


def test_a_study_names_its_runs_and_what_they_are_asked(folder):
    kept, bare = keys(folder)
    found = invoke(folder, "--study", folder / "small.toml", "--json")
    assert found.exit_code == 1
    with_weights, without = json.loads(found.stdout)
    assert with_weights == {"key": kept, "added": ["saliency-2"], "refused": None}
    assert (without["key"], without["added"]) == (bare, [])
    assert "was stored without its weights" in without["refused"]
    told = invoke(folder, "--study", folder / "small.toml")
    assert told.exit_code == 1
    assert f"focalcal: run {bare[:12]}: was stored without its weights" in told.stderr
    shown = CliRunner().invoke(app, ["runs", "show", kept[:8], "--store", str(folder / "runs")])
    assert "evaluated saliency-2" in shown.stdout


def test_the_plan_of_a_study_says_what_can_only_be_evaluated(folder):
    plan = CliRunner().invoke(
        app, ["study", str(folder / "small.toml"), "--store", str(folder / "runs"), "--dry-run", "-j", "1"]
    )
    assert "3 cells, 1 to train, 1 to evaluate, 1 without weights; how long they take is not known" in plan.stdout


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ([], "there must be runs to evaluate, and none is named; give keys"),
        (["KEY"], "no evaluation is named; give --shift"),
        (["KEY", "--shift", "svnh"], "'svnh' is not a shift; did you mean 'svhn'?"),
        (["KEY", "--shift", "svhn"], "shifts must fit the test images"),
        (["KEY", "--severity", "6"], "severities[0] must be less than or equal to 5, got 6"),
        (["--study", "digits"], "none of digits is stored in"),
        (["KEY", "--test-set", "nowhere.npz"], "nowhere.npz"),
    ],
)
def test_bad_input_is_one_sentence(folder, arguments, said):
    key, _ = keys(folder)
    result = invoke(folder, *(key if one == "KEY" else one for one in arguments))
    assert result.exit_code == 2, result.output
    assert said in result.stderr
    assert len(result.stderr.splitlines()) == 1


def test_runs_that_are_refused_for_one_reason_are_one_line(folder):
    _, bare = keys(folder)
    again = Store(folder / "more")
    for spec in load_study(folder / "small.toml").specs():
        run_spec(spec, again, evaluations=Evaluations(keep_weights=False))
    told = CliRunner().invoke(app, ["evaluate", "--store", str(folder / "more"), "--study", str(folder / "small.toml")])
    assert told.exit_code == 1
    (line,) = [line for line in told.stderr.splitlines() if "focalcal: " in line]
    assert "focalcal: 3 of 3 runs, " in line
    assert bare[:12] in line
    assert "was stored without its weights, which saliency-2 would be computed from" in line


@pytest.mark.filterwarnings("ignore::focalcal.CalibrationWarning")
def test_stored_predictions_are_measured_without_weights(folder):
    store = Store(folder / "runs")
    rows = json.loads(invoke(folder, "--metric", "nll", "--metric", "debiased_ece", "--json").stdout)
    assert {row["key"]: row["nll"] for row in rows} == {run.key: run.metrics("test")["nll"] for run in store.runs()}
    _, bare = keys(folder)
    (row,) = json.loads(invoke(folder, bare, "--metric", "nll", "--calibrator", "temperature", "--json").stdout)
    run = store.run(bare)
    fitted = TemperatureScaling().fit(run.predictions("val"))
    assert row["nll"] == pytest.approx(
        nll(fitted.predict_proba(run.predictions("test")), run.predictions("test").labels)
    )
    (row,) = json.loads(invoke(folder, bare, "--metric", "nll", "--keep", "refined", "--split", "val", "--json").stdout)
    assert row["nll"] == pytest.approx(run.record["kept"]["refined"]["nll"], rel=1e-6)
    assert store.run(bare).evaluations == ()
    refused = invoke(folder, "--metric", "nlll")
    assert refused.exit_code == 2
    assert "'nlll' is not a metric; did you mean 'nll'?" in refused.stderr
