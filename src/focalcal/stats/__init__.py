"""Comparisons paired by seed: exact tests, intervals, effect sizes, and correction for several tests."""

from focalcal.stats.comparison import PRIMARY, VERDICTS, Comparison, compare, verdict_counts
from focalcal.stats.differences import cohens_dz, holm
from focalcal.stats.paired_bootstrap import PairedInterval, bootstrap_ci
from focalcal.stats.sign_flip import SignFlip, sign_flip_test

__all__ = [
    "PRIMARY",
    "VERDICTS",
    "Comparison",
    "PairedInterval",
    "SignFlip",
    "bootstrap_ci",
    "cohens_dz",
    "compare",
    "holm",
    "sign_flip_test",
    "verdict_counts",
]
