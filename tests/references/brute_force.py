"""The metrics written out as their definitions say, one row at a time, with exact arithmetic where bins meet."""

import itertools
import math
from fractions import Fraction


def bin_of(value: float, n_bins: int) -> int:
    """The bin (k / n, (k + 1) / n] with the float64 edges, the first one closed."""
    for k in range(n_bins):
        if value <= (k + 1) / n_bins:
            return k
    return n_bins - 1


def predicted(row) -> int:
    return max(range(len(row)), key=lambda k: (row[k], -k))


def gaps(pairs, n_bins):
    """For each bin that is not empty: share of the pairs, mean confidence, accuracy."""
    bins = {}
    for confidence, correct in pairs:
        bins.setdefault(bin_of(confidence, n_bins), []).append((Fraction(confidence), correct))
    for members in bins.values():
        n = len(members)
        yield n / len(pairs), float(sum(c for c, _ in members) / n), sum(a for _, a in members) / n


def top(probs, labels):
    return [(row[predicted(row)], predicted(row) == y) for row, y in zip(probs, labels, strict=True)]


def ece(probs, labels, n_bins=15):
    return sum(share * abs(c - a) for share, c, a in gaps(top(probs, labels), n_bins))


def mce(probs, labels, n_bins=15):
    return max(abs(c - a) for _, c, a in gaps(top(probs, labels), n_bins))


def rms_ce(probs, labels, n_bins=15):
    return math.sqrt(sum(share * (c - a) ** 2 for share, c, a in gaps(top(probs, labels), n_bins)))


def classwise_ece(probs, labels, n_bins=15):
    classes = len(probs[0])
    total = 0.0
    for k in range(classes):
        pairs = [(row[k], y == k) for row, y in zip(probs, labels, strict=True)]
        total += sum(share * abs(c - a) for share, c, a in gaps(pairs, n_bins))
    return total / classes


def brier(probs, labels):
    rows = zip(probs, labels, strict=True)
    return sum(sum((p - (k == y)) ** 2 for k, p in enumerate(row)) for row, y in rows) / len(labels)


def nll(probs, labels):
    return sum(math.inf if row[y] == 0 else -math.log(row[y]) for row, y in zip(probs, labels, strict=True)) / len(
        labels
    )


def error(probs, labels):
    return sum(not correct for _, correct in top(probs, labels)) / len(labels)


def confidence_gap(probs, labels):
    return sum(confidence - correct for confidence, correct in top(probs, labels)) / len(labels)


def adaptive_ece(probs, labels, n_bins=15):
    pairs = sorted(top(probs, labels))
    n = len(pairs)
    edges = []
    for j in range(n_bins + 1):
        rank = min(j * n / n_bins, n - 1)
        low = math.floor(rank)
        high = min(low + 1, n - 1)
        edges.append(pairs[low][0] + (rank - low) * (pairs[high][0] - pairs[low][0]))
    total = 0.0
    for j in range(n_bins):
        members = [(c, a) for c, a in pairs if (edges[j] < c or j == 0) and (c <= edges[j + 1] or j == n_bins - 1)]
        total += abs(sum(c - a for c, a in members))
    return total / n


def top_k_accuracy(probs, labels, k=5):
    def rank(row, y):
        return sum(p > row[y] or (p == row[y] and i < y) for i, p in enumerate(row))

    return sum(rank(row, y) < k for row, y in zip(probs, labels, strict=True)) / len(labels)


def aurc_of(confidence, wrong):
    """The mean over all orders of equal confidences, one random order after another."""
    import random

    shuffler = random.Random(0)
    total, rounds = 0.0, 3000
    rows = list(zip(confidence, wrong, strict=True))
    for _ in range(rounds):
        shuffler.shuffle(rows)
        rows.sort(key=lambda row: -row[0])
        errors = 0
        for i, (_, failed) in enumerate(rows, 1):
            errors += failed
            total += errors / i / len(rows)
    return total / rounds


def augrc_of(confidence, wrong):
    """The area under (share accepted, share accepted and wrong), a polygon through every threshold."""
    points, rows = [(0.0, 0.0)], len(confidence)
    for threshold in sorted(set(confidence), reverse=True):
        accepted = [failed for sure, failed in zip(confidence, wrong, strict=True) if sure >= threshold]
        points.append((len(accepted) / rows, sum(accepted) / rows))
    return sum((x1 - x0) * (y0 + y1) / 2 for (x0, y0), (x1, y1) in itertools.pairwise(points))


def coverage_of(confidence, wrong, accuracy):
    """The largest share that a threshold accepts with that accuracy."""
    best = 0.0
    for threshold in confidence:
        accepted = [failed for sure, failed in zip(confidence, wrong, strict=True) if sure >= threshold]
        if 1 - sum(accepted) / len(accepted) >= accuracy:
            best = max(best, len(accepted) / len(confidence))
    return best
