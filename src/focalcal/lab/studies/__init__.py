"""Studies: grids of recipes, objectives and seeds, trained where they are missing. Names are imported when first used.

from focalcal.lab.studies import run_study

result = run_study("digits", "runs", smoke=True)
result.gaps    # nothing, when every cell is trained and evaluated
"""

from typing import TYPE_CHECKING

from focalcal.core.lazy import lazy_names

if TYPE_CHECKING:
    from focalcal.lab.studies.completeness import find_gaps as find_gaps
    from focalcal.lab.studies.evaluate import evaluate_run as evaluate_run
    from focalcal.lab.studies.evaluate import evaluate_runs as evaluate_runs
    from focalcal.lab.studies.executors.local import LocalExecutor as LocalExecutor
    from focalcal.lab.studies.executors.ray import RayExecutor as RayExecutor
    from focalcal.lab.studies.planning import plan_study as plan_study
    from focalcal.lab.studies.run import run_spec as run_spec
    from focalcal.lab.studies.spec_builder import recipe_of as recipe_of
    from focalcal.lab.studies.spec_builder import spec_of as spec_of
    from focalcal.lab.studies.study_file import StudyError as StudyError
    from focalcal.lab.studies.study_file import load_study as load_study
    from focalcal.lab.studies.study_file import parse_study as parse_study
    from focalcal.lab.studies.study_run import StudyResult as StudyResult
    from focalcal.lab.studies.study_run import run_study as run_study

_HOME = {
    "LocalExecutor": "executors.local",
    "RayExecutor": "executors.ray",
    "StudyError": "study_file",
    "StudyResult": "study_run",
    "evaluate_run": "evaluate",
    "evaluate_runs": "evaluate",
    "find_gaps": "completeness",
    "load_study": "study_file",
    "parse_study": "study_file",
    "plan_study": "planning",
    "recipe_of": "spec_builder",
    "run_spec": "run",
    "run_study": "study_run",
    "spec_of": "spec_builder",
}

__all__ = list(_HOME)

__getattr__, __dir__ = lazy_names(__name__, _HOME)
