"""Tables, figures and pages made of what `analysis` computed."""

from typing import TYPE_CHECKING

from focalcal.core.lazy import lazy_names

if TYPE_CHECKING:
    from focalcal.reports.figures.reliability_display import ReliabilityDisplay as ReliabilityDisplay
    from focalcal.reports.figures.risk_coverage_display import RiskCoverageDisplay as RiskCoverageDisplay

_HOME = {
    "ReliabilityDisplay": "figures.reliability_display",
    "RiskCoverageDisplay": "figures.risk_coverage_display",
}

__all__ = [*_HOME]
__getattr__, __dir__ = lazy_names(__name__, _HOME)
