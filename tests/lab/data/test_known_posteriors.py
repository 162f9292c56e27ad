from dataclasses import replace

import numpy as np
import pytest
from references.data_fingerprints import FINGERPRINTS
from scipy.stats import chi2, multivariate_normal

from focalcal.core.forty_states import population
from focalcal.core.rng import numpy_stream
from focalcal.lab.data import DataSet, Examples, fingerprint, load_data, relabelled
from focalcal.lab.data.known_posteriors import draw_labels, gaussian_means

KNOWN = ["gaussian_mixture", "discrete", "teacher"]


def test_a_mixture_has_bayes_posterior():
    options = {"classes": 4, "dimensions": 3, "separation": 2.0, "seed": 5}
    data = load_data("gaussian_mixture", imbalance=3.0, sizes=(50, 0, 20), **options)
    means = gaussian_means(4, 3, 2.0, 5)
    np.testing.assert_allclose(np.linalg.norm(means, axis=1), 2.0)
    priors = 3.0 ** (-np.arange(4) / 3)
    features = data.test.inputs.astype(np.float64)
    joint = np.stack([multivariate_normal(mean).pdf(features) for mean in means], 1) * priors
    np.testing.assert_allclose(data.test.posterior, joint / joint.sum(1, keepdims=True), rtol=1e-10)


@pytest.mark.parametrize("name", KNOWN)
def test_labels_follow_their_posterior(name):
    """Pearson's statistic of the counts in bins of eta_0, against chi-squared, at one in ten thousand."""
    data = load_data(name)
    posterior = np.concatenate([data.train.posterior, data.test.posterior])
    labels = np.concatenate([data.train.labels, data.test.labels])
    statistic, freedom = 0.0, 0
    for k in range(posterior.shape[1]):
        order = np.argsort(posterior[:, k])
        for rows in np.array_split(order, 5):
            expected, variance = posterior[rows, k].sum(), (posterior[rows, k] * (1 - posterior[rows, k])).sum()
            if variance > 5:
                statistic += ((labels[rows] == k).sum() - expected) ** 2 / variance
                freedom += 1
    assert freedom >= 10
    assert statistic < chi2(freedom).ppf(1 - 1e-4)


def test_a_seed_changes_the_labels_and_the_size_of_one_split_leaves_the_others_alone():
    first, second = (load_data("teacher", seed=seed).test.labels for seed in (0, 1))
    assert not np.array_equal(first, second)
    for name in ("gaussian_mixture", "discrete"):
        small, large, other = (load_data(name, sizes=(size, 10, 30), seed=int(size == 6)) for size in (5, 50, 6))
        np.testing.assert_array_equal(small.test.inputs, large.test.inputs)
        np.testing.assert_array_equal(small.test.labels, large.test.labels)
        assert not np.array_equal(small.test.labels, other.test.labels)


@pytest.mark.parametrize("name", ["gaussian_mixture", "discrete"])
def test_draws_never_change(name):
    data = load_data(name)
    without_posterior = {split: fingerprint(replace(one, posterior=None)) for split, one in data.splits.items()}
    assert without_posterior == FINGERPRINTS[name]


def test_discrete_states_are_the_theorys():
    data = load_data("discrete", sizes=(2000, 0, 100), seed=7)
    state = data.train.inputs.argmax(1)
    draws = numpy_stream(7, "discrete", "train")  # every split draws from the stream of its name
    assert state.tolist() == draws.integers(40, size=2000).tolist()
    assert data.train.labels.tolist() == draw_labels(data.train.posterior, draws).tolist()
    assert set(state) == set(range(40))
    assert (data.train.inputs.sum(1) == 1).all()
    np.testing.assert_allclose(data.train.posterior, population()[state], atol=1e-15)


def test_a_teacher_keeps_inputs_and_ids():
    base, taught = load_data("digits"), load_data("teacher")
    np.testing.assert_array_equal(base.test.inputs, taught.test.inputs)
    assert base.test.ids.tolist() == taught.test.ids.tolist()
    agreement = (taught.test.posterior.argmax(1) == base.test.labels).mean()
    assert agreement > 0.9  # a teacher that knows the digits ...
    assert (taught.test.posterior.max(1) < 0.9).mean() > 0.3  # ... and leaves them ambiguous
    hotter = relabelled(base, temperature=4.0)
    assert hotter.test.posterior.max(1).mean() < taught.test.posterior.max(1).mean()


def test_a_teacher_labels_test_images_as_often_as_wanted():
    once, often = load_data("teacher"), load_data("teacher", test_draws=10)
    assert len(often.test) == 10 * len(once.test)
    assert len(set(often.test.ids)) == len(often.test)
    fourth = often.test.posterior.reshape(10, *once.test.posterior.shape)[3]
    np.testing.assert_allclose(fourth, once.test.posterior, rtol=1e-12)  # products of more rows add in another order
    labels = often.test.labels.reshape(10, -1)
    assert (labels[0] != labels[1]).any(), "every copy has a draw of its own"
    assert often.provenance["fingerprints"]["train"] == once.provenance["fingerprints"]["train"]
    with pytest.raises(ValueError, match="test_draws must be a whole number >= 1, got 0"):
        load_data("teacher", test_draws=0)


def test_a_teacher_of_two_classes():
    rng = np.random.default_rng(0)
    labels = np.arange(60) % 2
    features = rng.normal(size=(60, 2)) + labels[:, None]
    parts = [
        Examples(features[rows], labels[rows], np.arange(60)[rows])
        for rows in (slice(0, 40), slice(40, 50), slice(50, 60))
    ]
    made = relabelled(DataSet("toy", ("a", "b"), *parts), temperature=1.0)
    from sklearn.linear_model import LogisticRegression

    expected = LogisticRegression(max_iter=100).fit(features[:40], labels[:40]).predict_proba(features[50:])
    np.testing.assert_allclose(made.test.posterior, expected, rtol=1e-9)


def test_drawn_labels_never_leave_the_classes():
    posterior = np.array([[0.0, 1.0, 0.0], [1.0, 0.0, 0.0], [0.1, 0.2, 0.7 - 1e-12]])
    labels = np.stack([draw_labels(posterior, np.random.default_rng(seed)) for seed in range(200)])
    assert set(labels[:, 0]) == {1}
    assert set(labels[:, 1]) == {0}
    assert set(labels[:, 2]) == {0, 1, 2}


def test_bad_arguments_are_refused():
    with pytest.raises(ValueError, match="classes >= 2"):
        load_data("gaussian_mixture", classes=1)
    with pytest.raises(ValueError, match="temperature must be > 0"):
        load_data("teacher", temperature=0.0)
