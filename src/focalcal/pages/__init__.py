"""The page kit, tables, and displays of predictions: frames in, pictures and HTML out."""

from typing import TYPE_CHECKING

from focalcal.core.lazy import lazy_names

if TYPE_CHECKING:
    from focalcal.pages.reliability_display import ReliabilityDisplay as ReliabilityDisplay
    from focalcal.pages.risk_coverage_display import RiskCoverageDisplay as RiskCoverageDisplay

_HOME = {
    "ReliabilityDisplay": "reliability_display",
    "RiskCoverageDisplay": "risk_coverage_display",
}

__all__ = [*_HOME]
__getattr__, __dir__ = lazy_names(__name__, _HOME)
