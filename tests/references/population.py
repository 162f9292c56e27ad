"""Population calibration in rational arithmetic, one outcome (state, label) after another."""

import math
from fractions import Fraction


def outcomes(probs, eta, weights):
    """(probability, confidence, whether right, row, label) of every outcome; rows of Fractions."""
    for row, posterior, weight in zip(probs, eta, weights, strict=True):
        predicted = max(range(len(row)), key=lambda k: (row[k], -k))
        for label, chance in enumerate(posterior):
            yield weight * chance, row[predicted], label == predicted, row, label


def groups(probs, eta, weights, key):
    """For each value of key(confidence): probability, E[S | key], E[Z | key]."""
    sums = {}
    for chance, confidence, right, _, _ in outcomes(probs, eta, weights):
        total = sums.setdefault(key(confidence), [Fraction(0), Fraction(0), Fraction(0)])
        for at, term in enumerate((1, confidence, right)):
            total[at] += chance * term
    return [(share, s / share, z / share) for share, s, z in sums.values() if share]


def cal2(probs, eta, weights):
    return sum(share * (s - z) ** 2 for share, s, z in groups(probs, eta, weights, lambda s: s))


def refinement(probs, eta, weights):
    return sum(share * z * (1 - z) for share, _, z in groups(probs, eta, weights, lambda s: s))


def ece(probs, eta, weights, bins):
    def bin_of(s):
        return max(0, -((-s * bins) // 1) - 1)  # (lo, hi], 0 in the first

    return sum(share * abs(s - z) for share, s, z in groups(probs, eta, weights, bin_of))


def score_brier(probs, eta, weights):
    return sum(chance * (right - s) ** 2 for chance, s, right, _, _ in outcomes(probs, eta, weights))


def class_brier(probs, eta, weights):
    return sum(
        chance * sum((p - (k == label)) ** 2 for k, p in enumerate(row))
        for chance, _, _, row, label in outcomes(probs, eta, weights)
    )


def proper_parts(probs, eta, weights):
    """(refinement, calibration error) of the log score and of the Brier score, given the whole vector of scores."""
    cells = {}
    for row, posterior, weight in zip(probs, eta, weights, strict=True):
        total = cells.setdefault(tuple(row), [Fraction(0)] * (len(row) + 1))
        cells[tuple(row)] = [total[0] + weight, *(t + weight * e for t, e in zip(total[1:], posterior, strict=True))]
    parts = {"nll": [0.0, 0.0], "brier": [0.0, 0.0]}
    for row, (weight, *sums) in cells.items():
        truth = [each / weight for each in sums]  # E[Y | s]
        entropy = -sum(float(e) * math.log(e) for e in truth if e)
        divergence = sum(float(e) * math.log(e / p) for e, p in zip(truth, row, strict=True) if e)
        distance = float(sum((e - p) ** 2 for e, p in zip(truth, row, strict=True)))
        variance = float(1 - sum(e * e for e in truth))
        for name, values in (("nll", (entropy, divergence)), ("brier", (variance, distance))):
            parts[name] = [at + float(weight) * value for at, value in zip(parts[name], values, strict=True)]
    return parts
