"""Comparisons paired by seed: exact tests, intervals, effect sizes, and correction for several tests; e-processes."""

from focalcal.stats.comparison import PRIMARY, VERDICTS, Comparison, compare, verdict_counts
from focalcal.stats.differences import cohens_dz
from focalcal.stats.e_process import Wealth, change_weights
from focalcal.stats.e_values import BinnedSums, Gaps, gap_bounds, in_proportion, log_e_values
from focalcal.stats.multiplicity import holm
from focalcal.stats.paired_bootstrap import PairedInterval, bootstrap_ci
from focalcal.stats.sign_flip import SignFlip, sign_flip_test

__all__ = [
    "PRIMARY",
    "VERDICTS",
    "BinnedSums",
    "Comparison",
    "Gaps",
    "PairedInterval",
    "SignFlip",
    "Wealth",
    "bootstrap_ci",
    "change_weights",
    "cohens_dz",
    "compare",
    "gap_bounds",
    "holm",
    "in_proportion",
    "log_e_values",
    "sign_flip_test",
    "verdict_counts",
]
