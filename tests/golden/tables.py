"""The cases of every golden file."""

from golden import calibrator_cases, command_cases, metric_cases, study_cases, theory_cases

TABLES = {
    "metrics": metric_cases.cases(),
    "calibrators": calibrator_cases.cases(),
    "commands": command_cases.cases(),
    "studies": study_cases.cases(),
    "theory": theory_cases.cases(),
}
