"""How far probabilities can be trusted: calibration errors, proper scores, error bars, and sketches that add up."""

from focalcal.core.binning import BinSums
from focalcal.metrics import table
from focalcal.metrics.bootstrap import Interval, bootstrap
from focalcal.metrics.corp import Corp, CorpParts, corp
from focalcal.metrics.decision_cost import DecisionCost, compare_costs, decision_cost
from focalcal.metrics.event import EventCalibration, Spiegelhalter, event_calibration
from focalcal.metrics.event_curve import EventCurve
from focalcal.metrics.graded import graded_scores
from focalcal.metrics.metric import Metric
from focalcal.metrics.multilabel import (
    MultilabelSummary,
    multilabel_bootstrap,
    multilabel_murphy,
    multilabel_reliability,
    multilabel_summary,
)
from focalcal.metrics.murphy import Murphy, murphy
from focalcal.metrics.net_benefit import DecisionCurve, Flagged, flagged_at, net_benefit
from focalcal.metrics.ranking import auroc
from focalcal.metrics.reliability import Reliability, reliability
from focalcal.metrics.sketch import CalibrationSketch
from focalcal.metrics.summary import Summary, summary
from focalcal.metrics.table import *  # noqa: F403  every metric of the table, by its name

__all__ = [
    "BinSums",
    "CalibrationSketch",
    "Corp",
    "CorpParts",
    "DecisionCost",
    "DecisionCurve",
    "EventCalibration",
    "EventCurve",
    "Flagged",
    "Interval",
    "Metric",
    "MultilabelSummary",
    "Murphy",
    "Reliability",
    "Spiegelhalter",
    "Summary",
    "auroc",
    "bootstrap",
    "compare_costs",
    "corp",
    "decision_cost",
    "event_calibration",
    "flagged_at",
    "graded_scores",
    "multilabel_bootstrap",
    "multilabel_murphy",
    "multilabel_reliability",
    "multilabel_summary",
    "murphy",
    "net_benefit",
    "reliability",
    "summary",
]
__all__ += table.__all__
