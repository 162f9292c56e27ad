"""The theory of Focal Calibration Loss, computed: the population minimiser, its bounds, and calibration.

Names are imported when first used: a calibrator that needs the inverse map does not pay for the rest.
"""

from typing import TYPE_CHECKING

from focalcal.core.lazy import lazy_names

if TYPE_CHECKING:
    from focalcal.theory.bias import *  # noqa: F403
    from focalcal.theory.bounds import *  # noqa: F403
    from focalcal.theory.calibration import *  # noqa: F403
    from focalcal.theory.consistency import *  # noqa: F403
    from focalcal.theory.degenerate import *  # noqa: F403
    from focalcal.theory.gradients import *  # noqa: F403
    from focalcal.theory.matching import *  # noqa: F403
    from focalcal.theory.minimiser import *  # noqa: F403
    from focalcal.theory.potential import *  # noqa: F403
    from focalcal.theory.propriety import *  # noqa: F403
    from focalcal.theory.recovery import *  # noqa: F403
    from focalcal.theory.temperature import *  # noqa: F403
    from focalcal.theory.tolerance import *  # noqa: F403

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
