"""The torchmetrics adapters give what the functions give on all rows, however the rows come in."""

import builtins
import copy
import importlib
import inspect
import pickle
import sys
from functools import partial
from itertools import pairwise

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from support import forked
from support.metric_ranks import MULTI, SINGLE, K, L, every_adapter, multi_label, run_rank, single_label
from torchmetrics import MetricCollection

from focalcal import metrics as functions
from focalcal.integrations import torchmetrics as adapters

EVERY = sorted(every_adapter())


def same(value, other, tolerance=1e-12):
    if isinstance(value, dict):
        assert value.keys() == other.keys()
        for name in value:
            same(value[name], other[name], tolerance)
        return
    torch.testing.assert_close(value, other, rtol=0, atol=tolerance)


def filled(name, parts=4):
    make, probs, labels = every_adapter()[name]
    metric = make()
    for p, y in zip(probs.chunk(parts), labels.chunk(parts), strict=True):
        metric.update(p, y)
    return metric


def test_every_class_is_tested():
    assert {type(make()).__name__ for make, _, _ in every_adapter().values()} == set(adapters.__all__)


@settings(max_examples=12)
@given(cuts=st.lists(st.integers(0, 203), max_size=6), kind=st.sampled_from(["probs", "logits"]))
def test_any_partition_gives_the_value_on_the_whole(cuts, kind):
    edges = [0, *sorted(cuts), 203]
    for table, (logits, labels), link in (
        (SINGLE, single_label(), lambda z: z.softmax(1)),
        (MULTI, multi_label(), torch.sigmoid),
    ):
        probs = link(logits)
        scores = probs if kind == "probs" else logits
        for name, (make, function) in table.items():
            metric = make(scores=kind)
            for start, stop in pairwise(edges):
                metric.update(scores[start:stop], labels[start:stop])  # some of them empty
            expected = function(probs, labels)
            if name == "AdaptiveECE":
                sketch = functions.CalibrationSketch.of(probs, labels)
                assert abs(float(metric.compute()) - expected) <= sketch.adaptive_ece_bound() + 1e-12
                expected = sketch.adaptive_ece()
            assert float(metric.compute()) == pytest.approx(expected, abs=1e-12, rel=1e-12), name


def test_the_summary_is_that_of_the_sketch_and_shows_the_bins():
    logits, labels = single_label()
    metric = filled("CalibrationSummary")
    expected = functions.summary(logits.softmax(1), labels).as_dict()
    value = metric.compute()
    assert set(value) == set(expected) - {"n_classes"}
    for name in set(value) - {"adaptive_ece"}:
        assert float(value[name]) == pytest.approx(expected[name], abs=1e-12), name
    bins = functions.reliability(logits.softmax(1), labels)
    np.testing.assert_array_equal(metric.sketch().reliability().count, bins.count)


@pytest.mark.once
def test_every_process_reports_the_value_on_all_rows(tmp_path):
    """Two processes with half of the rows each, and a third without any."""
    world = 3
    processes = [forked.started(partial(run_rank, rank, world, str(tmp_path))) for rank in range(world)]
    assert [forked.ended(process) for process in processes] == [0, 0, 0]  # they wait for one another 60 s at most
    whole = {name: filled(name, parts=1).compute() for name in EVERY}
    for rank in range(world):
        found = pickle.loads((tmp_path / f"{rank}.pickle").read_bytes())
        for name in EVERY:
            same(found[name], whole[name])


OF_ALL_CONFIDENCES = frozenset({"AURC", "ExcessAURC", "AUGRC", "ConfidenceAUROC", "Coverage"})


def test_a_collection_shares_passes_and_not_settings():
    logits, labels = single_label()
    probs = logits.softmax(1)
    metrics = {name.replace(" ", "_"): make() for name, (make, _) in SINGLE.items()}
    collection = MetricCollection(metrics)
    for p, y in zip(probs.split(50), labels.split(50), strict=True):
        collection.update(p, y)
    groups = {frozenset(names) for names in collection.compute_groups.values()}
    together = {
        part: frozenset(m.adapter for m in functions.METRICS.values() if m.source.holds == part)
        for part in ("bins", "moments")
    }
    assert {"ECE", "NLL", "ConfidenceGap"} < together["bins"]
    assert together["moments"] == {"AdaptiveECE", "SmoothECE"}
    alone = set(metrics) - together["bins"] - together["moments"] - {"DebiasedECE_l2"} - OF_ALL_CONFIDENCES
    assert {"ECE_in_7_bins", "ClasswiseECE", "TopKAccuracy"} <= alone
    assert groups == {
        together["bins"] | {"DebiasedECE_l2"},
        together["moments"],
        OF_ALL_CONFIDENCES,
        *(frozenset({name}) for name in alone),
    }
    for name, value in collection.compute().items():
        same(value, filled(name.replace("_", " ") if "_" in name else name).compute())

    # Metrics that agree on the first batch but differ in what they leave out must not be taken for one.
    pair = MetricCollection({"all": adapters.ECE(K), "known": adapters.ECE(K, ignore_index=0)})
    rest = labels != 0
    pair.update(probs[rest], labels[rest])
    pair.update(probs, labels)
    assert len(pair.compute_groups) == 2
    value = pair.compute()
    everything = functions.ece(torch.cat([probs[rest], probs]), torch.cat([labels[rest], labels]))
    assert float(value["all"]) == pytest.approx(everything, abs=1e-12)
    assert float(value["known"]) == pytest.approx(functions.ece(probs[rest], labels[rest]), abs=1e-12)
    deep = MetricCollection({"one": adapters.TopKAccuracy(K, k=1), "two": adapters.TopKAccuracy(K, k=2)})
    deep.update(torch.eye(K), torch.arange(K))
    assert len(deep.compute_groups) == 2


@pytest.mark.parametrize("name", EVERY)
def test_forward_reset_clone_pickle_and_merge(name):
    make, probs, labels = every_adapter()[name]
    metric, first, second = make(), make(), make()
    first.update(probs[:120], labels[:120])
    second.update(probs[120:], labels[120:])
    same(metric(probs[:120], labels[:120]), first.compute())  # forward gives the batch's value
    same(metric(probs[120:], labels[120:]), second.compute())
    whole = filled(name).compute()
    same(metric.compute(), whole)
    for other in (metric.clone(), copy.deepcopy(metric), pickle.loads(pickle.dumps(metric))):
        same(other.compute(), whole)
    first.merge_state(second)
    first._computed = None
    same(first.compute(), whole)
    metric.reset()
    with pytest.warns(UserWarning, match="before the ``update``"), pytest.raises(ValueError, match="has seen no row"):
        metric.compute()
    metric.update(probs, labels)
    same(metric.compute(), whole)


@pytest.mark.parametrize("name", EVERY)
def test_sums_stay_float64_whatever_the_module_is_moved_to(name):
    make, probs, labels = every_adapter()[name]
    holder = torch.nn.ModuleDict({"metric": make()})
    for change in (
        lambda m: m.half(),
        lambda m: m.to(torch.float16),
        lambda m: m.bfloat16(),
        lambda m: m.float(),
        lambda m: m.to("cpu"),
    ):
        metric = holder["metric"]
        metric.reset()
        metric.update(probs[:100], labels[:100])
        change(holder)
        metric.set_dtype(torch.float16)
        metric.update(probs[100:], labels[100:])
        states = [t for s in metric.metric_state.values() for t in (s if isinstance(s, list) else [s])]
        assert {t.dtype for t in states} <= {torch.float64, torch.int64}
        same(metric.compute(), filled(name, parts=1).compute())
    moved = make().to("meta")
    assert {t.device.type for s in moved.metric_state.values() for t in (s if isinstance(s, list) else [s])} <= {"meta"}


def test_batches_may_be_wholly_ignored_and_dense():
    logits = torch.randn(6, K, 5, 4, dtype=torch.float64)
    labels = torch.randint(0, K, (6, 5, 4))
    labels[0], labels[3, :2] = -1, -1
    probs = logits.softmax(1)
    for make, function in SINGLE.values():
        if function is functions.adaptive_ece:
            continue
        metric = make(ignore_index=-1)
        for p, y in zip(probs, labels, strict=True):
            metric.update(p[None], y[None])
        assert float(metric.compute()) == pytest.approx(function(probs, labels, ignore_index=-1), abs=1e-12)
    probs, labels = multi_label()[0].sigmoid(), multi_label()[1]
    labels[::3, 1], labels[:50] = -1, -1
    for make, function in MULTI.values():
        metric = make(ignore_index=-1, average=None)
        for p, y in zip(probs.split(25), labels.split(25), strict=True):
            metric.update(p, y)
        expected = function(probs, labels, ignore_index=-1, average=None)
        np.testing.assert_allclose(metric.compute().numpy(), expected, atol=1e-12)


def test_logits_give_a_finite_nll_where_probabilities_do_not():
    logits, labels = torch.tensor([[0.0, 2000.0]]), torch.tensor([0])
    metric = adapters.NLL(2, scores="logits")
    metric.update(logits, labels)
    assert float(metric.compute()) == 2000
    metric = adapters.NLL(2)
    metric.update(logits.softmax(1), labels)
    assert float(metric.compute()) == float("inf")
    metric = adapters.MultilabelNLL(2, scores="logits", ignore_index=-1)
    metric.update(torch.tensor([[2000.0, 0.0], [float("nan"), 0.0]]), torch.tensor([[0, 1], [-1, 0]]))
    assert float(metric.compute()) == pytest.approx((2000 + np.log(2)) / 2)
    ranks = adapters.TopKAccuracy(3, k=2, scores="logits")
    ranks.update(torch.tensor([[0.0, -2000.0, -1000.0]]), torch.tensor([1]))  # two probabilities underflow, two ranks
    assert float(ranks.compute()) == 0


def test_the_state_does_not_grow_but_where_all_confidences_are_kept():
    for name in EVERY:
        metric = filled(name)
        before = pickle.dumps(metric.metric_state)
        metric.update(*every_adapter()[name][1:])
        grew = len(pickle.dumps(metric.metric_state)) - len(before)
        assert (grew > 100) == (name in OF_ALL_CONFIDENCES), name


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: adapters.ECE(0), "num_classes must be a whole number >= 1, got 0"),
        (lambda: adapters.ECE(K, scores="guess"), "scores must be one of 'probs', 'logits', got 'guess'"),
        (lambda: adapters.ECE(K, n_bins=0), "n_bins must be a whole number >= 1"),
        (lambda: adapters.DebiasedECE(K, norm="l3"), "norm must be one of"),
        (lambda: adapters.TopKAccuracy(K, k=5), "k must be a whole number >= 1 and <= 4, got 5; there are 4 classes"),
        (lambda: adapters.MultilabelECE(L, average="macro"), "average must be one of"),
        (lambda: adapters.ECE(K + 1).update(*_batch()), r"num_classes = 5 in dimension 1, got shape \(203, 4\)"),
        (lambda: adapters.MultilabelECE(2).update(*_batch()), r"num_labels = 2 in dimension 1, got shape \(203, 4\)"),
        (lambda: adapters.ECE(K).update(single_label()[0], _batch()[1]), "probs must be probabilities"),
        (lambda: adapters.ECE(K).update(_batch()[0], _batch()[1] + 1), "labels must be from 0 to 3"),
        (lambda: adapters.ECE(K, scores="logits").update(_batch()[0] * float("nan"), _batch()[1]), "must be finite"),
        (lambda: adapters.ECE(K).merge_state(adapters.ECE(K, n_bins=1)), "got another bins"),
        (lambda: adapters.ECE(K).merge_state(adapters.ECE(K, ignore_index=0)), "got another rules"),
        (lambda: adapters.TopKAccuracy(K, k=1).merge_state(adapters.TopKAccuracy(K, k=2)), "got another settings"),
    ],
)
def test_bad_input_is_refused(make, message):
    with pytest.raises(ValueError, match=message):
        make()


def _batch():
    logits, labels = single_label()
    return logits.softmax(1), labels


def test_a_label_without_a_row_is_named():
    metric = adapters.MultilabelECE(2, ignore_index=-1)
    metric.update(torch.tensor([[0.5, 0.5]]), torch.tensor([[1, -1]]))
    with pytest.raises(ValueError, match="no row of label 1"):
        metric.compute()


def test_constructors_show_their_options():
    for name in adapters.__all__:
        names = set(inspect.signature(getattr(adapters, name)).parameters)
        assert {"scores", "ignore_index"} <= names, name
    for name, option in {"DebiasedECE": "norm", "TopKAccuracy": "k", "MultilabelDebiasedECE": "norm"}.items():
        assert option in inspect.signature(getattr(adapters, name)).parameters
    with pytest.raises(ValueError, match="Unexpected keyword arguments: `convention`"):
        adapters.AdaptiveECE(K, convention="fc")  # which needs the rows


def test_a_missing_package_names_the_extra(monkeypatch):
    def without(name, *args, real=builtins.__import__, **kwargs):
        if name == "torchmetrics":
            raise ImportError("No module named 'torchmetrics'")
        return real(name, *args, **kwargs)

    for name in [name for name in sys.modules if name.startswith("focalcal.integrations.torchmetrics")]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setattr(builtins, "__import__", without)
    with pytest.raises(ImportError, match=r"pip install .*torchmetrics"):
        importlib.import_module("focalcal.integrations.torchmetrics")


@pytest.mark.parametrize("scores", ["probs", "logits"])
def test_real_network_in_batches(scores, data_folder):
    with np.load(data_folder / "logits" / "cifar10_test_logits_akamaster_resnets.npz") as file:
        logits, labels = torch.from_numpy(file["resnet20"]), torch.from_numpy(file["labels"]).long()
    given_scores = logits if scores == "logits" else logits.double().softmax(1)
    metric = adapters.CalibrationSummary(10, scores=scores)
    for z, y in zip(given_scores.split(128), labels.split(128), strict=True):
        metric.update(z, y)
    whole = functions.summary(logits=logits, labels=labels).as_dict()
    for name, value in metric.compute().items():
        assert float(value) == pytest.approx(whole[name], abs=1e-12 if name != "adaptive_ece" else 2e-4), name
