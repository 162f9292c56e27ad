"""What a run is, and where runs are kept: `Spec`, its key, and the `Store` on disk.

Names are imported when first used: reading a store needs neither torch nor what a `Spec` is checked with.
"""

from typing import TYPE_CHECKING

from focalcal.core.lazy import lazy_names

if TYPE_CHECKING:
    from focalcal.lab.store.diagnostics import RunProblem as RunProblem
    from focalcal.lab.store.diagnostics import StoreProblem as StoreProblem
    from focalcal.lab.store.keys import SCHEMA as SCHEMA
    from focalcal.lab.store.run import Run as Run
    from focalcal.lab.store.spec import Evaluation as Evaluation
    from focalcal.lab.store.spec import Evaluations as Evaluations
    from focalcal.lab.store.spec import Protocol as Protocol
    from focalcal.lab.store.spec import Spec as Spec
    from focalcal.lab.store.store import Store as Store

_HOME = {
    "Evaluation": "spec",
    "Evaluations": "spec",
    "Protocol": "spec",
    "Run": "run",
    "RunProblem": "diagnostics",
    "SCHEMA": "keys",
    "Spec": "spec",
    "Store": "store",
    "StoreProblem": "diagnostics",
}

__all__ = list(_HOME)

__getattr__, __dir__ = lazy_names(__name__, _HOME)
