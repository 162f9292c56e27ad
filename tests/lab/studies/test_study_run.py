"""A study in one call: what is missing is run, everything is looked at once, and the result says what there is."""

from collections import Counter

import pytest
from support import synthetic_study as synthetic
from support.stored_runs import flip_a_bit

from focalcal.lab.store import Spec, Store
from focalcal.lab.studies import load_study, parse_study, run_study
from focalcal.lab.studies.events import Examined, Failed, Finished

STUDY = """
title = "Two objectives"
seeds = [0, 1]
[[settings]]
recipe = "digits_mlp_lite"
epochs = 2
model_options.hidden = [8]
[[objectives]]
name = ["ce", "fcl"]
[smoke]
seeds = [5]
"""


class InThisProcess:
    """Stores what looks like a run of each cell, but for those that are to fail or to interrupt."""

    def __init__(self, fail=(), interrupt_at=None):
        self.fail, self.interrupt_at, self.asked = fail, interrupt_at, []

    def run(self, specs, store, on_event, evaluations):
        for spec in specs:
            self.asked.append(spec)
            if spec.key == self.interrupt_at:
                raise KeyboardInterrupt
            if spec.key in self.fail:
                store.record_failure(spec, kind="error", message="no luck")
                on_event(Failed(spec, "error", "no luck"))
            else:
                synthetic.add(store, spec)
                on_event(Finished(spec, 0.1))


@pytest.fixture
def study():
    return parse_study(STUDY, "two.toml")


def test_a_study_is_run_and_the_result_has_what_a_report_needs(study, store):
    events = []
    result = run_study(study, store, InThisProcess(), on_event=events.append)
    assert result.specs == tuple(study.specs())
    assert [run.key for run in result.runs] == [spec.key for spec in result.specs]
    assert result.outcome.done == tuple(spec.key for spec in result.specs)
    assert result.complete == 4
    assert result.gaps == ()
    assert result.name == "two"
    assert isinstance(events[0], Examined)
    assert list(events[0].missing) == list(result.specs)


def test_a_finished_study_is_only_read(study, store):
    first, executor, events = run_study(study, store, InThisProcess()), InThisProcess(), []
    again = run_study(study, store, executor, on_event=events.append)
    assert (executor.asked, events) == ([], [])
    assert again.outcome.found == first.outcome.done
    assert [run.path for run in again.runs] == [run.path for run in first.runs]


def test_cells_that_fail_are_gaps_and_the_others_runs(study, store):
    specs = study.specs()
    result = run_study(study, store, InThisProcess(fail={specs[1].key}))
    (gap,) = result.gaps
    assert (gap.kind, gap.key, gap.message) == ("failed", specs[1].key, "error: no luck")
    assert result.outcome.failed == (specs[1].key,)
    assert specs[1].key not in {run.key for run in result.runs}
    assert (len(result.runs), result.complete) == (3, 3)


def test_an_interrupted_study_goes_on_where_it_was(study, store):
    specs = study.specs()
    result = run_study(study, store, InThisProcess(interrupt_at=specs[2].key))
    assert result.outcome.interrupted
    assert [gap.kind for gap in result.gaps] == ["not run", "not run"]
    executor = InThisProcess()
    assert run_study(study, store, executor).gaps == ()
    assert executor.asked == specs[2:]


def test_a_damaged_cell_is_run_again(study, store):
    run_study(study, store, InThisProcess())
    damaged = study.specs()[3]
    flip_a_bit(store.path / "runs" / damaged.key / "predictions" / "test.npz", 500)
    executor = InThisProcess()
    result = run_study(study, Store(store.path), executor)
    assert executor.asked == [damaged]
    assert result.gaps == ()


def test_every_spec_is_built_once_and_every_stored_run_examined_once(store, tmp_path, monkeypatch):
    run_study(parse_study(STUDY), store, InThisProcess())
    built, examined = [], Counter()
    build, look = Spec.__init__, Store.run
    monkeypatch.setattr(Spec, "__init__", lambda spec, **values: (built.append(1), build(spec, **values))[1])
    monkeypatch.setattr(Store, "run", lambda store, key: (examined.update([key]), look(store, key))[1])
    monkeypatch.setattr(Store, "missing", None)
    monkeypatch.setattr(Store, "has", None)
    study = parse_study(STUDY)
    result = run_study(study, Store(store.path), InThisProcess())
    study.specs()
    assert len(built) == len(result.specs) == 4  # none for the other size, which nobody asked for
    assert set(examined.values()) == {1}


def test_names_and_folders_do_and_the_smallest_size_has_a_name_of_its_own(tmp_path):
    (tmp_path / "two.toml").write_text(STUDY)
    result = run_study(tmp_path / "two.toml", tmp_path / "runs", InThisProcess(), smoke=True)
    assert result.name == "two-smoke"
    assert {spec.seed for spec in result.specs} == {5}
    assert result.specs == tuple(load_study(tmp_path / "two.toml").specs(smoke=True))
