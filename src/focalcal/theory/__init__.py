"""The theory of Focal Calibration Loss, computed: the population minimiser, its bounds, and calibration.

Names are imported when first used: a calibrator that needs the inverse map does not pay for the rest.
"""

from typing import TYPE_CHECKING

from focalcal.core.lazy import lazy_names

if TYPE_CHECKING:
    from focalcal.theory.bias import asymptote_delay as asymptote_delay
    from focalcal.theory.bias import first_order_bias as first_order_bias
    from focalcal.theory.bias import first_order_constant as first_order_constant
    from focalcal.theory.bias import pre_asymptotic_bias as pre_asymptotic_bias
    from focalcal.theory.bounds import entropy_bound as entropy_bound
    from focalcal.theory.bounds import global_bound as global_bound
    from focalcal.theory.bounds import interior_bound as interior_bound
    from focalcal.theory.bounds import interior_constant as interior_constant
    from focalcal.theory.bounds import interior_threshold as interior_threshold
    from focalcal.theory.bounds import log_classes_bound as log_classes_bound
    from focalcal.theory.bounds import simplex_bound as simplex_bound
    from focalcal.theory.bounds import simplex_constant as simplex_constant
    from focalcal.theory.bounds import slope_bound as slope_bound
    from focalcal.theory.calibration import CalibrationBounds as CalibrationBounds
    from focalcal.theory.calibration import CalibrationChain as CalibrationChain
    from focalcal.theory.calibration import EceChain as EceChain
    from focalcal.theory.calibration import ScoreDecomposition as ScoreDecomposition
    from focalcal.theory.calibration import ScoreMap as ScoreMap
    from focalcal.theory.calibration import best_score_map as best_score_map
    from focalcal.theory.calibration import calibration_bounds as calibration_bounds
    from focalcal.theory.calibration import calibration_chain as calibration_chain
    from focalcal.theory.calibration import ece_chain as ece_chain
    from focalcal.theory.calibration import exact_cal2 as exact_cal2
    from focalcal.theory.calibration import expected_brier as expected_brier
    from focalcal.theory.calibration import murphy_population as murphy_population
    from focalcal.theory.calibration import population_ece as population_ece
    from focalcal.theory.calibration import posthoc_headroom as posthoc_headroom
    from focalcal.theory.consistency import decision_gap as decision_gap
    from focalcal.theory.consistency import decreasing_differences as decreasing_differences
    from focalcal.theory.consistency import keeps_decision as keeps_decision
    from focalcal.theory.degenerate import degenerate_posterior as degenerate_posterior
    from focalcal.theory.gradients import ScalingExponents as ScalingExponents
    from focalcal.theory.gradients import TrueLogitGradients as TrueLogitGradients
    from focalcal.theory.gradients import anchor_share as anchor_share
    from focalcal.theory.gradients import l2_gradient_range as l2_gradient_range
    from focalcal.theory.gradients import scaling_exponents as scaling_exponents
    from focalcal.theory.gradients import true_logit_gradients as true_logit_gradients
    from focalcal.theory.matching import Match as Match
    from focalcal.theory.matching import MatchStatus as MatchStatus
    from focalcal.theory.matching import matching_lam as matching_lam
    from focalcal.theory.minimiser import Solution as Solution
    from focalcal.theory.minimiser import SolverError as SolverError
    from focalcal.theory.minimiser import Status as Status
    from focalcal.theory.minimiser import l1_anchor_minimisers as l1_anchor_minimisers
    from focalcal.theory.minimiser import minimise as minimise
    from focalcal.theory.minimiser import minimise_l1 as minimise_l1
    from focalcal.theory.potential import conditional_risk as conditional_risk
    from focalcal.theory.potential import entropy as entropy
    from focalcal.theory.potential import focal_potential as focal_potential
    from focalcal.theory.potential import phi as phi
    from focalcal.theory.potential import phi_curvature as phi_curvature
    from focalcal.theory.potential import phi_slope as phi_slope
    from focalcal.theory.potential import psi as psi
    from focalcal.theory.propriety import LargestDistortion as LargestDistortion
    from focalcal.theory.propriety import largest_distortion as largest_distortion
    from focalcal.theory.propriety import propriety_error as propriety_error
    from focalcal.theory.recovery import log_posterior as log_posterior
    from focalcal.theory.recovery import recover as recover
    from focalcal.theory.temperature import effective_temperature as effective_temperature
    from focalcal.theory.temperature import small_distortion_temperature as small_distortion_temperature
    from focalcal.theory.tolerance import lam_for as lam_for

_NAMES = {
    "bias": ("asymptote_delay", "first_order_bias", "first_order_constant", "pre_asymptotic_bias"),
    "bounds": (
        *("entropy_bound", "global_bound", "interior_bound", "interior_constant", "interior_threshold"),
        *("log_classes_bound", "simplex_bound", "simplex_constant", "slope_bound"),
    ),
    "calibration": (
        *("CalibrationBounds", "CalibrationChain", "EceChain", "ScoreDecomposition", "ScoreMap", "best_score_map"),
        *("calibration_bounds", "calibration_chain", "ece_chain", "exact_cal2", "expected_brier"),
        *("murphy_population", "population_ece", "posthoc_headroom"),
    ),
    "consistency": ("decision_gap", "decreasing_differences", "keeps_decision"),
    "degenerate": ("degenerate_posterior",),
    "gradients": (
        *("ScalingExponents", "TrueLogitGradients", "anchor_share", "l2_gradient_range", "scaling_exponents"),
        *("true_logit_gradients",),
    ),
    "matching": ("Match", "MatchStatus", "matching_lam"),
    "minimiser": ("Solution", "SolverError", "Status", "l1_anchor_minimisers", "minimise", "minimise_l1"),
    "potential": ("conditional_risk", "entropy", "focal_potential", "phi", "phi_curvature", "phi_slope", "psi"),
    "propriety": ("LargestDistortion", "largest_distortion", "propriety_error"),
    "recovery": ("log_posterior", "recover"),
    "temperature": ("effective_temperature", "small_distortion_temperature"),
    "tolerance": ("lam_for",),
}
_HOME = {name: home for home, names in _NAMES.items() for name in names}

__all__ = [*_HOME]
__getattr__, __dir__ = lazy_names(__name__, _HOME)
