"""The cases of every golden file."""

from golden import calibrator_cases, metric_cases, theory_cases

TABLES = {
    "metrics": metric_cases.cases(),
    "calibrators": calibrator_cases.cases(),
    "theory": theory_cases.cases(),
}
