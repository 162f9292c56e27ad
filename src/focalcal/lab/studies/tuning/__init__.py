"""Search over objectives and their options on validation data. Names are imported when first used.

from focalcal.lab.studies.tuning import tune

result = tune("digits_small_cnn_lite", "runs", trials=12)
print(result.sentence)
"""

from typing import TYPE_CHECKING

from focalcal.core.lazy import lazy_names

if TYPE_CHECKING:
    from focalcal.lab.studies.tuning.judgement import Judgement as Judgement
    from focalcal.lab.studies.tuning.judgement import judge as judge
    from focalcal.lab.studies.tuning.result import TuneResult as TuneResult
    from focalcal.lab.studies.tuning.search import TuneCandidate as TuneCandidate
    from focalcal.lab.studies.tuning.tuned_study import TunedStudy as TunedStudy
    from focalcal.lab.studies.tuning.tuned_study import tune_study as tune_study
    from focalcal.lab.studies.tuning.tuner import tune as tune

_HOME = {
    "TunedStudy": "tuned_study",
    "tune_study": "tuned_study",
    "TuneCandidate": "search",
    "Judgement": "judgement",
    "TuneResult": "result",
    "judge": "judgement",
    "tune": "tuner",
}

__all__ = ["Judgement", "TuneCandidate", "TuneResult", "TunedStudy", "judge", "tune", "tune_study"]

__getattr__, __dir__ = lazy_names(__name__, _HOME)
