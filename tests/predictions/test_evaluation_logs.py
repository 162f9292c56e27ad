"""Logs that lm-evaluation-harness, Inspect and HELM wrote (`evaluation_logs/make_*.py`): their numbers, refusals."""

import json
from pathlib import Path

import numpy as np
import pytest

from focalcal import InputWarning, PredictionsFileError, metrics
from focalcal.predictions import read_logs
from focalcal.predictions.evaluation_logs import same_questions

HERE = Path(__file__).parent / "evaluation_logs"
OF_MODEL_A = HERE / "lm_eval" / "model_a"
FOUR = next(OF_MODEL_A.glob("*four_options*"))
MIXED = next(OF_MODEL_A.glob("*three_or_four*"))


def test_lm_evaluation_harness():
    """Accuracy and Brier score are those that the harness computed from the same rows."""
    own = json.loads((OF_MODEL_A / "results.json").read_text())
    four, mixed = read_logs([FOUR, MIXED])
    assert (four.task, mixed.task) == ("four_options", "three_or_four")
    assert metrics.accuracy(four.predictions) == pytest.approx(own["four_options"]["acc,none"])
    assert metrics.brier(four.predictions) == pytest.approx(own["four_options"]["brier_score,none"], rel=1e-6)
    assert metrics.accuracy(mixed.predictions) == pytest.approx(own["three_or_four"]["acc,none"])
    assert mixed.predictions.top1
    assert "numbers of options differ" in mixed.notes[0]
    assert set(four.predictions.groups) == {"law", "botany"}
    with pytest.warns(InputWarning, match=r"task 'free_answers' must have the log-likelihoods .* the file is left out"):
        assert [log.task for log in read_logs(OF_MODEL_A)] == ["four_options", "three_or_four"]
    with pytest.raises(PredictionsFileError, match="generated answers have no confidence"), pytest.warns(InputWarning):
        read_logs(next(OF_MODEL_A.glob("*free*")))


def test_inspect():
    letters, stated = read_logs(HERE / "inspect" / "letters.eval") + read_logs(HERE / "inspect" / "stated.json")
    assert letters.predictions.n == 24
    assert len(np.unique(letters.predictions.clusters)) == 12  # two epochs
    assert stated.predictions.clusters is None
    document = json.loads((HERE / "inspect" / "stated.json").read_text())
    assert metrics.accuracy(stated.predictions) == document["results"]["scores"][0]["metrics"]["accuracy"]["value"]
    assert set(stated.predictions.probs[:, 1]) <= {0.7, 0.8, 0.9, 0.95}
    assert set(stated.predictions.groups) == {"sums"}


def test_helm():
    """HELM's expected calibration error with one bin is the distance of confidence and accuracy."""
    stats = json.loads((HERE / "helm" / "simple_mcqa" / "stats.json").read_text())
    own = {each["name"]["name"]: each["mean"] for each in stats if not each["name"].get("perturbation")}
    (log,) = read_logs(HERE / "helm")
    assert log.task.startswith("simple_mcqa")
    assert metrics.accuracy(log.predictions) == pytest.approx(own["exact_match"])
    assert metrics.ece(log.predictions, n_bins=1) == pytest.approx(own["ece_1_bin"], abs=1e-12)


def request(name, text, tokens=None):
    content = None if tokens is None else [{"token": token, "logprob": p} for token, p in tokens]
    choice = {"message": {"content": text}, "logprobs": content and {"content": content}}
    return {"custom_id": name, "response": {"status_code": 200, "body": {"choices": [choice]}}, "error": None}


def lines(path, values):
    path.write_text("".join(value if isinstance(value, str) else json.dumps(value) + "\n" for value in values))
    return path


def test_batches_of_openai(tmp_path):
    tokens = [("Answer", -0.1), (": ", 0.0), ("B", -0.5)]
    rows = [request("q1", "Answer: B", tokens), request("q2", "Rome is", [("Rome", -0.2), (" is", -0.3)])]
    (log,) = read_logs(lines(tmp_path / "batch.jsonl", rows), answers={"q1": "B", "q2": "Paris"})
    np.testing.assert_allclose(log.predictions.probs[:, 1], np.exp([-0.5, -0.5]))
    assert log.predictions.labels.tolist() == [1, 0]
    (log,) = read_logs(lines(tmp_path / "said.jsonl", [request("q1", "B\nConfidence: 90%")]), answers={"q1": "B"})
    assert (log.predictions.probs[0, 1], log.predictions.labels[0]) == (0.9, 1)
    rows = [request("q1", "**Answer: (B).**\nConfidence: 90%"), request("q2", "B.\nConfidence: 90%")]
    (log,) = read_logs(lines(tmp_path / "marks.jsonl", rows), answers={"q1": "B", "q2": "(B)"})
    assert log.predictions.labels.tolist() == [1, 1], "what stands around an answer is no part of it"
    said = {"The answer is b": 1, "the answer is **C**.": 0, "I think C": 0, "Because 2 < 3.\nFinal answer: B": 1}
    rows = [request(f"q{k}", f"{text}\nConfidence: 90%") for k, text in enumerate(said)]
    (log,) = read_logs(lines(tmp_path / "free.jsonl", rows), answers=dict.fromkeys(["q0", "q1", "q2", "q3"], "B"))
    assert log.predictions.labels.tolist() == list(said.values())
    said = {
        "Confidence: 90%\nAnswer: B": 1,
        "Confidence: 90%\n**Final answer:** C": 0,
        "B\nConfidence in my answer: 90%": 1,
    }
    rows = [request(f"q{k}", text, tokens) for k, text in enumerate(said)]
    (log,) = read_logs(lines(tmp_path / "before.jsonl", rows), answers=dict.fromkeys(["q0", "q1", "q2"], "B"))
    assert log.predictions.labels.tolist() == list(said.values()), "the confidence may come first"
    lines(tmp_path / "behind.jsonl", [request("q1", "My confidence is 90%. The answer is B")])
    with pytest.raises(PredictionsFileError, match=r"line 1: .*as short as the right one"):
        read_logs(tmp_path / "behind.jsonl", answers={"q1": "B"})
    lines(tmp_path / "unclear.jsonl", [request("q1", "I think it is B, not A", tokens)])
    with pytest.raises(PredictionsFileError, match=r"line 1: .*as short as the right one, 'B', .* got I think it is B"):
        read_logs(tmp_path / "unclear.jsonl", answers={"q1": "B"})
    with pytest.raises(PredictionsFileError, match="line 1: answers must name the right answer to every custom_id"):
        read_logs(tmp_path / "said.jsonl")


def test_the_same_questions_in_two_files_are_two_runs(tmp_path):
    """Parts of a task are joined; a task that was run again is not."""
    first, second = tmp_path / "samples_law_2026-01-01T00.jsonl", tmp_path / "samples_law_2026-01-02T00.jsonl"
    lines(first, [RESPONSES])
    lines(second, [RESPONSES | {"doc_id": 1}])
    (log,) = read_logs([first, second])
    assert (log.task, log.predictions.n) == ("law", 2)
    for part in ("a", "b"):
        lines(tmp_path / f"{part}.jsonl", [{"confidence": 0.5, "correct": 1, "task": "sums"}] * 2)
    (log,) = read_logs([tmp_path / "a.jsonl", tmp_path / "b.jsonl"], task="task")
    assert log.predictions.n == 4
    lines(second, [RESPONSES])
    with pytest.raises(PredictionsFileError, match=f"{second}, line 1: .*question 0 of task 'law' in {first} too"):
        read_logs([first, second])


def test_json_lines_with_named_paths(tmp_path):
    rows = [{"said": {"p": 0.1 * k}, "scores": [k % 2], "name": "ab"[k % 2], "q": k // 2} for k in range(8)]
    path = lines(tmp_path / "mine.jsonl", rows)
    a, b = read_logs(path, confidence="said.p", correct="scores.0", task="name", question="q")
    assert (a.task, b.task, a.predictions.n) == ("a", "b", 4)
    np.testing.assert_allclose(b.predictions.probs[:, 1], [0.1, 0.3, 0.5, 0.7])
    assert b.predictions.labels.tolist() == [1, 1, 1, 1]
    (whole,) = read_logs(path, confidence="said.p", correct="scores.0", question="q")
    assert len(np.unique(whole.predictions.clusters)) == 4


def test_log_probabilities_by_option_or_token(tmp_path):
    rows = [
        {"top": {"A": -0.2, "B": -2.0}, "gold": "A"},
        {"top": [{"token": "A", "logprob": -0.9}, {"token": "B", "logprob": None}], "gold": "B"},
    ]
    path = lines(tmp_path / "options.jsonl", rows)
    (log,) = read_logs(path, logprobs="top", answer="gold", normalize="options", missing=0.1)
    np.testing.assert_allclose(log.predictions.logits, [[-0.2, -2.0], [-0.9, np.log(0.1)]])
    assert log.predictions.labels.tolist() == [0, 1]
    (log,) = read_logs(path, logprobs="top", answer="gold", normalize="none")
    np.testing.assert_allclose(log.predictions.probs[:, 1], np.exp([-0.2, -0.9]))
    assert log.predictions.labels.tolist() == [1, 0]
    path = lines(tmp_path / "spaced.jsonl", [{"top": {" A": -0.2}, "gold": "A"}, {"top": {"A": None}, "gold": "A"}])
    with pytest.raises(PredictionsFileError, match="line 2: some option must have a log-probability, got none"):
        read_logs(path, logprobs="top", answer="gold", normalize="none")
    path.write_text(path.read_text().splitlines()[0] + "\n")
    (log,) = read_logs(path, logprobs="top", answer="gold", normalize="none")
    assert log.predictions.labels.tolist() == [1], "a space before a token is no other answer"
    path = lines(tmp_path / "options.jsonl", rows)
    for options, said in (
        ({"normalize": "options"}, "line 2: every option must have a log-probability .* got B; pass --missing 0"),
        ({}, "normalize='options' or 'none', got 'gold' and None"),
    ):
        with pytest.raises(ValueError, match=said):
            read_logs(path, logprobs="top", answer="gold", **options)
    with pytest.raises(PredictionsFileError, match="line 1: the answer must be one of the options A, got C"):
        read_logs(
            lines(tmp_path / "c.jsonl", [{"top": {"A": -1}, "gold": "C"}]),
            logprobs="top", answer="gold", normalize="options",
        )  # fmt: skip


RESPONSES = {"doc_id": 0, "resps": [[["-1.0", "True"]], [["-2.0", "False"]]], "target": "0", "acc": 1.0}


@pytest.mark.parametrize(
    ("rows", "said"),
    [
        ([], "at least one answer, got none"),
        (["{"], "line 1: must be JSON"),
        (["[1]\n"], "line 1: a line must be an object, got list"),
        ([RESPONSES, RESPONSES | {"target": "2"}], "line 2: target must be the number of one of 2 options, got 2"),
        (
            [RESPONSES | {"resps": [[["0.5", "True"]], [["-2.0", "False"]]]}],
            "line 1: log-likelihoods must be .* at most 0",
        ),
        ([RESPONSES, {"confidence": 0.5, "correct": 1}], "line 2: a log must hold records of one kind"),
        ([{"confidence": 0.5, "correct": 1}, {"confidence": "90%", "correct": 1}], "line 2: .* in one way, got stated"),
        ([{"confidence": "perhaps", "correct": 1}], "line 1: stated must be numbers or one of the words"),
        ([{"confidence": 70, "correct": 1}], "line 1: a confidence must be from 0 to 1, got 70; pass scale=100"),
        ([{"confidence": 0.5, "correct": 0.3}], "line 1: an answer must be right or wrong, got the grade 0.3"),
        ([{"confidence": float("nan"), "correct": 1}], "line 1: a confidence must be from 0 to 1, got nan"),
        ([RESPONSES | {"resps": 3}], "line 1: a record must have what its format says, got TypeError"),
        ([{"custom_id": "q", "response": {"body": {"choices": 5}}}], "line 1: "),
        ([{"p": 0.5}], "line 1: a line must have 'confidence', got the keys p; name the path"),
    ],
)
def test_a_wrong_log_is_refused_with_its_line(rows, said, tmp_path):
    with pytest.raises(PredictionsFileError, match=said):
        read_logs(lines(tmp_path / "log.jsonl", rows))


def test_files_that_are_no_logs(tmp_path):
    (tmp_path / "a.eval").write_bytes(b"no zip")
    (tmp_path / "b.json").write_text("{}")
    for name in ("a.eval", "b.json", "missing.jsonl"):
        with pytest.raises(PredictionsFileError, match=name):
            read_logs(tmp_path / name)


def test_the_same_questions_of_another_model_in_the_same_order():
    (new,), (old,) = (
        read_logs(next((HERE / "lm_eval" / name).glob("*four_options*"))) for name in ("model_a", "model_b")
    )
    mixed = old.predictions[np.arange(40)[::-1]]
    assert same_questions(new.predictions, mixed, "x").equals(old.predictions)
    with pytest.raises(ValueError, match="the same questions of 'x', got 1 in the first alone and 0 in the baseline"):
        same_questions(new.predictions, mixed[1:], "x")
