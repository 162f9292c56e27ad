"""Our metrics beside those of other libraries, on the outputs of real networks and at the edges.

Where a number differs the test says why, and gets the other library's number from its own rule. What is asserted here
is written down for users in docs/guide/other_libraries.md.
"""

from itertools import pairwise

import calibration as verified
import numpy as np
import pytest
import relplot
import torch
from calibration import utils as verified_utils
from netcal.metrics import ECE as NetcalECE
from netcal.metrics import MCE as NetcalMCE
from scipy.special import softmax
from sklearn.metrics import brier_score_loss, log_loss, roc_auc_score, top_k_accuracy_score
from torchmetrics.functional.classification import binary_calibration_error, multiclass_calibration_error

from focalcal.metrics import (
    adaptive_ece,
    auroc,
    brier,
    classwise_ece,
    debiased_ece,
    ece,
    error,
    mce,
    multilabel_debiased_ece,
    multilabel_ece,
    multilabel_rms_ce,
    multilabel_smooth_ece,
    nll,
    rms_ce,
    smooth_ece,
    top_k_accuracy,
)

PUBLISHED_ECE = {  # per cent, 15 bins, as printed
    "resnet20": 5.32,
    "resnet32": 5.08,
    "resnet44": 4.69,
    "resnet56": 4.64,
    "cifar10_lenet_5": 10.79,
    "cifar10_wideresnet_16_4": 5.37,
    "cifar100_lenet_5": 1.49,
    "cifar100_wideresnet_16_4": 5.81,
    "cifar100_densenet_bc_100": 14.22,
}
PUBLISHED_ERROR = {"resnet20": 8.27, "resnet32": 7.37, "resnet44": 6.90, "resnet56": 6.61}
_read = {}


@pytest.fixture(params=sorted(PUBLISHED_ECE))
def network(request, data_folder):
    """Name, probabilities (10000, K) in float64 and labels of a published network."""
    name = request.param
    if name not in _read:
        file = "cifar10_test_logits_akamaster_resnets" if name.startswith("resnet") else "cifar_probs_netcal"
        with np.load(data_folder / "logits" / f"{file}.npz") as stored:
            if name.startswith("resnet"):
                probs, labels = softmax(stored[name].astype(np.float64), axis=1), stored["labels"]
            else:
                probs, labels = stored[f"{name}_probs"].astype(np.float64), stored[f"{name}_labels"]
                probs /= probs.sum(1, keepdims=True)
        _read[name] = probs, labels.astype(np.int64).ravel()
    return name, *_read[name]


def top(probs, labels):
    return probs.max(1), (probs.argmax(1) == labels).astype(float)


def two_classes(confidence, correct):
    """Probabilities of two classes whose larger one is the confidence, and labels that make it right or not."""
    confidence = np.asarray(confidence, dtype=float)
    return np.stack([confidence, 1 - confidence], 1), 1 - np.asarray(correct, dtype=int)


def torchmetrics_ce(probs, labels, norm="l1", n_bins=15):
    probs, labels = torch.as_tensor(probs), torch.as_tensor(labels)
    return float(multiclass_calibration_error(probs, labels, probs.shape[1], n_bins=n_bins, norm=norm))


def binned_gaps(confidence, correct, index):
    """Share and gap of each bin, with nothing of ours."""
    parts = [index == b for b in np.unique(index)]
    return np.array([p.mean() for p in parts]), np.array([(confidence - correct)[p].mean() for p in parts])


# ---- ECE, MCE, RMS ----


def test_published_values(network):
    name, probs, labels = network
    assert round(100 * ece(probs, labels), 2) == PUBLISHED_ECE[name]
    assert round(100 * ece(probs.astype(np.float32), labels), 2) == PUBLISHED_ECE[name]
    if name in PUBLISHED_ERROR:
        assert round(100 * error(probs, labels), 2) == PUBLISHED_ERROR[name]


def test_ece_and_mce_equal_netcal_and_uncertainty_calibration(network):
    _, probs, labels = network
    assert ece(probs, labels) == pytest.approx(NetcalECE(15).measure(probs, labels), abs=1e-12)
    assert mce(probs, labels) == pytest.approx(NetcalMCE(15).measure(probs, labels), abs=1e-12)
    assert ece(probs, labels) == pytest.approx(verified.get_ece(probs, labels), abs=1e-12)
    plain = verified_utils.lower_bound_scaling_ce(
        probs, labels, p=2, debias=False, binning_scheme=verified_utils.get_equal_prob_bins, mode="top-label"
    )
    assert rms_ce(probs, labels) == pytest.approx(plain, abs=1e-12)


def test_torchmetrics_differs_by_float32_and_a_phantom_bin(network):
    """torchmetrics computes in float32, where confidences above 1 - 3e-8 are 1, and gives 1 a bin of its own.

    The sum of gaps (l1) changes by less than 1e-5. The root mean square changes by up to 0.004, since one bin of
    overconfident rows becomes two of which one is worse. Both parts are reproduced here.
    """
    _, probs, labels = network
    confidence, correct = top(probs.astype(np.float32), labels)
    index = (np.searchsorted(np.linspace(0, 1, 16, dtype=np.float32), confidence, side="right") - 1).clip(0, 15)
    share, gap = binned_gaps(confidence.astype(float), correct, index)
    assert torchmetrics_ce(probs, labels) == pytest.approx((share * abs(gap)).sum(), abs=1e-5)
    assert torchmetrics_ce(probs, labels, "l2") == pytest.approx(np.sqrt((share * gap**2).sum()), abs=1e-5)
    assert torchmetrics_ce(probs, labels, "max") == pytest.approx(abs(gap).max(), abs=1e-5)

    assert torchmetrics_ce(probs, labels) == pytest.approx(ece(probs, labels), abs=1e-5)
    difference = torchmetrics_ce(probs, labels, "l2") - rms_ce(probs, labels)
    if (confidence == 1).sum() > 100:
        assert 1e-3 < difference < 4e-3
    else:
        assert abs(difference) < 1e-5
    # Without the phantom bin, float64 confidences and edges, the rest agrees.
    below = np.minimum(probs, 1 - 1e-7)
    whole = np.concatenate([below, 1 - below.sum(1, keepdims=True).clip(max=1)], 1)
    whole /= whole.sum(1, keepdims=True)
    assert torchmetrics_ce(whole, labels, "l2") == pytest.approx(rms_ce(whole, labels), abs=1e-5)


# ---- classwise ECE ----


def test_classwise_ece_is_the_mean_of_binary_ones(network):
    name, probs, labels = network
    if probs.shape[1] > 10 and name != "cifar100_lenet_5":
        pytest.skip("a hundred calls of each peer, once")
    classes = range(probs.shape[1])
    ours = classwise_ece(probs, labels)
    netcal = [NetcalECE(15).measure(probs[:, k], (labels == k).astype(int)) for k in classes]
    assert ours == pytest.approx(np.mean(netcal), abs=1e-12)
    marginal = verified.get_ece(probs, labels, mode="marginal")
    assert ours == pytest.approx(marginal, abs=1e-12)
    p, y = torch.from_numpy(probs.T.copy()), torch.from_numpy(labels)
    binary = [float(binary_calibration_error(p[k], (y == k).long(), n_bins=15, norm="l1")) for k in classes]
    assert ours == pytest.approx(np.mean(binary), abs=1e-6)


# ---- AdaECE ----


def interpolated_edges(confidence, bins=15):
    rows = len(confidence)
    return np.interp(np.linspace(0, rows, bins + 1), np.arange(rows), np.sort(confidence))


def ece_between(confidence, correct, inner, side):
    share, gap = binned_gaps(confidence, correct, np.searchsorted(inner, confidence, side=side))
    return (share * abs(gap)).sum()


def test_adaptive_ece_and_the_equal_mass_of_others(network):
    """Three rules for edges between equal shares of rows. On these networks the values lie within 2e-4."""
    name, probs, labels = network
    confidence, correct = top(probs, labels)
    ours = adaptive_ece(probs, labels)
    assert ours == pytest.approx(
        ece_between(confidence, correct, interpolated_edges(confidence)[1:-1], "left"), abs=1e-12
    )
    edges = interpolated_edges(confidence)
    inside = confidence > edges[0]  # the published code leaves the smallest out
    left_out = ece_between(confidence[inside], correct[inside], edges[1:-1], "left") * inside.mean()
    assert adaptive_ece(probs, labels, convention="fc") == pytest.approx(left_out, abs=1e-12)

    # netcal: NumPy's quantiles, at ranks k (N - 1) / 15 in place of k N / 15, and bins [lo, hi).
    quantiles = np.quantile(confidence, np.linspace(0, 1, 16))[1:-1]
    netcal = NetcalECE(15, equal_intervals=False).measure(probs, labels)
    assert netcal == pytest.approx(ece_between(confidence, correct, quantiles, "right"), abs=1e-9)

    # uncertainty-calibration: halfway between the last and the first of neighbouring parts of np.array_split.
    parts = np.array_split(np.sort(confidence), 15)
    halfway = sorted({(a[-1] + b[0]) / 2 for a, b in pairwise(parts)})
    assert verified.get_ece_em(probs, labels) == pytest.approx(
        ece_between(confidence, correct, halfway, "left"), abs=1e-12
    )
    assert abs(ours - netcal) < 4e-5
    assert abs(ours - verified.get_ece_em(probs, labels)) < 2e-4
    if name == "cifar100_lenet_5":
        assert [round(100 * v, 4) for v in (ours, netcal, verified.get_ece_em(probs, labels))] == [
            1.6376,
            1.6338,
            1.6196,
        ]


# ---- smECE ----


def test_smooth_ece_in_relplots_convention_is_relplots(network):
    name, probs, labels = network
    confidence, correct = top(probs, labels)
    reference = relplot.smECE(confidence, correct)
    assert smooth_ece(probs, labels, convention="relplot") == pytest.approx(reference, abs=1e-9)
    for width in (0.01, 0.05, 0.3):
        fixed = smooth_ece(probs, labels, bandwidth=width, convention="relplot")
        assert fixed == pytest.approx(relplot.smECE_sigma(confidence, correct, width), abs=1e-9)
    ours = smooth_ece(probs, labels)
    if name == "cifar100_lenet_5":  # nothing near an end
        assert ours == pytest.approx(reference, abs=1e-12)
    if name == "resnet20":
        assert [round(100 * v, 2) for v in (ours, reference, ece(probs, labels))] == [5.24, 7.73, 5.32]


def test_smooth_ece_counts_the_ends_whole():
    """6,000 sure rows of which 90 % are right, 4,000 calibrated ones. Moving sure from 1 to 0.999 is no change that
    a calibration error should see; relplot keeps half of what lies at 1.
    """
    generator = np.random.default_rng(0)
    low = generator.uniform(0.5, 0.9, 4000)
    correct = np.concatenate([generator.random(6000) < 0.9, generator.random(4000) < low])
    at, near = (two_classes(np.concatenate([np.full(6000, sure), low]), correct) for sure in (1.0, 0.999))
    values = {
        "ours": (smooth_ece(*at), smooth_ece(*near)),
        "relplot": tuple(relplot.smECE(*top(*each)) for each in (at, near)),
        "ece": (ece(*at), ece(*near)),
    }
    assert abs(values["ours"][0] - values["ours"][1]) < 1e-3
    assert abs(values["ece"][0] - values["ece"][1]) < 1e-3
    assert [round(v, 3) for v in values["relplot"]] == [0.048, 0.063]
    assert [round(v, 3) for v in values["ours"]] == [0.063, 0.063]
    assert values["ours"][1] == pytest.approx(values["relplot"][1], abs=1e-12)  # nothing lies at an end


def test_binary_smooth_ece():
    generator = np.random.default_rng(1)
    for rows in (1, 2, 30, 3000):
        p = generator.random(rows)
        y = (generator.random(rows) < p**1.5).astype(int)
        ours = multilabel_smooth_ece(p[:, None], y[:, None], convention="relplot")
        assert ours == pytest.approx(relplot.smECE(p, y.astype(float)), abs=1e-9)


# ---- proper scores, ranks ----


def test_nll_brier_and_top_k_equal_sklearn(network):
    _, probs, labels = network
    classes = np.arange(probs.shape[1])
    assert (probs > 0).all()  # log_loss clips at the dtype's epsilon
    clipped = np.clip(probs, np.finfo(float).eps, 1 - np.finfo(float).eps)
    own = clipped[np.arange(len(labels)), labels]
    assert log_loss(labels, probs, labels=classes) == pytest.approx(-np.log(own).mean(), abs=1e-12)
    if (probs[np.arange(len(labels)), labels] == own).all():
        assert nll(probs, labels) == pytest.approx(log_loss(labels, probs, labels=classes), abs=1e-12)
    reference = brier_score_loss(labels, probs, labels=classes, scale_by_half=False)
    assert brier(probs, labels) == pytest.approx(reference, abs=1e-12)
    for k in (1, 3, 5):
        reference = top_k_accuracy_score(labels, probs, k=k, labels=classes)
        assert top_k_accuracy(probs, labels, k=k) == pytest.approx(reference, abs=1e-12)


def test_auroc_equals_sklearn(network):
    _, probs, labels = network
    confidence, correct = top(probs, labels)
    assert auroc(confidence, correct) == pytest.approx(roc_auc_score(correct, confidence), abs=1e-12)
    tied = np.round(confidence, 2)
    assert len(np.unique(tied)) <= 101
    assert auroc(tied, correct) == pytest.approx(roc_auc_score(correct, tied), abs=1e-12)
    assert auroc(np.zeros_like(tied), correct) == roc_auc_score(correct, np.zeros_like(tied)) == 0.5


# ---- debiased ECE ----


def in_verified_bins(p, y, n_bins=15):
    edges = verified_utils.get_equal_prob_bins(p, n_bins)
    return verified_utils.bin(np.stack([p, y], 1), edges)


@pytest.mark.parametrize("rows", [200, 2000])
@pytest.mark.parametrize("power", [1.0, 1.5])
def test_debiased_ece_equals_kumar_et_al(rows, power):
    """l2: their unbiased estimator. l1: the expectation that they approach by resampling, here 20,000 times."""
    generator = np.random.default_rng(rows)
    p = generator.random(rows)
    y = (generator.random(rows) < p**power).astype(int)
    bins = in_verified_bins(p, y, 10)
    assert min(map(len, bins)) > 1
    ours = multilabel_debiased_ece(p[:, None], y[:, None], n_bins=10, norm="l2")
    assert ours == pytest.approx(verified_utils.unbiased_l2_ce(bins), abs=1e-12)
    np.random.seed(0)  # noqa: NPY002 - they draw from the global generator
    resampled = verified_utils.normal_debiased_ce(bins, power=1, resamples=20000)
    spread = 1 / np.sqrt(rows * 20000)  # a resampled ECE spreads by less than 1 / sqrt(rows)
    ours = multilabel_debiased_ece(p[:, None], y[:, None], n_bins=10)
    assert ours == pytest.approx(max(resampled, 0), abs=4 * spread)
    plain = multilabel_ece(p[:, None], y[:, None], n_bins=10)
    assert ours < plain


def test_debiased_ece_of_networks_and_of_single_rows(network):
    """A bin with one row has no variance estimate. They drop it, we keep its gap without a correction."""
    _, probs, labels = network
    confidence, correct = top(probs, labels)
    bins = [part for part in in_verified_bins(confidence, correct) if len(part)]
    theirs = verified_utils.unbiased_square_ce(bins)
    single = sum(verified_utils.difference_mean(part) ** 2 for part in bins if len(part) == 1) / len(labels)
    assert debiased_ece(probs, labels, norm="l2") == pytest.approx(np.sqrt(theirs + single), abs=1e-9)


def test_debiased_ece_of_one_row():
    p, y = two_classes([0.7], [1])
    assert verified_utils.unbiased_l2_ce(in_verified_bins(*top(p, y))) == 0
    assert debiased_ece(p, y, norm="l2") == pytest.approx(0.3)


# ---- intervals ----


# ---- where peers go wrong, or another way ----


def test_a_confidence_of_one_is_in_the_last_bin():
    """1 (wrong) and 0.99 (right) are one bin of two rows. In torchmetrics 1 has a sixteenth bin to itself."""
    probs, labels = two_classes([1.0, 0.99], [0, 1])
    assert ece(probs, labels) == pytest.approx(0.495)
    assert verified.get_ece(probs, labels) == pytest.approx(0.495)
    assert torchmetrics_ce(probs, labels) == pytest.approx((1 + 0.01) / 2)
    assert mce(probs, labels) == pytest.approx(0.495)
    assert torchmetrics_ce(probs, labels, "max") == 1


def test_a_confidence_on_an_edge_is_in_the_bin_it_closes():
    """0.8 = 12/15 (right) and 0.85 (wrong). In [lo, hi) they share a bin and cancel, in (lo, hi] they do not."""
    probs, labels = two_classes([0.8, 0.85], [1, 0])
    apart, together = (0.2 + 0.85) / 2, abs(0.8 + 0.85 - 1) / 2
    assert ece(probs, labels) == pytest.approx(apart)
    assert verified.get_ece(probs, labels) == pytest.approx(apart)
    assert torchmetrics_ce(probs, labels) == pytest.approx(together)
    binary = NetcalECE(15).measure(np.array([0.8, 0.85]), np.array([1, 0]))
    assert binary == pytest.approx(together)
    assert multilabel_ece(np.array([[0.8], [0.85]]), np.array([[1], [0]])) == pytest.approx(apart)


def test_logits_are_not_taken_for_probabilities():
    """Logits that happen to lie in [0, 1]: torchmetrics takes them as they are, we ask."""
    logits = np.array([[0.9, 0.1, 0.2], [0.3, 0.8, 0.1]])
    labels = np.array([0, 1])
    assert torchmetrics_ce(logits, labels) == pytest.approx(1 - (0.9 + 0.8) / 2)
    assert ece(softmax(logits, axis=1), labels) == pytest.approx(1 - softmax(logits, axis=1).max(1).mean())
    with pytest.raises(ValueError, match=r"summing to 1 .* got a sum of 1.2 in row 0"):
        ece(logits, labels)
    # Shifting logits changes no probability. There it changes the answer by a factor of 3.
    assert torchmetrics_ce(logits + 5, labels) == pytest.approx(ece(softmax(logits, axis=1), labels), abs=1e-6)
    assert torchmetrics_ce(logits + 5, labels) > 3 * torchmetrics_ce(logits, labels)


def test_a_million_rows_do_not_drift():
    """float32 sums of a million confidences lose digits, float64 ones do not."""
    generator = np.random.default_rng(0)
    confidence = generator.uniform(0.94, 0.999, 1_000_000).astype(np.float32)
    correct = generator.random(1_000_000) < confidence
    probs, labels = np.stack([confidence, 1 - confidence], 1), (~correct).astype(np.int64)
    exact = abs(confidence.astype(np.float64).sum() - correct.sum()) / 1_000_000  # all in the last bin
    assert ece(probs, labels) == pytest.approx(exact, abs=1e-12)
    assert torchmetrics_ce(probs, labels) > 1.2 * exact  # 1.31e-4 in place of 1.01e-4


def test_labels_need_not_show_every_class():
    """Ten classes of which the labels show two: netcal takes the task for a binary one and refuses, sklearn needs to
    be told. Two columns are another matter: netcal then bins the second column, not the confidence.
    """
    generator = np.random.default_rng(0)
    probs, labels = generator.dirichlet(np.ones(10), 100), generator.integers(0, 2, 100)
    assert ece(probs, labels) == pytest.approx(verified.get_ece(probs, labels), abs=1e-12)
    with pytest.raises(RuntimeError, match="Asserted binary classification"):
        NetcalECE(15).measure(probs, labels)
    assert nll(probs, labels) == pytest.approx(log_loss(labels, probs, labels=np.arange(10)), abs=1e-12)
    with pytest.raises(ValueError, match="number of classes"):
        log_loss(labels, probs)

    probs = generator.dirichlet(np.ones(2), 100)
    netcal = NetcalECE(15).measure(probs, labels)
    assert netcal == pytest.approx(multilabel_ece(probs[:, 1:], labels[:, None]), abs=1e-12)
    assert abs(netcal - ece(probs, labels)) > 0.01


@pytest.mark.filterwarnings("ignore:invalid value encountered:RuntimeWarning")
def test_nan_is_refused():
    """torchmetrics and netcal answer with a number, uncertainty-calibration with NaN."""
    probs, labels = np.full((4, 3), 1 / 3), np.array([0, 1, 2, 0])
    assert ece(probs, labels) == pytest.approx(1 / 6)
    probs[2] = np.nan
    with pytest.raises(ValueError, match="probs must be finite, got nan in row 2"):
        ece(probs, labels)
    assert torchmetrics_ce(probs, labels) == pytest.approx(1 / 4)
    assert NetcalECE(15).measure(probs, labels) == pytest.approx(1 / 3)
    assert np.isnan(verified.get_ece(probs, labels))


def test_ties_of_the_top_k_go_to_the_first_class():
    """Four equal probabilities: the two first are the top two. sklearn takes the last, as if columns were reversed."""
    probs, labels = np.full((4, 4), 0.25), np.arange(4)
    assert top_k_accuracy(probs, labels, k=2) == 0.5
    first = top_k_accuracy(probs[:2], labels[:2], k=2)
    assert first == 1
    assert top_k_accuracy_score(labels[:2], probs[:2], k=2, labels=np.arange(4)) == 0
    assert top_k_accuracy_score(3 - labels[:2], probs[:2, ::-1], k=2, labels=np.arange(4)) == 1


def test_a_probability_of_zero_is_an_infinite_loss():
    """sklearn clips at the dtype's epsilon, so that its value depends on the dtype."""
    probs, labels = np.array([[1.0, 0.0], [0.5, 0.5]]), np.array([1, 0])
    assert nll(probs, labels) == np.inf
    assert log_loss(labels, probs) == pytest.approx(-np.log(np.finfo(np.float64).eps) / 2 + np.log(2) / 2)
    assert log_loss(labels, probs.astype(np.float32)) == pytest.approx(
        -np.log(np.finfo(np.float32).eps) / 2 + np.log(2) / 2
    )


def test_rms_of_a_binary_task_equals_uncertainty_calibration():
    generator = np.random.default_rng(3)
    p = generator.random(500)
    y = (generator.random(500) < p).astype(int)
    theirs = verified_utils.plugin_ce(in_verified_bins(p, y), power=2)
    assert multilabel_rms_ce(p[:, None], y[:, None]) == pytest.approx(theirs, abs=1e-12)
