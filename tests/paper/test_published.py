"""What stands in docs/results is what the records say."""

import html
import json
import math
import subprocess
import sys
from pathlib import Path

import paper.audits
import paper.instruction_sets
import paper.not_run
import paper.publish
import paper.published
import paper.record
import paper.trials
import pytest

from focalcal.lab.store import Spec, Store
from focalcal.lab.studies import load_study
from focalcal.lab.studies.run import run_spec

ROOT = Path(__file__).parents[2]
PUBLISHED = ROOT / "docs" / "results"
BENCHMARKED = {"monitor.md", "posthoc.md"}  # which name the benchmarks that measure what they say


@pytest.fixture(scope="module")
def publish():
    return paper.publish


@pytest.fixture(scope="module")
def made(publish):
    return publish.pages()


def test_the_leaderboard_is_what_its_record_gives(tmp_path):
    command = [sys.executable, ROOT / "benchmarks" / "posthoc_page.py", ROOT / "benchmarks" / "records" / "posthoc.csv"]
    subprocess.run([*command, tmp_path / "posthoc.md"], check=True, stdout=subprocess.DEVNULL)
    assert (tmp_path / "posthoc.md").read_text() == (PUBLISHED / "posthoc.md").read_text()


def test_every_page_is_what_the_records_give(made):
    assert made.keys() | BENCHMARKED == {path.name for path in PUBLISHED.glob("*.md")}
    for name, text in made.items():
        assert (PUBLISHED / name).read_text() == text, f"{name} is not what the records give; run `make paper`"


@pytest.mark.parametrize("name", ["default", "cifar10", "known-posterior-teacher", "surface", "text"])
def test_recorded_keys_are_those_that_the_same_runs_have_now(name):
    """Stored runs and records are found by them: a change of what a key is needs a new SCHEMA."""
    lines = [json.loads(line) for line in (paper.published.RECORDS / f"{name}.jsonl").read_text().splitlines()]
    assert [Spec.from_dict(line["spec"]).key for line in lines] == [line["key"] for line in lines]
    if name == "default":
        assert {spec.key for spec in load_study("digits").specs()} <= {line["key"] for line in lines}


def test_a_changed_record_changes_a_page(publish, tmp_path, monkeypatch):
    records = ROOT / "paper" / "records"
    for path in records.iterdir():
        (tmp_path / path.name).write_bytes(path.read_bytes())
    lines = (records / "default.jsonl").read_text().splitlines()
    first = json.loads(lines[0])
    first["metrics"]["test"]["ece"] += 0.5
    (tmp_path / "default.jsonl").write_text("\n".join([json.dumps(first), *lines[1:]]) + "\n")
    monkeypatch.setattr("paper.published.RECORDS", tmp_path)
    assert publish.pages("default.md")["default.md"] != (PUBLISHED / "default.md").read_text()


def test_every_figure_that_a_page_shows_is_drawn_from_records(publish):
    shown = {
        part.partition(")")[0] for path in PUBLISHED.glob("*.md") for part in path.read_text().split("](figures/")[1:]
    }
    assert shown == publish.figures().keys() == {path.name for path in (PUBLISHED / "figures").iterdir()}


def test_records_hold_what_was_run_and_no_logits():
    for path in set((ROOT / "paper" / "records").glob("*.jsonl")) - {ROOT / "paper" / "records" / "audits.jsonl"}:
        for line in path.read_text().splitlines():
            record = json.loads(line)
            assert {"key", "spec", "seconds", "software", "machine", "metrics"} <= record.keys()
            assert len(line) < 6_000


def test_recorded_runs_of_another_machine_stay(publish, tmp_path):
    path = tmp_path / "runs.jsonl"
    assert paper.record.recorded(path) == {}
    path.write_text('{"key": "a", "seconds": 1}\n{"key": "b", "seconds": 2}\n')
    assert list(paper.record.recorded(path)) == ["a", "b"]


def test_the_pages_of_audits_say_what_the_records_say(publish):
    lines = (ROOT / "paper" / "records" / "audits.jsonl").read_text().splitlines()
    found = {record["name"]: record["verdict"]["sentence"] for record in map(json.loads, lines)}
    for name in found.keys() & set(paper.audits.SHOWN):
        page = html.unescape((PUBLISHED / "audits" / f"{name}.html").read_text())
        assert found[name] in page.translate({ord("\N{NO-BREAK SPACE}"): " ", ord("\N{MINUS SIGN}"): "-"})


ORIGIN = {"instructions", "torch", "focalcal", "commit"}


def test_every_writer_of_records_says_where_they_come_from(tmp_path, monkeypatch):
    """The operating points' and the costs' are in the tests of their commands."""
    store = Store(tmp_path / "runs")
    for spec in load_study("digits").specs(smoke=True):
        if spec.objective in ("ce", "fcl"):
            run_spec(spec, store)
    runs = store.runs()
    assert len(runs) == 4
    for run in runs:
        line = paper.record.record(run, with_bins=False)
        assert {"software", "machine", "temperature"} <= line.keys()
        assert {"focalcal", "torch", "commit"} <= line["software"].keys()
        assert paper.instruction_sets.row("digits", run).keys() >= {*ORIGIN, "validation_temperature"}
    for module in (paper.audits, paper.not_run):
        monkeypatch.setattr(module, "RECORDS", tmp_path)
    monkeypatch.setattr(paper.audits, "PAGES", tmp_path / "pages")
    monkeypatch.setattr(sys, "argv", ["audits", "forest-digits"])
    paper.audits.main()
    (audited,) = map(json.loads, (tmp_path / "audits.jsonl").read_text().splitlines())
    assert audited["audited"].keys() == audited["trained"].keys() == ORIGIN
    monkeypatch.setattr(paper.not_run, "NOT_RUN", {"text": "texts"})
    monkeypatch.setattr(paper.not_run, "hours", lambda specs: 1.0)
    paper.not_run.main()
    assert (tmp_path / "not-run.csv").read_text().splitlines()[0].endswith("instructions,torch,focalcal,commit")


def test_older_rows_stay_as_they_are_beside_rows_that_say_more(tmp_path, monkeypatch):
    monkeypatch.setattr(paper.trials, "RECORDS", tmp_path)
    older, newer = {"seed": 1, "nll": 0.25}, {"seed": 2, "nll": 0.5, "instructions": "AVX2"}
    for rows in ([older, newer], [newer, older]):
        paper.record.write_table(tmp_path / "some.csv", rows)
        read = paper.trials.Trials.read("some").rows
        assert {row["seed"]: (row["nll"], row["instructions"]) for row in read} == {1: (0.25, ""), 2: (0.5, "AVX2")}


def test_every_page_says_how_far_its_numbers_transfer(made):
    for name, text in made.items():
        assert "transfer" in text, name


def test_exponents_are_local_and_add_up_to_the_whole_fall():
    records = paper.published.Records.read("known-posterior-gaussian", paper.published.by_training_rows)
    local = [float(slope) for slope in paper.published.exponents(records, "ce").split(", ")]
    assert local == [-0.55, -0.71, -0.48, -0.35]  # each from one size to four times that
    small, large = (
        float(records.mean(f"gaussian_mixture, {rows} rows", "ce", "q_distance")) for rows in ("500", "128,000")
    )
    assert math.log(large / small) == pytest.approx(sum(local) * math.log(4), abs=0.03)


def test_a_difference_is_paired_over_the_seeds_of_both_comparisons():
    ahead, behind = ("recipe", "calibrated"), ("cross-entropy", "calibrated")
    values = paper.trials.seeds_of(paper.trials.Trials.read("equal-access-newsgroups", "confirmation-newsgroups"))
    gaps = [values[ahead]["ece"][seed] - ece for seed, ece in values[behind]["ece"].items()]
    assert len(gaps) == 20
    assert float(paper.trials.difference("ece", ahead, behind, "newsgroups")) == pytest.approx(
        100 * sum(gaps) / len(gaps), abs=0.006
    )
    assert paper.trials.difference("ece", behind, ahead, "newsgroups").startswith("-" if sum(gaps) > 0 else "+")


def test_how_far_numbers_transfer_is_read_from_pairs_of_runs(tmp_path, monkeypatch):
    row = {"objective": "ce", "seed": 0, "instructions": "AVX2", "ece": 0.0294, "nll": 0.5}
    other = row | {"instructions": "AVX512", "ece": 0.0366, "nll": 0.504}
    same = {"setting": "b/mlp"}
    paper.record.write_table(
        tmp_path / "instruction-sets.csv",
        [row | {"setting": "a/cnn"}, other | {"setting": "a/cnn"}, row | same, row | same | {"instructions": "AVX512"}],
    )
    monkeypatch.setattr(paper.trials, "RECORDS", tmp_path)
    told = paper.instruction_sets.transfer()
    assert told.startswith("Of 2 networks trained with AVX2 and AVX512, all else equal, 1 have the same numbers.")
    assert "up to 0.72 points and their NLL up to 0.004 apart" in told
    assert told.endswith("ECE in percent transfers to no decimals, its NLL transfers to 2 decimals.")
    assert "take one path" in paper.instruction_sets.transfer("b/")
