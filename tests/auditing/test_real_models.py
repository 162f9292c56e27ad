"""Audits of models that people have: every number is the library function's, however the rows are spread."""

import numpy as np
import pandas
import pytest
import torch
import transformers
from sklearn.datasets import load_digits, make_classification
from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestClassifier
from sklearn.model_selection import train_test_split

from focalcal.auditing import audit
from focalcal.auditing.files import audit_files
from focalcal.metrics import METRICS, reliability

QUICK = {"calibrate": None, "resamples": 100}
EXACT = ("error", "nll", "brier", "ece", "classwise_ece", "confidence_gap")


def agrees(found, *inputs, names=tuple(METRICS), **more):
    """Whether every metric of an audit, and its bins, are those of the library functions."""
    for name in found.metrics.keys() & set(names):
        assert found.metrics[name].estimate == pytest.approx(METRICS[name](*inputs, **more), abs=1e-12), name
    np.testing.assert_allclose(found.reliability.confidence, reliability(*inputs, **more).confidence, atol=1e-12)


def digits():
    return train_test_split(*load_digits(return_X_y=True), test_size=0.5, random_state=0)


def many_rows():
    rows = make_classification(50_000, 10, n_informative=6, n_classes=4, flip_y=0.1, random_state=0)
    return train_test_split(*rows, test_size=48_000, random_state=0)


@pytest.mark.parametrize("data", [digits, many_rows])
@pytest.mark.parametrize(
    "model",
    [
        RandomForestClassifier(20, min_samples_leaf=2, random_state=0),
        HistGradientBoostingClassifier(max_iter=10, random_state=0),
    ],
    ids=["forest", "boosting"],
)
def test_trees(model, data, tmp_path, monkeypatch):
    """Their tables of probabilities, as pandas writes them; of the larger ones most rows are outside the sample."""
    seen, held_out, targets, truth = data()
    probs = model.fit(seen, targets).predict_proba(held_out)
    table = pandas.DataFrame(probs, columns=[f"prob_{k}" for k in model.classes_]).assign(target=truth)
    table.to_parquet(tmp_path / "rows.parquet", row_group_size=5000)
    monkeypatch.setattr("focalcal.auditing.partitions._ELEMENTS", 60_000)
    divided = audit_files(tmp_path / "rows.parquet", most_rows=2000, **QUICK)
    monkeypatch.undo()
    at_once = audit_files(tmp_path / "rows.parquet", most_rows=2000, **QUICK)
    for found in (divided, at_once):
        agrees(found, probs, truth, names=EXACT if len(truth) > 2000 else METRICS)
    assert divided.verdict.finding is at_once.verdict.finding
    assert divided.groups == at_once.groups
    assert divided.mistakes == at_once.mistakes


def test_tokens_of_a_transformer():
    """Fine-tuned to tag noisy tokens; padding is left out, as `ignore_index` does for the functions."""
    torch.manual_seed(0)
    size = {"hidden_size": 16, "intermediate_size": 16, "num_hidden_layers": 1, "num_attention_heads": 2}
    config = transformers.BertConfig(vocab_size=24, num_labels=3, max_position_embeddings=16, **size)
    tagger = transformers.BertForTokenClassification(config)
    optimiser = torch.optim.AdamW(tagger.parameters(), lr=1e-2)
    words = torch.randint(24, (120, 12))
    tags = torch.where(torch.rand(120, 12) < 0.3, torch.randint(3, (120, 12)), words % 3)
    tags[:, 9:] = torch.where(torch.rand(120, 3) < 0.5, -100, tags[:, 9:])
    for _ in range(15):
        optimiser.zero_grad()
        tagger(words[:40], labels=tags[:40]).loss.backward()
        optimiser.step()
    tagger.eval()
    with torch.no_grad():
        logits = tagger(words[40:]).logits
    kept = tags[40:] != -100
    found = audit(logits=logits[kept], labels=tags[40:][kept], **QUICK)
    assert found.rows == int(kept.sum()) < kept.numel()
    agrees(found, logits=logits.movedim(2, 1), labels=tags[40:], ignore_index=-100)


@pytest.mark.parametrize("network", ["resnet20", "resnet56"])
def test_published_networks(network, data_folder):
    """Logits on the 10,000 test images of CIFAR-10: over-confident, and one temperature is the fix."""
    arrays = np.load(data_folder / "logits" / "cifar10_test_logits_akamaster_resnets.npz")
    found = audit(logits=arrays[network], labels=arrays["labels"], calibrate="temperature", resamples=100)
    agrees(found, logits=arrays[network], labels=arrays["labels"])
    assert found.verdict.finding == "over-confident"
    assert found.fixes.recommended == "temperature"
    assert found.fixes.calibrator.temperature_ > 1.2
