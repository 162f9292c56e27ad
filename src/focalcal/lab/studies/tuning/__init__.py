"""Search over objectives and their options on validation data. Names are imported when first used.

from focalcal.lab.studies.tuning import tune

result = tune("digits_small_cnn_lite", "runs", trials=12)
print(result.sentence)
"""

from typing import TYPE_CHECKING

from focalcal.core.lazy import lazy_names

if TYPE_CHECKING:
    from focalcal.lab.studies.tuning.candidates import TuneCandidate as TuneCandidate
    from focalcal.lab.studies.tuning.judgement import Judgement as Judgement
    from focalcal.lab.studies.tuning.judgement import judge as judge
    from focalcal.lab.studies.tuning.result import TuneResult as TuneResult
    from focalcal.lab.studies.tuning.tuner import tune as tune

_HOME = {
    "TuneCandidate": "candidates",
    "Judgement": "judgement",
    "TuneResult": "result",
    "judge": "judgement",
    "tune": "tuner",
}

__all__ = ["Judgement", "TuneCandidate", "TuneResult", "judge", "tune"]

__getattr__, __dir__ = lazy_names(__name__, _HOME)
