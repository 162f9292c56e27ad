"""Data and code of one's own that change: which cells are trained again, and what is not compared."""

import os
import sys
import time

import numpy as np
import pytest

from focalcal.core import plugins
from focalcal.lab.evidence.evidence import gather_metrics, reading_order
from focalcal.lab.store import Store
from focalcal.lab.studies import own_data, parse_study, plan_study, run_spec

MODULE = """
import numpy as np
from torch import nn
from focalcal.lab.data import DataSet, Examples

CALLS = []

def rows(named=False):
    CALLS.append(1)
    inputs, labels = np.load("inputs.npy"), np.load("labels.npy")
    parts = (Examples(inputs[k::3], labels[k::3], np.arange(k, 90, 3)) for k in range(3))
    return DataSet("own", ("a", "b"), *parts, files=("inputs.npy", "labels.npy") if named else ())

class Net(nn.Linear):
    def __init__(self, classes):
        super().__init__(2, classes)

class Mine(nn.Module):
    def forward(self, logits, target):
        return helper(logits, target)  # the mean

def helper(logits, target):
    return nn.functional.cross_entropy(logits, target)

def unrelated():
    return 3
"""
STUDY = """
title = "own"
seeds = [0, 1]
[[settings]]
recipe = "gaussian_mixture_mlp_lite"
epochs = 1
data_set = "own_{0}:rows"
data_options.named = {1}
classes = 2
model = "own_{0}:Net"
[[objectives]]
name = ["ce", "own_{0}:Mine"]
"""


class Project:
    """A folder with a module, its data and a store, seen as a new process would see it."""

    def __init__(self, folder, name):
        self.folder, self.name, self.module = folder, name, folder / f"own_{name}.py"
        self.store = Store(folder / "runs")
        generator = np.random.default_rng(0)
        np.save(folder / "inputs.npy", generator.normal(size=(90, 2)).astype(np.float32))
        np.save(folder / "labels.npy", generator.integers(2, size=90))
        self.module.write_text(MODULE)

    def study(self, *, named=False):
        plugins._load.cache_clear()
        sys.modules.pop(self.module.stem, None)
        return parse_study(STUDY.format(self.name, str(named).lower()))

    def train(self, **options):
        return [run_spec(spec, self.store) for spec in self.study(**options).specs()]

    def to_train(self, **options):
        cells = plan_study(self.study(**options), self.store.path)
        return [cell.spec.objective.rpartition(":")[2] for cell in cells if cell.state != "done"]

    def permute_labels(self):
        np.save(self.folder / "labels.npy", np.sort(np.load(self.folder / "labels.npy")))

    def edit(self, old, new):
        assert old in self.module.read_text()
        self.module.write_text(self.module.read_text().replace(old, new))


@pytest.fixture
def project(tmp_path, monkeypatch, request):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return Project(tmp_path, abs(hash(request.node.name)))


@pytest.mark.parametrize("named", [False, True])
def test_changed_examples_are_new_cells_and_a_touched_file_is_not(project, named, monkeypatch):
    monkeypatch.setattr(own_data, "_SETTLED", -1)
    old = project.train(named=named)
    assert project.to_train(named=named) == []
    os.utime(project.folder / "labels.npy")
    assert project.to_train(named=named) == []
    project.permute_labels()
    assert project.to_train(named=named) == ["ce", "Mine"] * 2
    with pytest.raises(ValueError, match=r"data set 'own' must hold the examples that the run was planned with \(fing"):
        run_spec(old[0].spec, Store(project.folder / "others"))
    new, *_ = project.train(named=named)
    evidence = gather_metrics(reading_order(project.store.runs()), title="both")
    assert [len(evidence.of(setting, "ce")) for setting in evidence.settings] == [2, 2]  # nothing is pooled
    commonest = [np.bincount(run.predictions("test").labels).max() / 30 for run in (old[0], new)]
    assert len(set(commonest)) == 2
    assert sorted({run.constant_error for run in evidence.runs}) == pytest.approx(
        sorted(1 - share for share in commonest)
    )


def test_edits_of_the_module_train_again_what_depends_on_them(project):
    project.train()
    project.edit("return 3", "return 4")
    project.edit("# the mean", "# of all rows")
    assert project.to_train() == []
    project.edit("cross_entropy(logits, target)", "cross_entropy(2 * logits, target)")
    assert project.to_train() == ["Mine", "Mine"]
    project.train()
    evidence = gather_metrics(reading_order(project.store.runs()), title="both")
    (setting,) = evidence.settings
    named = [name.partition(" code=")[0].rpartition(":")[2] for name in evidence.objectives]
    assert named == ["ce", "Mine", "Mine"]  # two versions of the loss
    assert [len(evidence.of(setting, objective)) for objective in evidence.objectives] == [2, 2, 2]


def test_data_whose_files_are_named_is_loaded_only_after_a_change(project, monkeypatch):
    def fingerprint():
        spec = project.study(named=True).specs()[0]
        return spec.training["fingerprint"], len(sys.modules[project.module.stem].CALLS)

    first, calls = fingerprint()
    assert calls == 1
    assert fingerprint() == (first, 1)  # the files are so young that they could change and look the same
    monkeypatch.setattr(own_data, "_SETTLED", 50_000_000)
    time.sleep(0.1)
    assert [fingerprint() for _ in range(2)] == [(first, 1), (first, 0)]
    look = os.stat("labels.npy")
    project.permute_labels()
    os.utime("labels.npy", ns=(look.st_atime_ns, look.st_mtime_ns))  # of the same size and time, as `cp -p` leaves it
    changed, calls = fingerprint()
    assert changed != first
    assert calls == 1


def test_runs_on_different_examples_under_one_name_are_not_compared(project):
    before = project.train()
    project.permute_labels()
    after = project.train()
    one_setting = [before[0], next(run for run in after if run.spec.objective != before[0].spec.objective)]
    with pytest.raises(ValueError, match=r"same data to be compared, got different train examples in .*`focalcal runs"):
        gather_metrics(one_setting, title="mixed")
