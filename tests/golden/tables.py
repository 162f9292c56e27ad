"""The cases of every golden file; the laboratory's where it is installed."""

from importlib.util import find_spec

from golden import calibrator_cases, command_cases, metric_cases, theory_cases

TABLES = {
    "metrics": metric_cases.cases(),
    "calibrators": calibrator_cases.cases(),
    "commands": command_cases.cases(),
    "theory": theory_cases.cases(),
}
if find_spec("torch"):
    from golden import study_cases

    TABLES["studies"] = study_cases.cases()
