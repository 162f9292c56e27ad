"""Calibration for overlapping groups on populations whose posterior is known: one map, separate maps, shrunk ones.

    python benchmarks/groupwise.py [--rows 5000] [--seeds 5]

A binary classifier's log odds are right up to a factor and a bias that depend on the site (30, of unequal size) and on
the device (3). `spread` is how much groups differ; with 0 nothing does. Printed are means over the seeds, on 50,000
other rows: the excess of the NLL over that of the true posterior (nats), the same of the worst site and the worst
device, and seconds of CPU. MCGrad takes part where the package mcgrad is installed.
"""

from __future__ import annotations

import argparse
import time
import warnings

import numpy as np

from focalcal.posthoc import CalibrationWarning, GroupwiseCalibration, PlattScaling

SITES, DEVICES, TEST = 30, 3, 50_000
SHARE = 1 / np.arange(1, SITES + 1)


def population(spread, seed):
    """A function that draws (probs, labels, sites, devices, posterior)."""
    fixed = np.random.default_rng([seed, 0])
    factor = np.exp(spread * fixed.normal(size=SITES)), np.exp(spread * fixed.normal(size=DEVICES))
    bias = 2 * spread * fixed.normal(size=SITES), 2 * spread * fixed.normal(size=DEVICES)

    def draw(rows, stream):
        draws = np.random.default_rng([seed, stream])
        site, device = draws.choice(SITES, rows, p=SHARE / SHARE.sum()), draws.choice(DEVICES, rows, p=[0.6, 0.3, 0.1])
        odds = 2 * draws.normal(size=rows) - 1
        true = 0.6 * odds * factor[0][site] * factor[1][device] + bias[0][site] + bias[1][device]
        posterior = 1 / (1 + np.exp(-true))
        labels = (draws.random(rows) < posterior).astype(int)
        return 1 / (1 + np.exp(-odds)), labels, site, device, posterior

    return draw


def nothing(train, test):
    return test[0]


def common(train, test):
    return PlattScaling().fit(probs=train[0], labels=train[1]).predict_proba(probs=test[0])[:, 1]


def separate(train, test):
    """A map of each pair of site and device; the common one where a pair has too few rows or one label."""
    found = common(train, test)
    for site in range(SITES):
        for device in range(DEVICES):
            rows, new = ((part[2] == site) & (part[3] == device) for part in (train, test))
            if rows.sum() >= 10 and 0 < train[1][rows].mean() < 1:
                fitted = PlattScaling().fit(probs=train[0][rows], labels=train[1][rows])
                found[new] = fitted.predict_proba(probs=test[0][new])[:, 1]
    return found


def groupwise(train, test):
    groups = [{"site": part[2], "device": part[3]} for part in (train, test)]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", CalibrationWarning)
        fitted = GroupwiseCalibration().fit(probs=train[0], labels=train[1], groups=groups[0])
        return fitted.predict_proba(probs=test[0], groups=groups[1])[:, 1]


def mcgrad(train, test):
    import pandas
    from mcgrad import methods

    columns = ("p", "y", "site", "device")
    frames = [pandas.DataFrame(dict(zip(columns, part[:4], strict=True))) for part in (train, test)]
    for frame in frames:
        frame[["site", "device"]] = frame[["site", "device"]].astype(str)
    fitted = methods.MCGrad().fit(frames[0], "p", "y", categorical_feature_column_names=["site", "device"])
    return fitted.predict(frames[1], "p", categorical_feature_column_names=["site", "device"])


def excess(probs, posterior, member=None):
    """KL divergence from the posterior in nats: its mean, or the largest mean of a group."""
    p = np.clip(probs, 1e-12, 1 - 1e-12)
    each = posterior * np.log(posterior / p) + (1 - posterior) * np.log((1 - posterior) / (1 - p))
    return each.mean() if member is None else max(each[member == k].mean() for k in np.unique(member))


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--rows", type=int, default=5000)
    parser.add_argument("--seeds", type=int, default=5)
    options = parser.parse_args()
    methods = [nothing, common, separate, groupwise]
    try:
        import mcgrad as _  # noqa: F401

        methods.append(mcgrad)
    except ImportError:
        print("mcgrad is not installed and takes no part")
    print(f"{'spread':>6}  {'method':<10} {'excess':>8} {'worst site':>11} {'worst device':>13} {'seconds':>8}")
    for spread in (0.0, 0.1, 0.3, 0.6):
        for method in methods:
            found = []
            for seed in range(options.seeds):
                draw = population(spread, seed)
                train, test = draw(options.rows, 1), draw(TEST, 2)
                start = time.process_time()
                probs = method(train, test)
                seconds = time.process_time() - start
                parts = (None, test[2], test[3])
                found.append([*(excess(probs, test[4], part) for part in parts), seconds])
            means = np.mean(found, 0)
            print(
                f"{spread:6}  {method.__name__:<10} {means[0]:8.4f} {means[1]:11.4f} {means[2]:13.4f} {means[3]:8.2f}"
            )


if __name__ == "__main__":
    main()
