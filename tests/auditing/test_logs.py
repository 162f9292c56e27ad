"""Audits of evaluation logs: a line per task, two models on the same questions, clusters, gates, refusals."""

import json
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from focalcal import metrics
from focalcal.auditing import audit_logs
from focalcal.cli.app import app
from focalcal.predictions import read_logs

LOGS = Path(__file__).parents[1] / "predictions" / "evaluation_logs"
FOUR = next((LOGS / "lm_eval" / "model_a").glob("*four_options*"))
DRAWS = np.random.default_rng(0)


def written(folder, task, sharpness, questions=400, options=4, seed=0):
    """A log in the form of lm-evaluation-harness of a model that knows the posteriors, up to a temperature."""
    draws = np.random.default_rng(seed)
    logits = 2 * draws.normal(size=(questions, options))
    targets = np.argmax(logits + draws.gumbel(size=logits.shape), 1)
    logs = sharpness * logits - np.abs(sharpness * logits).max()
    rows = [
        {
            "doc_id": number,
            "doc": {"subject": ("law", "botany")[number % 2]},
            "target": str(target),
            "resps": [[[str(value), "False"]] for value in own],
            "acc": float(own.argmax() == target),
        }
        for number, (own, target) in enumerate(zip(logs, targets, strict=True))
    ]
    folder.mkdir(exist_ok=True)
    path = folder / f"samples_{task}_2026-11-19T10-00-00.jsonl"
    path.write_text("\n".join(map(json.dumps, rows)))
    return path


def test_two_models_on_the_same_questions(tmp_path):
    """The same posteriors, sharpened: equal accuracy, worse NLL and ECE, and a temperature that gains it back."""
    sharp, true = (written(tmp_path / name, "trivia", by) for name, by in (("sharp", 3.0), ("true", 1.0)))
    found = audit_logs(sharp, baseline=true, calibrate=["temperature"], resamples=200)
    task = found.tasks["trivia"]
    (log,) = read_logs(sharp)
    frame = found.frame()
    assert frame["ECE"] == [metrics.ece(log.predictions)]
    changes = {change.metric: change for change in task.changes}
    assert changes["nll"].finding == changes["ece"].finding == "worse"
    assert changes["error"].new == changes["error"].old
    (before,) = read_logs(true)
    assert frame["gain"][0] == pytest.approx(metrics.nll(log.predictions) - metrics.nll(before.predictions), abs=0.02)
    assert {part.name for part in task.groups} == {"law", "botany"}
    assert "trivia" in repr(found)
    assert "Subjects, worst first" in repr(found)
    assert found._repr_html_().count("<tr>") == 2


def test_two_models_of_which_only_the_first_option_is_known():
    """Questions with three or four options: what is right differs between the models, the questions do not."""
    new, old = (next((LOGS / "lm_eval" / name).glob("*three_or_four*")) for name in ("model_a", "model_b"))
    (task,) = audit_logs(new, baseline=old, calibrate=None, resamples=100).tasks.values()
    logs = [read_logs(path)[0].predictions for path in (new, old)]
    changes = {change.metric: (change.new, change.old) for change in task.changes}
    assert changes["brier"] == pytest.approx(tuple(map(metrics.brier, logs)))
    assert task.about["data"] == "three_or_four"


def test_the_abstention_of_repeated_questions_counts_each_once():
    (found,) = audit_logs(LOGS / "inspect" / "letters.eval", calibrate=None, resamples=100).tasks.values()
    assert (found.rows, found.abstention.rows) == (24, 12)
    assert any("12 clusters" in note for note in found.notes)


def test_a_baseline_of_other_tasks_or_questions_is_refused(tmp_path):
    first, other = written(tmp_path / "a", "x", 1.0, 60), written(tmp_path / "b", "y", 1.0, 60)
    with pytest.raises(ValueError, match="baseline must have the tasks x, got y"):
        audit_logs(first, baseline=other, calibrate=None)
    with pytest.raises(ValueError, match="the same questions of 'x', got 20 in the first alone"):
        audit_logs(first, baseline=written(tmp_path / "c", "x", 1.0, 40), calibrate=None)


def run(*words):
    return CliRunner().invoke(app, ["audit", *map(str, words)])


def test_the_command(tmp_path):
    written(tmp_path, "one", 3.0), written(tmp_path, "two", 1.0, seed=1)
    files = sorted(tmp_path.glob("samples_*.jsonl"))
    one = audit_logs(files[:1], calibrate=None)
    both = type(one)({"a b": one.tasks["one"], "a:b": one.tasks["one"]})
    assert len(set(both.html(tmp_path))) == 2, "each task has a page of its own"
    result = run(*files, "--calibrate", "none", "--fail-if", "ece > 0.05", "--out", tmp_path / "out")
    assert result.exit_code == 1, result.output
    assert "FAILED: fail if one: ece > 0.05" in result.output
    assert "two: ece" not in result.output
    assert sorted(path.name for path in (tmp_path / "out").iterdir()) == ["metrics.json", "one.html", "two.html"]
    assert set(json.loads((tmp_path / "out" / "metrics.json").read_text())["tasks"]) == {"one", "two"}
    assert run(LOGS / "helm" / "simple_mcqa", "--calibrate", "none").exit_code == 0
    assert run(LOGS / "lm_eval" / "model_b", "--calibrate", "none").exit_code == 0


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ([FOUR, "--groups", "doc.none"], "a question must have 'doc.none'"),
        ([LOGS / "inspect" / "stated.json", "--metric", "exact"], "a sample must have the score 'exact', got includes"),
        (["predictions.csv", "--question", "q"], "--question is for evaluation logs, got predictions.csv"),
        ([FOUR, "--baseline", "nothing.jsonl"], "nothing.jsonl"),
        ([FOUR, "--weights", "w"], "--weights is for tables, got the evaluation log"),
        ([FOUR, "--junit", "gates.xml"], "--junit is for tables, got the evaluation log"),
    ],
)
def test_what_cannot_be_used_is_one_line(words, said):
    result = run(*words)
    assert result.exit_code == 2
    assert said in result.output
    assert result.output.count("\n") == 1
