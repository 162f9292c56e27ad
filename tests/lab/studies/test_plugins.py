"""Objectives, data sets and networks of somebody else, from the study's file to the workers and the key."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from focalcal.lab.store import Spec, Store
from focalcal.lab.studies import StudyError, load_study, parse_study, plan_study, run_spec, spec_of
from focalcal.lab.studies.completeness import find_gaps
from focalcal.lab.studies.plugin_trial import try_plugins
from focalcal.lab.training import recipe

EXAMPLE = Path(__file__).parents[3] / "examples" / "own_code"
PARTS = """
import torch
from torch import nn
from focalcal.lab.data import load_data
from focalcal.lab.models import ModelInfo

class Fine(nn.Module):
    def __init__(self, beta, *, alpha=1.0, reduction="mean"):
        super().__init__()
        self.weight = alpha * beta
    def forward(self, logits, target):
        return self.weight * nn.functional.cross_entropy(logits, target)

class Rows(Fine):
    def forward(self, logits, target):
        return nn.functional.cross_entropy(logits, target, reduction="none")

class Infinite(Fine):
    def forward(self, logits, target):
        return nn.functional.cross_entropy(logits, target) / 0

class Broken(Fine):
    def forward(self, logits, target):
        raise RuntimeError("no luck")

def number(beta):
    return 3

def digits(size=60):
    return load_data("digits")

def nothing():
    return 3

class Network(nn.Module):
    def __init__(self, classes, extra=0):
        super().__init__()
        self.linear = nn.Linear(64, classes + extra)
    def forward(self, images):
        return self.linear(images.flatten(1))

class Several(Network):
    info = ModelInfo(inputs="images", shape=None, feature_layer=None, feature_layout=None, multilabel=True)
"""
STUDY = """
title = "with plug-ins"
seeds = [0]
[[settings]]
recipe = "digits_mlp_lite"
epochs = 1
{setting}
[[objectives]]
name = "{objective}"
{options}
"""


@pytest.fixture
def parts(tmp_path, monkeypatch, request):
    """A module of one's own in the current folder, under a name that no other test has imported."""
    name = f"parts_{abs(hash(request.node.name))}"
    (tmp_path / f"{name}.py").write_text(PARTS)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))
    return name


def study(objective="ce", setting="", options=""):
    return parse_study(STUDY.format(objective=objective, setting=setting, options=options))


def test_the_example_runs_from_its_folder_with_two_workers_and_its_runs_are_complete(tmp_path):
    """As a user types it: the current folder is on no path of Python's, and workers are other processes."""
    folder = shutil.copytree(EXAMPLE, tmp_path / "own_code")
    assert sum(len(file.read_text().splitlines()) for file in folder.iterdir()) < 60
    command = [
        sys.executable,
        "-P",
        "-m",
        "focalcal.cli",
        "study",
        "study.toml",
        "--store",
        "runs",
        "-j",
        "2",
        "--json",
    ]
    environment = {
        **os.environ,
        "PYTHONPATH": os.pathsep.join(str(Path(entry).resolve()) for entry in sys.path if entry),
    }
    done = subprocess.run(command, capture_output=True, text=True, cwd=folder, env=environment)
    assert done.returncode == 0, done.stderr
    runs = json.loads(done.stdout)
    assert len(runs) == 8
    assert max(run["metrics"]["test"]["error"] for run in runs) < 0.5  # of three classes: something was learnt
    assert {tuple(run["training"]["sources"]) for run in runs} == {
        ("data_set", "model"),
        ("data_set", "model", "objective"),
    }
    assert "8 of 8 cells are stored" in done.stderr


def test_the_key_follows_the_source_of_a_plug_in_and_leaves_shipped_names_alone(parts):
    own = study(f"{parts}:Fine", options="beta = 2").specs()[0]
    assert set(own.training["sources"]) == {"objective"}
    changed = {**own.as_dict(), "training": {**own.training, "sources": {"objective": "0" * 64}}}
    assert Spec.from_dict(changed).key != own.key
    assert "sources" not in study().specs()[0].training


def test_a_run_whose_plug_in_has_changed_is_not_trained(parts, tmp_path):
    spec = study(f"{parts}:Fine", options="beta = 2").specs()[0]
    changed = Spec.from_dict({**spec.as_dict(), "training": {**spec.training, "sources": {"objective": "0" * 64}}})
    with pytest.raises(ValueError, match=r"objective 'parts_\d+:Fine' must be the code that run .* was planned with"):
        run_spec(changed, Store(tmp_path / "runs"))


def test_a_run_with_three_plug_ins_is_whole_and_equals_the_one_with_the_same_shipped_parts(parts, tmp_path):
    setting = f'data_set = "{parts}:digits"\nmodel = "{parts}:Network"\ndata_options.size = 7'
    spec = study(f"{parts}:Fine", setting, "beta = 1").specs()[0]
    assert dict(spec.objective_options) == {"alpha": 1, "beta": 1}
    assert spec.training["data_options"] == {"size": 7}  # nothing of the recipe's, which belong to other code
    assert spec.training["model_options"] == {}
    store = Store(tmp_path / "runs")
    plan = plan_study(study(f"{parts}:Fine", setting, "beta = 1"), tmp_path / "runs")
    assert [cell.state for cell in plan] == ["to train"]
    run = run_spec(spec, store)
    assert find_gaps([spec], store) == []
    plain = run_spec(study("ce", setting).specs()[0], store)
    assert run.metrics("test") == pytest.approx(
        plain.metrics("test"), rel=1e-4
    )  # beta = alpha = 1: it is cross-entropy


@pytest.mark.parametrize(
    ("objective", "setting", "options", "message"),
    [
        ("Rows", "", "beta = 1", r"objective '.*:Rows' must work when .*: the loss must be one number per batch"),
        ("Infinite", "", "beta = 1", "the loss and its gradient must be finite, got inf for 8 examples"),
        ("Broken", "", "beta = 1", r"got RuntimeError: no luck \(parts_\d+\.py, line \d+\)"),
        ("", "data_set = '{}:nothing'", "", r"data set '.*:nothing' must work .*must give a focalcal.lab.data.DataSet"),
        (
            "",
            "model = '{}:Network'\nmodel_options.extra = 1",
            "",
            r"logits must have the shape \(8, 10\), got \(8, 11\)",
        ),
        ("", "data_set = '{}:digits'\nclasses = 9", "", "classes must be 10 for digits, got 9"),
    ],
)
def test_a_dry_run_calls_each_plug_in_and_says_what_is_wrong(parts, tmp_path, objective, setting, options, message):
    chosen = study(f"{parts}:{objective}" if objective else "ce", setting.replace("{}", parts), options)
    with pytest.raises(ValueError, match=message):
        plan_study(chosen, tmp_path / "runs")
    assert not (tmp_path / "runs").exists()


@pytest.mark.parametrize(
    ("objective", "options", "message"),
    [
        ("Fine", "", r"objectives\[0\].name: parts_\d+:Fine must be given beta, which has no default"),
        ("Fine", "beta = 1\nreduction = 'sum'", r"objectives\[0\].reduction: 'reduction' is not an option"),
        ("Missing", "", r"objectives\[0\].name: objective '.*:Missing' must be importable"),
        ("number", "beta = 1", r"objectives\[0\].name: objective '.*:number' must give an nn.Module, got int"),
    ],
)
def test_a_plug_in_that_cannot_be_built_is_a_fault_of_the_study(parts, objective, options, message):
    with pytest.raises(StudyError, match=message):
        study(f"{parts}:{objective}", options=options)


def test_cells_without_plug_ins_are_not_tried(monkeypatch):
    monkeypatch.setattr("focalcal.lab.studies.plugin_trial.load_run_data", None)
    try_plugins(load_study("digits").specs())


def test_a_plug_in_serves_a_spec_in_python(parts):
    spec = spec_of(recipe("digits_mlp_lite"), f"{parts}:Fine", {"beta": 3}, seed=0)
    assert spec.name == f"digits/mlp {parts}:Fine(alpha=1, beta=3) seed 0"


def test_a_network_says_by_its_info_that_an_example_has_several_labels(parts):
    with pytest.raises(StudyError, match=r"where an example has any number of labels, got 'ce'; use one of multilabel"):
        study("ce", f"model = '{parts}:Several'")
    assert study("multilabel_bce", f"model = '{parts}:Several'").specs()
