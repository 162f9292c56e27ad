"""Maps of groups: their limits, what they gain on known posteriors, and what is refused."""

import json
import warnings

import numpy as np
import pandas
import pytest
import torch
from scipy.special import log_softmax, softmax
from sklearn.base import clone

from focalcal.posthoc import CalibrationWarning, GroupwiseCalibration, TemperatureScaling, load_calibrator
from focalcal.posthoc.calibrated_tables import calibrate_tables
from focalcal.posthoc.group_effects import common_scores, fitted_effects
from focalcal.predictions import PredictionsFileError

SIZES = np.linspace(20, 280, 20)  # in proportion to which groups have rows


def drawn(rows, seed, *, spread=0.5, classes=3):
    """Logits, labels, groups of unequal size and the posterior, which differs between groups by `spread`."""
    fixed, draws = np.random.default_rng(7), np.random.default_rng(seed)
    factor = np.exp(spread * fixed.normal(size=len(SIZES)))
    bias = spread * fixed.normal(size=(len(SIZES), classes))
    group = draws.choice(len(SIZES), rows, p=SIZES / SIZES.sum())
    logits = 2 * draws.normal(size=(rows, classes))
    true = 0.6 * factor[group, None] * logits + bias[group]
    return logits, np.argmax(true + draws.gumbel(size=true.shape), 1), group, softmax(true, 1)


def excess(probs, posterior):
    return (posterior * np.log(posterior / probs)).sum(1)


@pytest.fixture(scope="module")
def fitted():
    logits, labels, group, _ = drawn(3000, 0)
    return GroupwiseCalibration().fit(logits, labels, groups=group)


def test_the_worst_group_gains_and_nobody_loses(fitted):
    """Excess of the NLL over that of the posterior, against the common map and one map for each group."""
    logits, _, group, posterior = drawn(20_000, 1)
    found = {name: np.zeros(20_000) for name in ("groupwise", "common", "separate")}
    for seed in (0, 2, 4):
        held, truth, own, _ = drawn(3000, seed)
        groupwise = fitted if seed == 0 else GroupwiseCalibration().fit(held, truth, groups=own)
        found["groupwise"] += excess(groupwise.predict_proba(logits, groups=group), posterior) / 3
        found["common"] += excess(groupwise.calibrator_.predict_proba(logits), posterior) / 3
        for at in range(len(SIZES)):
            rows, there = own == at, group == at
            alone = clone(groupwise.calibrator_).fit(held[rows], truth[rows])
            found["separate"][there] += excess(alone.predict_proba(logits[there]), posterior[there]) / 3
    mean = {name: each.mean() for name, each in found.items()}
    worst = {name: max(each[group == at].mean() for at in range(len(SIZES))) for name, each in found.items()}
    assert mean["groupwise"] < 0.2 * mean["common"]
    assert mean["groupwise"] < mean["separate"]
    assert worst["groupwise"] < 0.4 * worst["common"]
    assert worst["groupwise"] < worst["separate"]
    gain = mean["common"] - mean["groupwise"]
    assert fitted.gains_.low < gain < fitted.gains_.high  # what cross-fitting said


def test_small_groups_are_shrunk_more(fitted):
    table = fitted.gains_.frame()
    few, many = (np.argsort(table["rows"])[part] for part in (slice(5), slice(-5, None)))
    assert np.array(table["shrinkage"])[few].min() > np.array(table["shrinkage"])[many].max()
    assert all(0 <= share <= 1 for share in table["shrinkage"])
    assert str(fitted.gains_).startswith("gain +0.")


def test_groups_that_do_not_differ_have_the_common_map():
    logits, labels, group, posterior = drawn(3000, 0, spread=0.0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", CalibrationWarning)  # the effects may be found to be of no use, too
        alike = GroupwiseCalibration().fit(logits, labels, groups=group)
    apart = abs(alike.predict_proba(logits, groups=group) - alike.calibrator_.predict_proba(logits))
    assert apart.max() < 0.03
    assert excess(alike.predict_proba(logits, groups=group), posterior).mean() < 0.003


def test_effects_that_hurt_are_dropped():
    draws = np.random.default_rng(2)
    logits = 2 * draws.normal(size=(200, 3))
    labels = np.argmax(0.6 * logits + draws.gumbel(size=logits.shape), 1)
    group = np.where(np.arange(200) < 180, draws.integers(0, 60, 200), 61)
    with pytest.warns(CalibrationWarning, match="groups do not help: their effects raise the NLL"):
        dropped = GroupwiseCalibration().fit(logits, labels, groups=group)
    expected = dropped.calibrator_.predict_proba(logits)
    np.testing.assert_allclose(dropped.predict_proba(logits, groups=group), expected, atol=1e-12)
    assert dropped.gains_.gain == 0


def test_the_effects_are_the_posterior_mode():
    """By the definition, differentiated by differences, at the effects found."""
    logits, labels, group, _ = drawn(800, 0)
    other = np.arange(800) % 2
    z = common_scores(softmax(logits, 1))
    both = fitted_effects(z, labels, np.ones(800), [group, other], [len(SIZES), 2])

    def minus_log_density(effects):
        log_factor = sum(t[place] for (t, _), place in zip(effects, (group, other), strict=True))
        bias = sum(b[place] for (_, b), place in zip(effects, (group, other), strict=True))
        value = -log_softmax(np.exp(log_factor)[:, None] * z + bias, 1)[np.arange(800), labels].sum()
        for (t, b), one in zip(effects, both, strict=True):
            value += (t**2).sum() / (2 * one.tau[0] ** 2) + (b**2).sum() / (2 * one.tau[1] ** 2)
        return value

    at = [(one.log_factor, one.bias) for one in both]
    least, draws = minus_log_density(at), np.random.default_rng(0)
    for _ in range(20):
        step = [(1e-3 * draws.normal(size=t.shape), 1e-3 * draws.normal(size=b.shape)) for t, b in at]
        moved = [
            [(t + sign * dt, b + sign * db) for (t, b), (dt, db) in zip(at, step, strict=True)] for sign in (1, -1)
        ]
        up, down = (minus_log_density(each) - least for each in moved)
        assert up > 0
        assert down > 0
        assert abs(up - down) < 0.05 * (up + down)  # the slope is nothing beside the curvature


def test_the_spread_of_the_groups_is_found():
    draws = np.random.default_rng(0)
    group = np.repeat(np.arange(60), 300)
    z = common_scores(softmax(2 * draws.normal(size=(len(group), 3)), 1))
    true = np.exp(0.4 * draws.normal(size=60))[group, None] * z + (0.7 * draws.normal(size=(60, 3)))[group]
    labels = np.argmax(true + draws.gumbel(size=true.shape), 1)
    (found,) = fitted_effects(z, labels, np.ones(len(group)), [group], [60])
    assert found.tau[0] == pytest.approx(0.4, abs=0.1)
    assert found.tau[1] == pytest.approx(0.7, abs=0.1)


def test_overlapping_columns_add_up_in_any_form():
    draws = np.random.default_rng(0)
    site, device = draws.integers(0, 8, 3000), draws.choice(["web", "app"], 3000)
    logits = 2 * draws.normal(size=(3000, 3))
    true = np.exp(np.linspace(-0.5, 0.5, 8))[site, None] * np.where(device == "web", 0.5, 1.0)[:, None] * logits
    labels = np.argmax(true + draws.gumbel(size=true.shape), 1)
    groups = {"site": site, "device": device}
    several = GroupwiseCalibration().fit(logits, labels, groups=groups)
    alone = [GroupwiseCalibration().fit(logits, labels, groups=column) for column in (site, device)]
    assert several.gains_.gain > max(one.gains_.gain for one in alone)
    posterior = softmax(true, 1)
    assert excess(several.predict_proba(logits, groups=groups), posterior).mean() < 0.005
    expected = several.predict_proba(logits[:50], groups={name: column[:50] for name, column in groups.items()})
    frame = pandas.DataFrame(groups)[["device", "site"]]
    np.testing.assert_array_equal(several.predict_proba(logits[:50], groups=frame[:50]), expected)
    table = GroupwiseCalibration().fit(logits, labels, groups=np.stack([site % 2, site // 4], 1))
    assert list(table.levels_) == ["group_0", "group_1"]


def test_groups_seen_at_prediction_only_have_the_common_map(fitted):
    logits, _, group, _ = drawn(50, 1)
    mixed = np.where(np.arange(50) < 10, 99, group)
    with pytest.warns(CalibrationWarning, match=r"got 99 in group \(1 such\), which is given the common map"):
        found = fitted.predict_proba(logits, groups=mixed)
    np.testing.assert_array_equal(found, fitted.predict_proba(logits, groups=mixed))  # said once
    np.testing.assert_allclose(found[:10], fitted.calibrator_.predict_proba(logits[:10]), atol=1e-12)
    np.testing.assert_allclose(found[10:], fitted.predict_proba(logits[10:], groups=group[10:]), atol=1e-12)


def test_files_and_tensors(fitted, tmp_path):
    logits, _, group, _ = drawn(200, 1)
    expected = fitted.predict_proba(logits, groups=group)
    fitted.save(tmp_path / "groups.json")
    twin = load_calibrator(tmp_path / "groups.json")
    np.testing.assert_array_equal(twin.predict_proba(logits, groups=group), expected)
    assert torch.equal(twin.predict_proba(torch.from_numpy(logits), groups=group), torch.from_numpy(expected))
    content = json.loads((tmp_path / "groups.json").read_text())
    content["state"]["effects"]["group"]["bias"].pop()
    (tmp_path / "groups.json").write_text(json.dumps(content))
    with pytest.raises(ValueError, match="is no valid GroupwiseCalibration"):
        load_calibrator(tmp_path / "groups.json")


def test_names_of_classes_and_weights_of_rows():
    draws = np.random.default_rng(0)
    site, logits = draws.choice(["a", "b"], 800), 2 * draws.normal(size=(800, 3))
    labels = np.argmax(np.where(site == "a", 0.3, 1.0)[:, None] * logits + draws.gumbel(size=logits.shape), 1)
    names, kept = np.array(["ant", "bee", "cat"]), np.repeat([1.0, 0.0], 400)
    named = GroupwiseCalibration(TemperatureScaling()).fit(logits, names[labels], kept, groups=site, classes=names)
    half = GroupwiseCalibration(TemperatureScaling()).fit(logits[:400], labels[:400], groups=site[:400])
    expected = half.predict_proba(logits, groups=site)
    np.testing.assert_allclose(named.predict_proba(logits, groups=site), expected, atol=1e-6)
    assert named.predict(logits, groups=site).tolist() == names[expected.argmax(1)].tolist()
    assert clone(named).get_params()["folds"] == 5


def test_tables_of_production_have_columns_of_groups(fitted, tmp_path):
    logits, _, group, _ = drawn(50, 1)
    table = pandas.DataFrame(logits, columns=["logit_0", "logit_1", "logit_2"]).assign(group=group)
    expected = fitted.predict_proba(logits, groups=group)
    for suffix in ("csv", "parquet"):
        getattr(table, f"to_{suffix}")(tmp_path / f"new.{suffix}", index=False)
        calibrate_tables(fitted, tmp_path / f"new.{suffix}", tmp_path / f"out.{suffix}")
        found = getattr(pandas, f"read_{suffix}")(tmp_path / f"out.{suffix}")
        np.testing.assert_allclose(found[["prob_0", "prob_1", "prob_2"]], expected, rtol=1e-12)
    table.drop(columns="group").to_csv(tmp_path / "new.csv", index=False)
    with pytest.raises(PredictionsFileError, match="must have a column 'group'"):
        calibrate_tables(fitted, tmp_path / "new.csv", tmp_path / "out.csv")
