"""What language models give: log-probabilities of options and of top tokens, stated confidences, samples."""

import numpy as np
import pytest

from focalcal import Predictions, metrics
from focalcal.predictions import option_probs, sampled_answers, top_k, verbalised
from focalcal.predictions.verbalised import WORDS

DRAWS = np.random.default_rng(0)
WORD_PROBS = DRAWS.dirichlet(np.full(500, 0.02), 400)
LABELS = np.array([DRAWS.choice(500, p=row) for row in WORD_PROBS])


def listed(k):
    """The k most probable words of each row, as an interface would list them."""
    tokens = np.argsort(-WORD_PROBS, 1)[:, :k]
    return tokens, np.log(np.take_along_axis(WORD_PROBS, tokens, 1).clip(1e-300))


@pytest.mark.parametrize("vocabulary", [500, None])
@pytest.mark.parametrize("k", [1, 3, 20])
def test_top_k_rows_have_the_top_1_metrics_of_all_words_and_bounds_that_hold(k, vocabulary):
    found = top_k(*listed(k), LABELS, vocabulary=vocabulary)
    held = found.predictions()
    right = WORD_PROBS.argmax(1) == LABELS
    for name in ("ece", "error", "confidence_gap", "aurc", "confidence_auroc"):
        assert metrics.METRICS[name](held) == pytest.approx(metrics.METRICS[name](WORD_PROBS, LABELS), abs=1e-12)
    np.testing.assert_array_equal(found.correct, right)
    own = WORD_PROBS[np.arange(400), LABELS]
    nll, brier = -np.log(own), ((WORD_PROBS - np.eye(500)[LABELS]) ** 2).sum(1)
    for low, high, exact in ((found.nll_low, found.nll_high, nll), (found.brier_low, found.brier_high, brier)):
        assert (low <= exact + 1e-9).all()
        assert (exact <= high + 1e-9).all()
    np.testing.assert_allclose(found.nll_low[found.listed], nll[found.listed])
    np.testing.assert_allclose(found.nll_high[found.listed], nll[found.listed])
    if k < 20:
        dropped = found.listed  # what people do: without the rows whose label is not listed a model looks better
        assert right[dropped].mean() > right.mean() + 0.02


def test_bounds_are_reached():
    """One row, two words listed and two others: the rest heaped on one or spread evenly, the label in or out."""
    for label, spreads in (("a", ([0.2, 0.0], [0.1, 0.1])), ("c", ([0.2, 0.0], [0.0, 0.2]))):
        found = top_k([["a", "b"]], [np.log([0.5, 0.3])], [label], vocabulary=4)
        values = []
        for rest in spreads:
            probs = np.array([[0.5, 0.3, *rest]])
            values.append((metrics.brier(probs, ["abcd".index(label)]), metrics.nll(probs, ["abcd".index(label)])))
        briers, nlls = zip(*values, strict=True)
        assert (found.brier_low[0], found.brier_high[0]) == pytest.approx((min(briers), max(briers)))
        assert (found.nll_low[0], found.nll_high[0]) == pytest.approx((min(nlls), max(nlls)))


@pytest.mark.parametrize(
    ("tokens", "logprobs", "labels", "said"),
    [
        ([["a"]], [[0.5]], ["a"], "logprobs must be at most 0, got 0.5 in row 0"),
        ([["a", "a"]], [[-1.0, -2.0]], ["a"], "tokens must be different"),
        ([["a", "b"]], [[-0.1, -0.2]], ["a"], "got a sum of 1.724 in row 0"),
        ([["a", "b"]], [[-5.0, -6.0]], ["a"], "got a rest of 0.9908 in row 0, more than the 3 other tokens can have"),
        ([], [], [], "one entry per row"),
    ],
)
def test_wrong_rows_of_tokens_are_refused(tokens, logprobs, labels, said):
    with pytest.raises(ValueError, match=said):
        top_k(tokens, logprobs, labels, vocabulary=5)


def test_options_are_divided_by_their_sum_or_leave_the_rest_to_a_class_of_its_own():
    logs = np.array([[-0.5, -1.5, np.nan], [-900.0, -901.0, -902.0]])
    shares = option_probs(logs, normalize="options", missing=0.0)
    np.testing.assert_allclose(shares[0], [0.731059, 0.268941, 0], atol=1e-6)
    np.testing.assert_allclose(shares[1], np.exp([0, -1, -2]) / np.exp([0, -1, -2]).sum())  # no float64 holds e^-900
    kept = option_probs(logs[:1], normalize="none", missing=0.01)
    np.testing.assert_allclose(kept, [[np.exp(-0.5), np.exp(-1.5), 0.01, 1 - np.exp(-0.5) - np.exp(-1.5) - 0.01]])
    held = Predictions(
        logprobs=logs[:1], labels=["no"], classes=["yes", "no", "?"], normalize="none", missing=0, split="t"
    )
    assert held.classes == ("yes", "no", "?", "other")
    assert held.labels.tolist() == [1]
    assert Predictions(logprobs=logs, labels=[0, 2], normalize="options", missing=0, split="t").n_classes == 3


@pytest.mark.parametrize(
    ("logprobs", "options", "said"),
    [
        ([[-1.0, 0.2]], {"normalize": "options"}, "at most 0, got 0.2 in row 0"),
        ([[-1.0, None]], {"normalize": "options"}, "got none of option 1 in row 0; pass missing=0"),
        ([[-1.0, -1.0]], {}, "normalize must be 'options' .* or 'none'"),
        ([[-1.0, -1.0]], {"normalize": True}, "normalize must be 'options' .* or 'none'"),
        ([[-1.0, -1.0], [-1.0]], {"normalize": "options"}, "as many options in every row"),
        ([[-0.1, -0.1]], {"normalize": "none"}, "options that exclude each other .* got a sum of 1.81 in row 0"),
        ([["a", "b"]], {"normalize": "options"}, "logprobs must be rows of numbers"),
        ([[None, None]], {"normalize": "options", "missing": 0.0}, "give some option of every row a probability"),
    ],
)
def test_wrong_options_are_refused(logprobs, options, said):
    with pytest.raises((TypeError, ValueError), match=said):
        Predictions(logprobs=logprobs, labels=[0] * len(logprobs), split="t", **options)


def test_a_right_answer_that_is_no_option_is_refused():
    with pytest.raises(ValueError, match="labels must be"):
        Predictions(logprobs=[[-1.0, -1.0]], labels=[2], normalize="options", split="t")


def test_stated_confidences_in_every_form():
    said = [
        85,
        "85 %",
        "85/100",
        "8.5/10",
        "Answer: Rome\nConfidence: 85%",
        "**Confidence:** 85 percent",
        "Likely.",
        "nearly-certain",
    ]
    found = verbalised(said, ["yes", True, 1, "C", "correct", 0, "no", "I"], scale=100)
    np.testing.assert_allclose(found.confidence, [0.85] * 6 + [WORDS["icd203"]["likely"], 0.97])
    assert found.grade.tolist() == [1, 1, 1, 1, 1, 0, 0, 0]
    assert found.share == 0.75
    assert "One confidence, 0.85, is that of 75 % of the rows" in found.notes[0]
    small = verbalised([".1", "Confidence: .25", "confidence - 0.5", 1e-5, "1e-3"], ["P", "N", 1, 0, 0], scale=1)
    assert small.confidence.tolist() == [0.1, 0.25, 0.5, 1e-5, 1e-3]
    assert small.grade.tolist() == [0.5, 0, 1, 0, 0], "Inspect's P and N are partial and no answer"
    assert verbalised(["probably not", "maybe"], [0, 1], words={"maybe": 0.4, "probably not": 0.2}).confidence[1] == 0.4
    assert verbalised(["certain"], [1], words="kent").confidence[0] == 1.0


def test_a_fallback_is_counted_and_a_certain_mistake_can_be_clipped():
    found = verbalised(["I cannot say"] * 6 + ["90%"] * 4, [1, 0] * 5, fallback=0.5)
    assert (found.filled, found.most_frequent, found.share) == (6, 0.5, 0.6)
    assert "6 of 10 rows state no confidence and were given 0.5." in found.notes
    certain = verbalised(["100%", "50%"], [0, 1])
    assert metrics.nll(certain.predictions()) == np.inf
    held = certain.predictions(clip=0.01)
    assert metrics.nll(held) == pytest.approx(-(np.log(0.01) + np.log(0.5)) / 2)
    assert "at most 0.99" in held.provenance["notes"][-1]


@pytest.mark.parametrize(
    ("said", "right", "options", "message"),
    [
        ("maybe", 1, {}, r"one of the words almost no chance, .* got 'maybe' in row 0; or pass fallback="),
        (90, 1, {}, r"of a known scale, got '90' \(pass scale=100 or scale=1\) in row 0"),
        ("120 %", 1, {}, "at most 100 %, got '120 %' in row 0"),
        (90, 1, {"scale": 1}, "at most 100 %, got '90'"),
        (90, 1, {"scale": 50}, "scale must be one of 1, 100, got 50"),
        (
            "90%",
            "perhaps",
            {},
            "correct must be True or False, yes or no, or a grade from 0 to 1, got 'perhaps' in row 0",
        ),
        ("90%", 1, {"words": "latin"}, "words must be one of icd203, kent"),
        (-0.3, 1, {"scale": 1}, "one of the words .* got '-0.3'"),
        ("Confidence: -5%", 1, {}, "got 'Confidence: -5%'"),
        ("Confidence: <1%", 1, {}, "got 'Confidence: <1%'"),
        ("1/0", 1, {}, "got '1/0'"),
        ("maybe", 1, {"fallback": 50}, "fallback must be a probability from 0 to 1, got 50"),
        ("maybe", 1, {"words": {"maybe": 40}}, r"words\['maybe'\] must be a probability from 0 to 1, got 40"),
    ],
)
def test_what_no_model_can_have_meant_is_refused(said, right, options, message):
    with pytest.raises(ValueError, match=message):
        verbalised([said], [right], **options)


def test_grades_are_expectations_over_right_and_wrong():
    """A grade of 0.3 is three right answers and seven wrong ones of the same confidence."""
    c, tenths = DRAWS.random(300), DRAWS.integers(0, 11, 300)
    found = metrics.graded_scores(c, tenths / 10, clip=None)
    many, right = np.repeat(c, 10), (np.arange(10) < tenths[:, None]).ravel()
    whole = metrics.summary(confidence=many, correct=right)
    expected = {name: whole[name] for name in ("brier", "nll", "ece", "confidence_gap")}
    expected |= {"auroc": metrics.auroc(many, right), "augrc": metrics.augrc(confidence=many, correct=right)}
    assert found == pytest.approx(expected, abs=1e-9)
    with pytest.raises(ValueError, match="pass right_from"):
        verbalised([0.4, 0.9], [0.5, 1], scale=1).predictions()
    assert verbalised([0.4, 0.9], [0.5, 1], scale=1).predictions(right_from=0.5).labels.tolist() == [1, 1]


def test_agreement_of_samples_is_the_confidence_of_the_most_frequent_answer():
    held = sampled_answers(["b", "a", "b", "b", "a"], [1, 7, 2, 2, 8], [0, True, "yes", "yes", 0], groups=["x", "y"])
    assert held.ids.tolist() == ["b", "a"]
    np.testing.assert_allclose(held.probs[:, 1], [2 / 3, 1 / 2])
    assert held.labels.tolist() == [1, 1]
    assert held.groups.tolist() == ["x", "y"]
    with pytest.raises(ValueError, match="one value per sample"):
        sampled_answers(["a"], [1, 2], [True])
