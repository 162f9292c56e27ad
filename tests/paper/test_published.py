"""What stands in docs/results is what the records say."""

import html
import json
import math
from dataclasses import replace
from pathlib import Path

import paper.audits
import paper.confirmation
import paper.publish
import paper.published
import paper.record
import paper.trials
import pytest

from focalcal.lab.studies.tuning.candidates import candidate

ROOT = Path(__file__).parents[2]
PUBLISHED = ROOT / "docs" / "results"


@pytest.fixture(scope="module")
def publish():
    return paper.publish


def test_every_page_is_what_the_records_give(publish):
    made = publish.pages()
    assert made.keys() == {path.name for path in PUBLISHED.glob("*.md")}
    for name, text in made.items():
        assert (PUBLISHED / name).read_text() == text, f"{name} is not what the records give; run `make paper`"


def test_a_changed_record_changes_a_page(publish, tmp_path, monkeypatch):
    records = ROOT / "paper" / "records"
    for path in records.iterdir():
        (tmp_path / path.name).write_bytes(path.read_bytes())
    lines = (records / "default.jsonl").read_text().splitlines()
    first = json.loads(lines[0])
    first["metrics"]["test"]["ece"] += 0.5
    (tmp_path / "default.jsonl").write_text("\n".join([json.dumps(first), *lines[1:]]) + "\n")
    monkeypatch.setattr("paper.published.RECORDS", tmp_path)
    assert publish.pages()["default.md"] != (PUBLISHED / "default.md").read_text()


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


def test_a_recorded_choice_is_trained_again_as_it_was(publish):
    for task in paper.trials.recorded_tasks("equal-access"):
        choices = paper.confirmation.recorded_choices(task)
        assert {(choice.method, choice.use) for choice in choices} == paper.confirmation.USED
    again = paper.confirmation.option("fcl(gamma=3, lam=9.71)", 0.1)
    assert again == replace(candidate("fcl", gamma=3.0, lam=9.71), lr=0.1)


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
